//! Whose program, whose address: what a field means where that depends on the fields beside it.

use std::collections::BTreeMap;

use super::{Facet, Named, usable};
use casebook_evidence::is_message;

type Values = BTreeMap<Facet, String>;

/// The program that did it: the parent where a program is started, the program itself in anything else.
const ACTING: [(Facet, Facet, &[&str]); 2] = [
    (
        Facet::Process,
        Facet::Parent,
        &[
            "initiatingprocessfilename",
            "initiatingprocessname",
            "actingprocessname",
            "srcprocimagepath",
            "srcprocname",
            "contextbasefilename",
        ],
    ),
    (
        Facet::Command,
        Facet::ParentCommand,
        &["initiatingprocesscommandline", "actingprocesscommandline", "srcproccmdline"],
    ),
];

fn first<'a>(names: &[Named<'a>], wanted: &[&str]) -> Option<&'a str> {
    wanted.iter().find_map(|w| {
        names.iter().find(|(one, _, value)| one == w && usable(value.trim())).map(|(.., value)| value.trim())
    })
}

/// The field is the record's own: at its top, or right below what a collector puts around it. Deeper down stand names that
/// whoever is recorded may have chosen, such as labels.
pub(crate) fn outer(path: &str) -> bool {
    const ENVELOPES: [&str; 9] =
        ["record", "_source", "columns", "properties", "event", "eventdata", "data", "jsonpayload", "fields"];
    match path.split_once('.') {
        None => true,
        Some((first, rest)) => {
            !rest.contains('.') && ENVELOPES.iter().any(|envelope| first.eq_ignore_ascii_case(envelope))
        }
    }
}

/// What stands before the fields of a record of the kernel's audit system: nothing, or the field of a collector in which
/// the record was found.
pub(crate) fn audit_prefix(fields: &BTreeMap<String, String>) -> Option<&str> {
    fields.keys().filter_map(|path| path.strip_suffix("audit.serial")).find(|prefix| {
        let field = prefix.trim_end_matches('.');
        (prefix.is_empty() || is_message(field) && field.matches('.').count() <= 1)
            && fields.contains_key(&format!("{prefix}audit.time"))
    })
}

/// Sensors that name an acting program beside another: Defender, the normalised tables of Sentinel, SentinelOne.
pub(super) fn acting(values: &mut Values, names: &[Named<'_>]) {
    if ACTING.iter().all(|(.., wanted)| first(names, wanted).is_none()) {
        return;
    }
    let action = values.get(&Facet::Action).map(|a| a.to_ascii_lowercase()).unwrap_or_default();
    let made = first(names, &["createdprocessname", "createdprocesscommandline"]).is_some();
    let named = ["processcreat", "process_creat", "process creat", "processstart", "rollup"];
    // Where nothing says what was done, a command beside the acting one is what that started.
    let untold = action.is_empty() && values.contains_key(&Facet::Command);
    let starts = made || untold || named.iter().any(|word| action.contains(word));
    // `FileName` is the program that was started, or the file that one wrote.
    if !starts && let Some(file) = first(names, &["filename", "targetprocessname", "tgtprocname"]) {
        values.insert(Facet::Object, file.to_owned());
    }
    for (own, parent, wanted) in ACTING {
        match first(names, wanted) {
            Some(value) if starts => drop(values.entry(parent).or_insert_with(|| value.to_owned())),
            Some(value) => drop(values.insert(own, value.to_owned())),
            None if starts => {}
            // What stands there is told of the other program.
            None => drop(values.remove(&own)),
        }
    }
}

/// What watches one host calls the ends of a connection its own and the other.
pub(super) fn ends(values: &mut Values, names: &[Named<'_>]) {
    let local = first(names, &["localip", "localaddress"]);
    let Some(remote) = first(names, &["remoteip", "remoteaddress"]) else { return };
    if local.is_none() && first(names, &["localport", "remoteport"]).is_none() {
        return;
    }
    let told =
        names.iter().filter(|(one, ..)| matches!(one.as_str(), "action" | "actiontype" | "direction" | "eventtype"));
    let inward = told.map(|(.., value)| value.to_ascii_lowercase()).any(|value| {
        ["inbound", "ingress", "incoming", "logon", "accept", "listen"].iter().any(|word| value.contains(word))
    });
    let (from, to) = if inward { (Some(remote), local) } else { (local, Some(remote)) };
    let port = first(names, if inward { &["localport"] } else { &["remoteport"] });
    for (facet, value) in [(Facet::SrcIp, from), (Facet::DstIp, to), (Facet::DstPort, port)] {
        match value {
            Some(value) => drop(values.insert(facet, value.to_owned())),
            None => drop(values.remove(&facet)),
        }
    }
}

/// A record of the kernel's audit system: what was done is its `op`, `hostname` is where somebody came from, and who did
/// it is the account that signed in, whatever it became since. `names` are the fields of the record itself, `collected`
/// that a collector put it into a field of its own.
pub(super) fn audited(values: &mut Values, names: &[Named<'_>], collected: bool) {
    // The number of nobody, 2³² − 1 and −1, and names of accounts that are none.
    let known = |value: &&str| !matches!(*value, "4294967295" | "-1" | "unset" | "?") && !value.starts_with('(');
    let of = |wanted: &[&str]| first(names, wanted).filter(known).map(str::to_owned);
    let mut put = |facet, value: Option<String>| match value {
        Some(value) => drop(values.insert(facet, value)),
        None => drop(values.remove(&facet)),
    };
    let kind = first(names, &["type"]).unwrap_or_default();
    let account = of(&["acct"]);
    // The account that is made or changed is what is acted on.
    let managed =
        ["ADD_", "DEL_", "USER_MGMT", "GRP_MGMT", "USER_CHAUTHTOK", "ACCT_"].iter().any(|k| kind.starts_with(k));
    if !collected {
        put(Facet::Host, of(&["node"]));
    }
    put(Facet::SrcIp, of(&["addr"]));
    put(Facet::Object, of(&["unit", "key", "name", "grp"]).or_else(|| account.clone().filter(|_| managed)));
    let signs_in = kind.starts_with("USER_") && first(names, &["acct"]).is_some();
    let user = match (managed, signs_in) {
        (true, _) => of(&["auid"]),
        (_, true) => account,
        _ => of(&["auid"]).or_else(|| of(&["uid"])),
    };
    put(Facet::User, user);
    put(Facet::Action, of(&["op"]).or_else(|| of(&["type"])));
    let ended = match first(names, &["res", "success"]) {
        Some("1" | "success" | "yes") => Some("success"),
        Some("0" | "failed" | "no") => Some("failure"),
        _ => None,
    };
    put(Facet::Outcome, ended.map(str::to_owned));
}
