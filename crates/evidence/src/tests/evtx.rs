//! Windows event logs, written here byte by byte.

use super::*;

/// Encodes an event log as Windows does, without templates.
#[derive(Debug)]
pub(super) struct Log {
    chunk: Vec<u8>,
    last: usize,
    ids: Vec<u64>,
}

const CHUNK: usize = 64 << 10;

impl Log {
    pub(super) fn new() -> Self {
        Self { chunk: vec![0; 512], last: 512, ids: Vec::new() }
    }

    /// An event of the Security log.
    pub(super) fn logon(self, id: u64, at: u64, user: &str) -> Self {
        let data = [("TargetUserName", user), ("IpAddress", "203.0.113.9"), ("LogonType", "3")];
        self.event(id, at, ("Microsoft-Windows-Security-Auditing", "Security", "4625"), &data)
    }

    /// `at` is in seconds since 1970.
    pub(super) fn event(
        mut self,
        id: u64,
        at: u64,
        (provider, channel, event): (&str, &str, &str),
        data: &[(&str, &str)],
    ) -> Self {
        let time = format!("2024-03-04T05:06:{:02}.1234567Z", at % 60);
        let begin = self.chunk.len();
        self.last = begin;
        self.chunk.extend([0x2a, 0x2a, 0, 0]);
        self.chunk.extend([0; 4]);
        self.chunk.extend(id.to_le_bytes());
        self.chunk.extend(((at + 11_644_473_600) * 10_000_000).to_le_bytes());
        self.chunk.extend([0x0f, 1, 1, 0]);
        self.open("Event", &[("xmlns", "http://schemas.microsoft.com/win/2004/08/events/event")]);
        self.open("System", &[]);
        self.leaf("Provider", &[("Name", provider)], None);
        self.leaf("EventID", &[("Qualifiers", "0")], Some(event));
        self.leaf("TimeCreated", &[("SystemTime", &time)], None);
        self.leaf("EventRecordID", &[], Some(&id.to_string()));
        self.leaf("Channel", &[], Some(channel));
        self.leaf("Computer", &[], Some("FS01.corp.example"));
        self.chunk.push(4);
        self.open("EventData", &[]);
        for (name, value) in data {
            self.leaf("Data", &[("Name", name)], Some(value));
        }
        self.chunk.extend([4, 4, 0]);
        let size = u32::try_from(self.chunk.len() + 4 - begin).unwrap().to_le_bytes();
        self.chunk[begin + 4..begin + 8].copy_from_slice(&size);
        self.chunk.extend(size);
        self.ids.push(id);
        self
    }

    fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.chunk.push(if attributes.is_empty() { 1 } else { 0x41 });
        self.chunk.extend([0; 4]);
        self.name(name);
        if !attributes.is_empty() {
            self.chunk.extend([0; 4]);
            for (number, (name, value)) in attributes.iter().enumerate() {
                self.chunk.push(if number + 1 < attributes.len() { 0x46 } else { 6 });
                self.name(name);
                self.text(value);
            }
        }
        self.chunk.push(2);
    }

    fn leaf(&mut self, name: &str, attributes: &[(&str, &str)], text: Option<&str>) {
        self.open(name, attributes);
        text.into_iter().for_each(|text| self.text(text));
        self.chunk.push(4);
    }

    fn name(&mut self, name: &str) {
        let at = u32::try_from(self.chunk.len() + 4).unwrap();
        self.chunk.extend(at.to_le_bytes());
        self.chunk.extend([0; 6]);
        self.utf16(name);
        self.chunk.extend([0; 2]);
    }

    fn text(&mut self, text: &str) {
        self.chunk.extend([5, 1]);
        self.utf16(text);
    }

    fn utf16(&mut self, text: &str) {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.chunk.extend(u16::try_from(units.len()).unwrap().to_le_bytes());
        self.chunk.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    }

    pub(super) fn bytes(mut self) -> Vec<u8> {
        let mut file = vec![0u8; 4096];
        file[..8].copy_from_slice(b"ElfFile\0");
        file[24..32].copy_from_slice(&(self.ids.iter().max().copied().unwrap_or(0) + 1).to_le_bytes());
        file[32..44].copy_from_slice(&[128, 0, 0, 0, 1, 0, 3, 0, 0, 16, 1, 0]);
        let (first, last) = (self.ids.first().copied().unwrap_or(1), self.ids.last().copied().unwrap_or(0));
        let end = u32::try_from(self.chunk.len()).unwrap();
        self.chunk[..8].copy_from_slice(b"ElfChnk\0");
        for (at, value) in [(8, first), (16, last), (24, first), (32, last)] {
            self.chunk[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [(40, 128), (44, u32::try_from(self.last).unwrap()), (48, end)] {
            self.chunk[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        assert!(self.chunk.len() <= CHUNK);
        self.chunk.resize(CHUNK, 0);
        file.extend(self.chunk);
        file
    }
}

fn guesses(ids: impl Iterator<Item = u64>) -> Vec<u8> {
    ids.fold(Log::new(), |log, id| log.logon(id, id, "mara")).bytes()
}

#[test]
fn each_event_of_a_windows_event_log_is_a_record_with_its_id() {
    let folder = Folder::new(&[("Security.evtx", &guesses(1000..1020))]);
    let catalog = folder.open();
    let source = &catalog.sources()[0];
    assert_eq!(
        (source.id.as_str(), source.format, source.records, source.malformed),
        ("Security", Format::Evtx, 20, 0)
    );
    assert_eq!((source.domain.as_str(), source.sensor.as_str()), ("identity", "windows-security@FS01.corp.example"));
    assert_eq!(source.time_field.as_deref(), Some("System.TimeCreated.SystemTime"));
    assert_eq!(source.notes, Vec::<String>::new());
    let record = catalog.record("Security.evtx", 1007).unwrap();
    assert_eq!(record.time.unwrap().to_string(), "2024-03-04T05:06:47.1234567Z");
    let fields: Vec<String> = record.fields().into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
    assert_eq!(
        fields,
        [
            "System.Provider.Name = Microsoft-Windows-Security-Auditing",
            "System.EventID = 4625",
            "System.EventID.Qualifiers = 0",
            "System.TimeCreated.SystemTime = 2024-03-04T05:06:47.1234567Z",
            "System.EventRecordID = 1007",
            "System.Channel = Security",
            "System.Computer = FS01.corp.example",
            "EventData.TargetUserName = mara",
            "EventData.IpAddress = 203.0.113.9",
            "EventData.LogonType = 3",
        ]
    );
    let missing = catalog.record("Security.evtx", 20).unwrap_err().to_string();
    assert!(missing.contains("no record with this number; the last is 1019"), "{missing}");
    let tools = folder.tools();
    let found = call(&tools, "search", r#"{"terms":["203.0.113.9"],"limit":1,"order":"file"}"#);
    assert_eq!((&found["total"], &found["records"][0]["line"]), (&20.into(), &1000.into()));
    catalog.verify().unwrap();
    assert_eq!(catalog.files().listed.len(), 1);
    let mut bytes = std::fs::read(folder.evidence().join("Security.evtx")).unwrap();
    bytes[5000] ^= 1;
    folder.write("Security.evtx", &bytes);
    assert!(catalog.verify().unwrap_err().to_string().contains("Security.evtx changed"));
}

#[test]
fn rules_for_windows_meet_the_events_of_a_windows_event_log() {
    use crate::facet::{Class, Facet, Facets};
    let folder = Folder::new(&[("s.evtx", &guesses(1..9))]);
    let record = folder.open().record("s.evtx", 3).unwrap();
    let facets = Facets::read(&record.fields().into_iter().collect(), &record.text());
    assert_eq!(facets.class, Some(Class::LogonFailure));
    assert_eq!(facets.get(Facet::User), Some("mara"));
    assert_eq!(facets.get(Facet::SrcIp), Some("203.0.113.9"));
    assert_eq!(facets.get(Facet::Host), Some("FS01.corp.example"));
}

#[test]
fn record_ids_without_order_are_replaced_by_places() {
    let folder = Folder::new(&[("s.evtx", &guesses([7, 8, 8, 3].into_iter()))]);
    let catalog = folder.open();
    let source = &catalog.sources()[0];
    assert_eq!((source.records, source.lines), (4, 4));
    assert!(source.notes[0].contains("record ids are not in order"), "{:?}", source.notes);
    assert!(catalog.record("s.evtx", 4).unwrap().text().contains(r#""EventRecordID":"3""#));
}

#[test]
fn damaged_parts_of_a_windows_event_log_are_noted_and_the_others_read() {
    let mut bytes = guesses(1..30);
    let second = memchr::memmem::find(&bytes[4096 + 600..], b"\x2a\x2a\0\0").unwrap() + 4096 + 600;
    bytes[second] = b'X';
    let folder = Folder::new(&[("s.evtx", &bytes), ("cut.evtx", &bytes[..20_000]), ("head.evtx", b"ElfFile\0rest")]);
    let catalog = folder.open();
    let source = &catalog.sources()[0];
    assert_eq!(source.file, "s.evtx");
    assert!(
        source.records >= 27 && source.notes[0].contains("cannot be read and are not loaded"),
        "{:?}",
        source.notes
    );
    let skipped: Vec<&str> = catalog.skipped().iter().map(|s| s.file.as_str()).collect();
    assert_eq!(skipped, ["cut.evtx", "head.evtx"]);
    assert!(catalog.skipped()[1].reason.contains("event log that cannot be read"), "{:?}", catalog.skipped());
}

#[test]
fn any_change_of_a_windows_event_log_loads_or_is_refused() {
    let whole = guesses(1..40);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % most as u64).unwrap()
    };
    for _ in 0..250 {
        let mut bytes = whole.clone();
        for _ in 0..=next(12) {
            let at = if next(3) == 0 { next(bytes.len()) } else { 4096 + next(6_000) };
            bytes[at] = u8::try_from(next(256)).unwrap();
        }
        bytes.truncate(if next(5) == 0 { next(bytes.len()) } else { bytes.len() });
        let folder = Folder::new(&[("f.evtx", &bytes)]);
        if let Ok(catalog) = folder.try_open() {
            accounted(&catalog, &folder.evidence());
        }
    }
}
