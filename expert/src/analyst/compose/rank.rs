//! Ranks records by their importance for the alert.

use std::net::IpAddr;

use casebook_protocol::{Bearing, Weight};

use crate::analyst::link::{Kin, seconds};
use crate::analyst::rec::Rec;
use crate::analyst::{Case, account, logon};
use casebook_evidence::facet::{Class, Facet};

/// The sign-in of the actor: above records that are only near, below serious ones.
const ARRIVAL: u32 = 160;

/// Seconds around the alert in which alerts of other products count.
const ALERTS_SECONDS: f64 = 3.0 * 24.0 * 3600.0;

pub(super) fn rank(rec: &Rec, kin: Kin, case: &Case) -> Option<u32> {
    let telling = |bearing: Bearing| rec.shows.iter().filter(|b| b.bearing == bearing).map(|b| b.weight).max();
    let against = telling(Bearing::Incriminating);
    let noise = matches!(
        rec.class(),
        Class::ProcessEnd
            | Class::ProcessAccess
            | Class::ImageLoad
            | Class::RegistryChange
            | Class::FileRead
            | Class::FileDelete
            | Class::Certificate
    ) || logon::upkeep(rec);
    // A record on the same host without another link must be more serious, because a host has much other
    // activity.
    let tied = kin != Kin::Near || case.round > 1 || case.sources.few() || case.shares_actor(rec);
    let grave = against.is_some_and(|w| w >= if tied { Weight::Moderate } else { Weight::Strong });
    if kin == Kin::Core {
        return Some(1000);
    }
    // A table of alerts covers a whole company, so alerts weeks apart are unrelated.
    let far = matches!((rec.time, case.anchor), (Some(at), Some(anchor)) if seconds(at, anchor).abs() > ALERTS_SECONDS);
    if rec.class() == Class::Alert && far {
        return None;
    }
    // conhost.exe, the console window, starts with every console program.
    if rec.class() == Class::ProcessStart && program(rec) == "conhost.exe" && against.is_none() {
        return None;
    }
    // Other activity of the same kind by the same program shows whether the alerted one is usual for it.
    let alike = kin == Kin::Same && case.alerted().iter().any(|core| core.class() == rec.class());
    if noise && !grave && !alike {
        return None;
    }
    let of_system = rec.facets.get(Facet::User).is_some_and(account::of_system);
    let idle = to_itself(rec) || rec.class() == Class::Authentication;
    if kin >= Kin::Between && !grave && of_system && idle {
        return None;
    }
    let weight = |w: Option<Weight>| match w {
        Some(Weight::Decisive) => 400,
        Some(Weight::Strong) => 300,
        Some(Weight::Moderate) => 200,
        Some(Weight::Weak) => 60,
        None => 0,
    };
    let close = match kin {
        Kin::Core | Kin::Same => 150,
        Kin::Ancestor => 220,
        Kin::Descendant => 100,
        Kin::Again | Kin::Between | Kin::Named => 120,
        Kin::Near => 0,
    };
    // A weak explanation alone is not worth a finding.
    let explains = telling(Bearing::Exonerating).filter(|w| *w > Weight::Weak);
    let heaviest = weight(against).max(weight(explains));
    if kin == Kin::Near && rec.class() == Class::ProcessStart && case.programs.contains(&program(rec).as_str()) {
        return Some(130);
    }
    if kin >= Kin::Named && logon::arrival(rec, &case.alerted(), case.anchor) {
        return Some(ARRIVAL);
    }
    let near = match (rec.time, case.anchor) {
        (Some(at), Some(anchor)) if seconds(at, anchor).abs() <= 120.0 => 30,
        _ => 0,
    };
    // A followed program matters because of what it starts, writes and connects to.
    let does = matches!(
        rec.class(),
        Class::ProcessStart | Class::NetworkConnection | Class::FileCreate | Class::DnsQuery | Class::HttpRequest
    );
    if kin == Kin::Near && case.round > 1 && does && case.follows_program_of(rec) {
        return Some(100 + heaviest);
    }
    if kin == Kin::Near && !grave {
        let doubt = against.is_some() && case.round == 1 && case.shares_actor(rec);
        let telling = matches!(
            rec.class(),
            Class::Script
                | Class::PackageOperation
                | Class::AccountChange
                | Class::ServiceChange
                | Class::ConfigChange
                | Class::KernelModule
        );
        let quiet =
            telling || (matches!(rec.class(), Class::Authentication | Class::ScheduledTask) && case.shares_actor(rec));
        let beside = || case.recs.iter().filter(|r| r.source == rec.source);
        let few = || beside().count() <= 150 || beside().filter(|r| r.class() == rec.class()).count() <= 40;
        return (near > 0 && (quiet && few() || doubt)).then_some(40 + heaviest / 4);
    }
    // Of the records of a session, prefer the one with its origin.
    let origin = if logon::of_session(rec) && rec.facets.get(Facet::SrcIp).is_some() { 20 } else { 0 };
    let near = near + origin;
    (close + heaviest > 0).then_some(close + heaviest + near)
}

/// A program that only starts another one as another user.
pub(super) fn wraps(rec: &Rec) -> bool {
    ["sudo", "su", "doas", "pkexec", "runuser", "env", "nohup"].contains(&program(rec).as_str())
}

/// A shell that was started only to run the command of the other.
pub(super) fn hands_on(shell: &Rec, other: &Rec) -> bool {
    const SHELLS: &[&str] = &["cmd", "cmd.exe", "sh", "bash", "dash", "zsh", "ksh", "ash"];
    let plain = |rec: &Rec| {
        let command = rec.facets.get(Facet::Command).unwrap_or_default().replace(['"', '\''], " ");
        command.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
    };
    let starts = |rec: &Rec| rec.class() == Class::ProcessStart;
    let (outer, inner) = (plain(shell), plain(other));
    let before = outer.strip_suffix(inner.as_str()).filter(|_| !inner.is_empty()).map(|before| {
        before.trim_end_matches(|c: char| c.is_whitespace()).trim_end_matches(" /b").trim_end_matches(" start")
    });
    let asked = before.is_some_and(|before| [" /c", " -c", " /k"].iter().any(|flag| before.ends_with(flag)));
    starts(shell) && starts(other) && SHELLS.contains(&program(shell).as_str()) && asked
}

/// The first program in a command, without its path.
pub(super) fn program(rec: &Rec) -> String {
    let first = rec.facets.get(Facet::Command).and_then(|c| c.split_whitespace().next()).unwrap_or_default();
    first.trim_matches('"').rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase()
}

fn to_itself(rec: &Rec) -> bool {
    let address = |facet| rec.facets.get(facet).and_then(|a| a.parse::<IpAddr>().ok());
    let (Some(from), Some(to)) = (address(Facet::SrcIp), address(Facet::DstIp)) else { return false };
    rec.class() == Class::NetworkConnection && (from == to || from.is_loopback() && to.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_for_one_command_is_told_with_it() {
        let ran = |command: &str| Rec::with(&[("EventID", "4688"), ("CommandLine", command)]);
        let check = |shell: &str, other: &str, expect: bool| {
            assert_eq!(hands_on(&ran(shell), &ran(other)), expect, "{shell} and {other}");
        };
        check(r#""cmd.exe" /c "net  localgroup administrators""#, "net localgroup administrators", true);
        check(r#"cmd.exe /c start /b mshta https://a.example"#, "mshta https://a.example", true);
        check("sh -c 'id -u'", "id -u", true);
        check("cmd.exe /c whoami & net user", "net user", false);
        check("cmd.exe", "cmd.exe", false);
        check("powershell -c id", "id", false);
        check("cmd.exe /c ", "", false);
    }
}
