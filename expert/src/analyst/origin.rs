//! The first command that a person or a scheduler gave on the way to the alerted process.

use casebook_evidence::facet::{Class, Facet};
use casebook_evidence::programs::file_name;
use casebook_protocol::{FindingDraft, FindingKind, Weight};
use casebook_trust::claim::FIRST_COMMAND;

use super::kin::Kin;
use super::rec::{self, Rec};
use super::{Case, account, compose, describe};

const SHELLS: [&str; 11] =
    ["bash", "sh", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "cmd.exe", "powershell.exe", "explorer.exe"];
const SCHEDULERS: [&str; 9] =
    ["cron", "crond", "anacron", "atd", "systemd", "launchd", "taskeng.exe", "taskhostw.exe", "svchost.exe"];

/// The first command, closest to the alert.
pub(super) fn first(case: &Case) -> Option<&Rec> {
    let path = case.with(|kin| kin <= Kin::Above).filter(|rec| rec.class() == Class::ProcessStart);
    path.filter(|rec| is_given(rec)).max_by_key(|rec| rec.time)
}

pub(super) fn finding(case: &Case) -> Option<FindingDraft> {
    let first = first(case)?;
    let corpus = rec::corpus(&[first]);
    let supported = |text: &str| compose::states(&corpus, text);
    // Who signed in, which `sudo` does not change.
    let user = first.field(&["loginuser"]).or_else(|| first.facets.get(Facet::User));
    let told = user.filter(|user| !account::of_system(user)).map(|user| describe::given(first, user));
    let told = told.filter(|text| supported(text));
    let told = told.unwrap_or_else(|| describe::claim(first, &[], None, &supported));
    Some(FindingDraft {
        time: Some(first.event_time()?),
        entities: compose::entities(&[first], &corpus),
        // The Timeline tells an event in the words of its weightiest finding.
        weight: Weight::Strong,
        citations: vec![compose::cite(first)],
        ..FindingDraft::neutral(FindingKind::Occurrence, format!("{told}: {FIRST_COMMAND}"))
    })
}

/// A shell without a script, or a scheduler, started it.
fn is_given(rec: &Rec) -> bool {
    let name = |path: &str| file_name(path).trim_start_matches('-').to_lowercase();
    let parent = rec.facets.get(Facet::Parent).map(name).unwrap_or_default();
    let command = rec.facets.get(Facet::ParentCommand).map(|c| c.trim_matches('"'));
    // A shell with arguments runs a script or a command string. Nobody typed what it starts.
    let typed =
        command.is_none_or(|c| c.split_whitespace().skip(1).all(|word| matches!(word, "-i" | "-l" | "--login")));
    SCHEDULERS.contains(&parent.as_str()) || SHELLS.contains(&parent.as_str()) && typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_of_a_person_is_told_from_that_of_a_script() {
        let given = |parent: &str, command: &str| {
            is_given(&Rec::with(&[("parent_exe", parent), ("parent_command_line", command), ("command_line", "id")]))
        };
        assert!(given("/usr/bin/bash", "-bash"));
        assert!(given("/usr/bin/bash", "bash -i"));
        assert!(given("/usr/sbin/cron", "/usr/sbin/CRON -f"));
        assert!(!given("/usr/bin/dash", "/bin/sh /usr/sbin/update-initramfs -u"));
        assert!(!given("/usr/bin/bash", "bash -c id"));
        assert!(!given("/usr/bin/apt-get", "apt-get install x"));
    }
}
