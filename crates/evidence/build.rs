//! Packs the rules of Casebook, `rules/`, into the program.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../rules").canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table = String::from("[\n");
    for file in files {
        let name = file.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
        writeln!(table, "({name:?}, include_str!({:?})),", file.display().to_string())?;
    }
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("rules.rs"), table + "]\n")?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}
