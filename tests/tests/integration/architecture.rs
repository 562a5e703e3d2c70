//! The dependency rules of `docs/ARCHITECTURE.md`, proved from the manifest and the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The platform that this is built on.
fn platform() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// The packages that each of our packages reaches through normal dependencies.
fn reach() -> BTreeMap<String, BTreeSet<String>> {
    // Only what this platform needs was fetched to build this test: a machine that is new has nothing else.
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &platform()])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |id: &Value| {
        let package = metadata["packages"].as_array().unwrap().iter().find(|p| p["id"] == *id).unwrap();
        package["name"].as_str().unwrap().to_owned()
    };
    let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let normal = |d: &&Value| d["dep_kinds"].as_array().unwrap().iter().any(|k| k["kind"].is_null());
        let deps = node["deps"].as_array().unwrap().iter().filter(normal).map(|d| name(&d["pkg"]));
        direct.entry(name(&node["id"])).or_default().extend(deps);
    }
    let ours = direct.keys().filter(|n| n.starts_with("casebook-")).cloned();
    ours.map(|package| {
        let mut reached = BTreeSet::new();
        let mut open = vec![package.clone()];
        while let Some(next) = open.pop() {
            for dep in direct.get(&next).into_iter().flatten() {
                if reached.insert(dep.clone()) {
                    open.push(dep.clone());
                }
            }
        }
        (package, reached)
    })
    .collect()
}

/// What each of our packages depends on directly among our packages, and the packages that may depend on it: the
/// arrows of `docs/ARCHITECTURE.md`. A new arrow fails here first.
const ARROWS: [(&str, &[&str]); 15] = [
    ("protocol", &[]),
    // Tables of test cases, for tests alone.
    ("table", &[]),
    ("trust", &["protocol"]),
    ("runtime", &["protocol"]),
    ("evidence", &["protocol"]),
    ("report", &["protocol", "trust"]),
    ("index", &["protocol", "runtime"]),
    ("agent", &["protocol", "runtime", "trust"]),
    ("hub", &["protocol", "runtime", "trust"]),
    ("api", &["agent", "hub", "index", "protocol", "report", "runtime", "trust"]),
    ("director", &["agent", "protocol", "runtime", "trust"]),
    ("critic", &["agent", "protocol", "runtime", "trust"]),
    ("expert", &["agent", "evidence", "protocol", "runtime", "trust"]),
    (
        "cli",
        &[
            "agent", "api", "critic", "director", "evidence", "expert", "hub", "index", "protocol", "report",
            "runtime", "trust",
        ],
    ),
    (
        "tests",
        &[
            "agent", "api", "cli", "critic", "director", "evidence", "expert", "hub", "index", "protocol", "report",
            "runtime", "trust",
        ],
    ),
];

#[test]
fn packages_depend_along_the_arrows() {
    let reach = reach();
    let ours: BTreeSet<&str> = reach.keys().filter_map(|n| n.strip_prefix("casebook-")).collect();
    assert_eq!(ours, ARROWS.iter().map(|(name, _)| *name).collect());
    for (package, allowed) in ARROWS {
        let reached = &reach[&format!("casebook-{package}")];
        let reached: Vec<&str> = reached.iter().filter_map(|n| n.strip_prefix("casebook-")).collect();
        assert_eq!(reached, allowed, "{package}");
    }
}

#[test]
fn libraries_stay_where_they_are_used() {
    let reach = reach();
    let absent = |package: &str, libraries: &[&str]| {
        let reached = &reach[&format!("casebook-{package}")];
        for library in libraries {
            assert!(!reached.contains(*library), "{package} reaches {library}");
        }
    };
    let shells = ["tokio", "actix", "async-nats", "bincode", "rusqlite", "futures-util"];
    for pure in ["protocol", "trust"] {
        absent(pure, &shells);
    }
    absent("report", &["tokio", "actix", "async-nats", "rusqlite"]);
    absent("evidence", &["tokio", "actix", "async-nats"]);
    absent("hub", &["rmcp", "boon"]);
    absent("index", &["rmcp", "boon"]);
    assert!(reach["casebook-runtime"].contains("tokio"), "the test sees dependencies at all");
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The files of our crates that contain `needle` in their code, relative to the workspace.
fn naming(needle: &str) -> BTreeSet<String> {
    let root = root();
    let mut files = Vec::new();
    for member in ["protocol", "crates", "hub", "director", "expert", "critic", "cli"] {
        sources(&root.join(member), &mut files);
    }
    let code = |text: &str| text.lines().filter(|l| !l.trim_start().starts_with("//")).any(|l| l.contains(needle));
    files.retain(|file| !file.components().any(|part| part.as_os_str() == "tests"));
    let hits = files.into_iter().filter(|f| code(&std::fs::read_to_string(f).unwrap()));
    hits.map(|f| f.strip_prefix(&root).unwrap().display().to_string()).collect()
}

#[test]
fn only_the_shell_names_actix() {
    for file in naming("actix") {
        let shell =
            file.ends_with("/src/actor.rs") || file.contains("/src/actor/") || file == "crates/runtime/src/process.rs";
        assert!(shell, "{file} names actix");
    }
    assert!(naming("actix").len() >= 4, "the test sees the shells at all");
}

#[test]
fn each_library_is_named_in_its_module_alone() {
    // What the code names, how many files at least name it, and how their paths begin.
    let cases: [(&str, usize, &[&str]); 7] = [
        ("bincode", 1, &["crates/runtime/src/wire.rs"]),
        ("reqwest::Client", 3, &["crates/agent/src/model/client", "crates/agent/src/mcp/client.rs"]),
        ("axum::", 3, &["crates/api/src/http/"]),
        ("PreEscaped", 0, &[]),
        ("async_nats", 4, &["crates/runtime/src/nats.rs", "crates/runtime/src/nats/"]),
        ("rmcp::", 3, &["crates/agent/src/mcp/"]),
        ("rsigma", 3, &["crates/evidence/src/rules/sigma.rs", "crates/evidence/src/rules/sigma/"]),
    ];
    for (name, least, places) in cases {
        let files = naming(name);
        let there = |file: &String| places.iter().any(|place| file.starts_with(place));
        assert!(files.iter().all(there) && files.len() >= least, "{name}: {files:?}");
    }
}

#[test]
fn pure_deciders_name_no_clock_no_chance_and_no_async() {
    let pure = [
        "crates/agent/src/mcp/guard",
        "crates/agent/src/mcp/outcome",
        "hub/src/decide",
        "hub/src/state",
        "hub/src/flow",
        "hub/src/view",
        "hub/src/roster.rs",
        "crates/agent/src/turn.rs",
        "crates/agent/src/model/client/codec",
        "crates/agent/src/model/dialogue",
        "protocol/src",
        "crates/trust/src",
        "crates/evidence/src/rules/correlate",
        "crates/evidence/src/rules/judgement",
        "crates/evidence/src/rules/taxonomy",
        "crates/evidence/src/rules/view",
    ];
    for needle in ["async fn", ".await", "Timestamp::now", "SystemTime", "Instant::now", "thread_rng", "rand::"] {
        for file in naming(needle) {
            assert!(!pure.iter().any(|p| file.starts_with(p)), "{file} contains {needle}");
        }
    }
}
