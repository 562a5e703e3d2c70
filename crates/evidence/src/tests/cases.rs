//! What must hold of any real evidence. Set `CASEBOOK_CASES` to a folder of cases, each with a folder
//! `evidence`; without it there is nothing to check.

use super::*;

#[test]
fn every_case_loads_and_every_line_is_accounted_for() {
    let Some(cases) = std::env::var_os("CASEBOOK_CASES") else { return };
    let mut seen = 0;
    for case in std::fs::read_dir(cases).unwrap() {
        let evidence = case.unwrap().path().join("evidence");
        if !evidence.is_dir() {
            continue;
        }
        seen += 1;
        let data = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&evidence, &data.path().join("index.sqlite"), &mut |_| {}).unwrap();
        accounted(&catalog, &evidence);
        catalog.sources().iter().for_each(|source| quick_is_whole(&catalog, source));
        catalog.verify().unwrap();
        let ids: Vec<String> = catalog.sources().iter().map(|s| s.id.clone()).collect();
        let tools = EvidenceTools::new(Arc::new(catalog), &ids);
        for id in &ids {
            let described = call(&tools, "describe_source", &serde_json::json!({ "source": id }).to_string());
            assert!(described["fields"].as_array().is_some_and(|f| !f.is_empty()), "{id} in {}", evidence.display());
        }
        let first = call(&tools, "search", r#"{"limit":5,"include_fields":true}"#);
        for record in first["records"].as_array().unwrap() {
            let place = serde_json::json!({ "file": record["file"], "line": record["line"] });
            assert_eq!(call(&tools, "get_record", &place.to_string())["time"], record["time"]);
        }
    }
    assert!(seen > 0, "no folder `evidence` in any case");
}

/// Reading only some fields of a record gives for each what reading all of them gives.
fn quick_is_whole(catalog: &Catalog, source: &Source) {
    use crate::query::{parse_fields, values};
    for line in (1..=source.lines).step_by(7).take(20) {
        let Ok(record) = catalog.record(&source.file, line) else { continue };
        let whole = record.fields();
        for (path, _) in &whole {
            let end = path.rsplit('.').next().unwrap_or(path);
            for wanted in [path.as_str(), end] {
                let some = parse_fields(&record.shape, &record.bytes, &[wanted]);
                assert_eq!(values(&some, wanted), values(&whole, wanted), "{wanted} in {}:{line}", source.file);
            }
        }
    }
}
