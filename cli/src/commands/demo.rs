//! `casebook demo`

use std::io::Read;
use std::path::Path;

use casebook_report::save;
use flate2::read::GzDecoder;

use crate::args::{Demo, EvidenceArgs, Investigate, Serve};
use crate::failure::{Exit, Failure};
use crate::screen::{DIM, Screen, paint};

/// Each file of the case: its path, and its bytes as gzip.
static FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/demo.rs"));

pub(super) async fn run(data: &Path, args: &Demo, screen: &mut Screen) -> Result<Exit, Failure> {
    let case = data.join("demo");
    unpack(&case)?;
    screen.line(paint(DIM, format_args!("the alert and the logs of the demo are in {}", case.display())));
    if args.serve {
        let alert = case.join("alert.json");
        let sources =
            EvidenceArgs { evidence: Some(case.join("evidence")), team: Some(case.join("team")), rules: Vec::new() };
        let wanted =
            Serve { sources, place: args.place.clone(), models: args.models.clone(), budget: args.budget.clone() };
        return super::serve::with_alert(data, &wanted, Some(&alert), screen).await;
    }
    let investigate = Investigate {
        alert: case.join("alert.json"),
        sources: EvidenceArgs {
            evidence: Some(case.join("evidence")),
            team: Some(case.join("team")),
            rules: Vec::new(),
        },
        out: Some(args.out.clone()),
        verbose: args.verbose,
        models: args.models.clone(),
        budget: args.budget.clone(),
    };
    super::investigate::run(data, &investigate, screen).await
}

/// Writes the case into `folder`. A file that is there with the same bytes stays as it is, so that its index does.
fn unpack(folder: &Path) -> Result<(), Failure> {
    for part in ["evidence", "team"].map(|part| folder.join(part)) {
        std::fs::create_dir_all(&part).map_err(|e| Failure::write(&part, &e))?;
    }
    for (name, packed) in FILES {
        let (path, mut text) = (folder.join(name), String::new());
        GzDecoder::new(*packed).read_to_string(&mut text).map_err(Failure::defect)?;
        if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            save::whole(&path, &text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_demo_equals_the_case_that_the_tests_use() {
        let folder = tempfile::tempdir().unwrap();
        unpack(folder.path()).unwrap();
        let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/package-hook-kmod");
        let names = |folder: &Path| {
            let found = std::fs::read_dir(folder.join("evidence")).unwrap();
            found.map(|entry| entry.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(names(folder.path()), names(&case));
        for (name, packed) in FILES {
            let read = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
            assert_eq!(read(folder.path()), read(&case), "{name}");
            assert!(packed.len() < 128 * 1024, "{name} has {} bytes", packed.len());
        }
        let evidence = folder.path().join("evidence/auth.log");
        let before = std::fs::metadata(&evidence).unwrap().modified().unwrap();
        unpack(folder.path()).unwrap();
        assert_eq!(std::fs::metadata(&evidence).unwrap().modified().unwrap(), before, "nothing is written twice");
    }
}
