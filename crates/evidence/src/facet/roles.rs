//! Fields whose meaning depends on other fields: acting and affected program, own and other address.

use std::collections::BTreeMap;

use super::{Facet, Named, usable};
use crate::is_message;

type Values = BTreeMap<Facet, String>;

/// The acting program: the parent if a program is started, otherwise the program itself.
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

/// True for a field at the top of the record, or directly below the wrapper of a collector. The recorded party
/// may have chosen deeper names, such as labels.
pub fn outer(path: &str) -> bool {
    const ENVELOPES: [&str; 9] =
        ["record", "_source", "columns", "properties", "event", "eventdata", "data", "jsonpayload", "fields"];
    match path.split_once('.') {
        None => true,
        Some((first, rest)) => {
            !rest.contains('.') && ENVELOPES.iter().any(|envelope| first.eq_ignore_ascii_case(envelope))
        }
    }
}

/// The path in front of the fields of a Linux audit record: empty, or the field of a collector.
pub fn audit_prefix(fields: &BTreeMap<String, String>) -> Option<&str> {
    fields.keys().filter_map(|path| path.strip_suffix("audit.serial")).find(|prefix| {
        let field = prefix.trim_end_matches('.');
        (prefix.is_empty() || is_message(field) && field.matches('.').count() <= 1)
            && fields.contains_key(&format!("{prefix}audit.time"))
    })
}

/// For sensors that name an acting program beside another: Defender, the normalised tables of Sentinel,
/// SentinelOne.
pub(super) fn acting(values: &mut Values, names: &[Named<'_>]) {
    if ACTING.iter().all(|(.., wanted)| first(names, wanted).is_none()) {
        return;
    }
    let action = values.get(&Facet::Action).map(|a| a.to_ascii_lowercase()).unwrap_or_default();
    let made = first(names, &["createdprocessname", "createdprocesscommandline"]).is_some();
    let named = ["processcreat", "process_creat", "process creat", "processstart", "rollup"];
    // Without an action, a second command is what the acting program started.
    let no_action = action.is_empty() && values.contains_key(&Facet::Command);
    let starts = made || no_action || named.iter().any(|word| action.contains(word));
    // `FileName` is the started program or the written file.
    if !starts && let Some(file) = first(names, &["filename", "targetprocessname", "tgtprocname"]) {
        values.insert(Facet::Object, file.to_owned());
    }
    for (own, parent, wanted) in ACTING {
        match first(names, wanted) {
            Some(value) if starts => drop(values.entry(parent).or_insert_with(|| value.to_owned())),
            Some(value) => drop(values.insert(own, value.to_owned())),
            None if starts => {}
            // The value describes the other program.
            None => drop(values.remove(&own)),
        }
    }
}

/// Host sensors call the ends of a connection local and remote.
pub(super) fn ends(values: &mut Values, names: &[Named<'_>]) {
    let local = first(names, &["localip", "localaddress"]);
    let Some(remote) = first(names, &["remoteip", "remoteaddress"]) else { return };
    if local.is_none() && first(names, &["localport", "remoteport"]).is_none() {
        return;
    }
    let direction =
        names.iter().filter(|(one, ..)| matches!(one.as_str(), "action" | "actiontype" | "direction" | "eventtype"));
    let inward = direction.map(|(.., value)| value.to_ascii_lowercase()).any(|value| {
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

/// A Linux audit record: the action is `op`, `hostname` is the origin, and the actor is the account that signed
/// in, even if it changed later. `names` are the fields of the record, `collected` says that a collector wrapped
/// it.
pub(super) fn audited(values: &mut Values, names: &[Named<'_>], collected: bool) {
    // Values that mean no account: 2³² − 1, −1 and some names.
    let known = |value: &&str| !matches!(*value, "4294967295" | "-1" | "unset" | "?") && !value.starts_with('(');
    let of = |wanted: &[&str]| first(names, wanted).filter(known).map(str::to_owned);
    let mut put = |facet, value: Option<String>| match value {
        Some(value) => drop(values.insert(facet, value)),
        None => drop(values.remove(&facet)),
    };
    let kind = first(names, &["type"]).unwrap_or_default();
    let account = of(&["acct"]);
    // A created or changed account is the object.
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
