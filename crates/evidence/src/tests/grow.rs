//! Folders that grow while they are investigated.

use std::io::Write;

use super::*;

fn opened(folder: &Folder) -> Arc<Catalog> {
    let index = folder.dir.path().join("data");
    Arc::new(Catalog::open_in(&folder.evidence(), &index, None, &mut |_| {}).unwrap())
}

fn append(folder: &Folder, name: &str, text: &str) {
    let path = folder.evidence().join(name);
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn tools(catalog: &Arc<Catalog>) -> EvidenceTools {
    let ids: Vec<String> = catalog.sources().iter().map(|s| s.id.clone()).collect();
    EvidenceTools::new(Arc::clone(catalog), &ids)
}

fn total(catalog: &Arc<Catalog>, term: &str) -> u64 {
    let query = serde_json::json!({ "terms": [term] }).to_string();
    call(&tools(catalog), "search", &query)["total"].as_u64().unwrap()
}

fn indexes(folder: &Folder) -> usize {
    let files = std::fs::read_dir(folder.dir.path().join("data")).unwrap().flatten();
    files.filter(|file| file.path().extension().is_some_and(|end| end == "sqlite")).count()
}

#[test]
fn a_new_snapshot_has_what_was_appended_and_the_old_one_stays_as_it_was() {
    let folder = Folder::new(&[("a.log", b"mark one\n"), ("b.log", b"mark two\n")]);
    let old = opened(&folder);
    assert_eq!(Arc::as_ptr(&old.renewed().unwrap()), Arc::as_ptr(&old), "nothing changed");
    append(&folder, "a.log", "mark three\n");
    folder.write("c.log", b"mark four\n");
    let new = old.renewed().unwrap();
    assert_eq!((total(&old, "mark"), total(&new, "mark")), (2, 4));
    assert_ne!(old.snapshot().id, new.snapshot().id);
    assert!(old.snapshot().read <= new.snapshot().read);
    assert_eq!(old.files().snapshot.unwrap(), old.snapshot());
    assert_eq!(indexes(&folder), 2, "each is used");
    // More readers than idle connections: none of them may open the index of the other snapshot.
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| assert_eq!((total(&old, "mark"), total(&new, "mark")), (2, 4)));
        }
    });
    drop(old);
    append(&folder, "a.log", "mark five\n");
    assert_eq!(total(&new.renewed().unwrap(), "mark"), 5);
    assert_eq!(indexes(&folder), 2, "the unused index is removed");
}

#[test]
fn another_process_finds_the_snapshot_by_its_hashes() {
    let folder = Folder::new(&[("a.log", b"mark one\nmark two\n"), ("b.log", b"mark three\n"), ("empty.log", b"")]);
    let first = opened(&folder);
    let (files, snapshot) = (first.files().listed, first.snapshot());
    append(&folder, "a.log", "mark four\n");
    folder.write("c.log", b"mark five\n");
    let other = opened(&folder);
    assert_eq!(total(&other, "mark"), 5);
    let same = other.as_of(&files).unwrap();
    assert_eq!((total(&same, "mark"), same.snapshot().id), (3, snapshot.id.clone()));
    assert_eq!(first.record("a.log", 2).unwrap().text(), same.record("a.log", 2).unwrap().text());
    assert!(same.record("a.log", 3).is_err());
    assert_eq!(Arc::as_ptr(&same.as_of(&files).unwrap()), Arc::as_ptr(&same));
    // Without the index of the first, it is made again from the parts of the files.
    drop((first, same));
    let index = folder.dir.path().join("data");
    std::fs::remove_dir_all(&index).unwrap();
    let again = opened(&folder).as_of(&files).unwrap();
    assert_eq!((total(&again, "mark"), again.snapshot().id), (3, snapshot.id));
}

#[test]
fn a_renamed_file_is_read_at_its_new_name() {
    let folder = Folder::new(&[("auth.log", b"mark one\nmark two\n"), ("b.log", b"mark three\n")]);
    let old = opened(&folder);
    let files = old.files().listed;
    let path = |name: &str| folder.evidence().join(name);
    std::fs::rename(path("auth.log"), path("auth.log.1")).unwrap();
    folder.write("auth.log", b"mark 4\n");
    assert_eq!(total(&old, "mark"), 3);
    assert_eq!(old.record("auth.log", 2).unwrap().text(), "mark two");
    assert!(old.files().notes.is_empty(), "nothing is lost");
    let new = old.renewed().unwrap();
    assert_eq!(total(&new, "mark"), 4);
    let same = new.as_of(&files).unwrap();
    assert_eq!(same.record("auth.log", 2).unwrap().text(), "mark two");
}

#[test]
fn emptied_and_removed_files_are_blind_spots_and_the_others_are_searched() {
    for how in ["emptied", "removed", "rewritten"] {
        let folder = Folder::new(&[("a.log", b"mark one\nmark two\n"), ("b.log", b"mark three\n")]);
        let catalog = opened(&folder);
        let files = catalog.files().listed;
        let path = folder.evidence().join("a.log");
        match how {
            "emptied" => std::fs::write(&path, "").unwrap(),
            "removed" => std::fs::remove_file(&path).unwrap(),
            _ => std::fs::write(&path, "forged 1\nmark two\nand more\n").unwrap(),
        }
        let tools = tools(&catalog);
        let answer = call(&tools, "search", r#"{"terms":["mark"]}"#);
        assert_eq!((&answer["total"], &answer["total_is_exact"]), (&1.into(), &false.into()), "{how}");
        assert_eq!(answer["not_searched"][0]["source"], "a", "{how}");
        assert_eq!(answer["records"][0]["raw"], "mark three", "{how}");
        let listed = call(&tools, "search", r#"{"order":"file"}"#);
        assert_eq!((&listed["returned"], &listed["total_is_exact"]), (&1.into(), &false.into()), "{how}");
        let counted = call(&tools, "count_by", r#"{"field":"message"}"#);
        assert_eq!(counted["total_is_exact"], false, "{how}");
        let notes = catalog.files().notes;
        assert!(notes.len() == 1 && notes[0].blind && notes[0].source == "a.log", "{how}: {notes:?}");
        assert!(notes[0].note.starts_with("what was read is gone: "), "{how}: {notes:?}");
        // Another process that opens the snapshot has the same blind spot.
        let same = opened(&folder).as_of(&files).unwrap();
        assert_eq!(total(&same, "mark"), 1, "{how}");
        assert!(same.files().notes.iter().any(|note| note.blind && note.source == "a.log"), "{how}");
    }
}

#[test]
fn an_investigation_keeps_its_snapshot_and_a_new_one_sees_more() {
    let folder = Folder::new(&[("a.log", b"mark one\n"), ("b.log", b"mark two\n")]);
    let catalog = opened(&folder);
    let of = |case: &str, files: &[casebook_protocol::FileHash]| catalog.for_case(case, files).unwrap();
    assert_eq!(total(&of("first", &[]), "mark"), 2);
    append(&folder, "a.log", "mark three\n");
    assert_eq!(total(&of("first", &[]), "mark"), 2);
    let second = of("second", &[]);
    assert_eq!(total(&second, "mark"), 3);
    append(&folder, "a.log", "mark four\n");
    // Another process takes over both investigations.
    let other = opened(&folder);
    let files = |catalog: &Arc<Catalog>| catalog.files().listed;
    assert_eq!(total(&other.for_case("first", &files(&of("first", &[]))).unwrap(), "mark"), 2);
    assert_eq!(total(&other.for_case("second", &files(&second)).unwrap(), "mark"), 3);
    assert_eq!(total(&other.for_case("third", &[]).unwrap(), "mark"), 4);
    append(&folder, "a.log", "mark five\n");
    assert_eq!(total(&opened(&folder).for_case("third", &[]).unwrap(), "mark"), 4, "before anything was recorded");
    assert_eq!(total(&catalog, "mark"), 2);
}

#[test]
fn few_snapshots_stay_open_and_an_older_one_is_made_again() {
    let folder = Folder::new(&[("a.log", b"mark 0\n")]);
    let catalog = opened(&folder);
    let mut first = Vec::new();
    for n in 1..9u64 {
        append(&folder, "a.log", &format!("mark {n}\n"));
        let of_case = catalog.for_case(&n.to_string(), &[]).unwrap();
        assert_eq!(total(&of_case, "mark"), n + 1);
        if n == 1 {
            first = of_case.files().listed;
        }
    }
    assert!(indexes(&folder) <= 6, "{}", indexes(&folder));
    assert_eq!(total(&catalog.for_case("1", &first).unwrap(), "mark"), 2);
}
