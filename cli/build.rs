//! Packs the demo case into the program, so that `casebook demo` runs wherever the program is.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let case = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../tests/cases/package-hook-kmod");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", case.display());
    let mut names = vec!["alert.json".to_owned(), "team/sources.toml".to_owned()];
    for entry in std::fs::read_dir(case.join("evidence"))? {
        names.push(format!("evidence/{}", entry?.file_name().to_string_lossy()));
    }
    names.sort();
    let mut table = String::from("[\n");
    for (n, name) in names.iter().enumerate() {
        let mut packed = GzEncoder::new(std::fs::File::create(out.join(format!("{n}.gz")))?, Compression::best());
        packed.write_all(&std::fs::read(case.join(name))?)?;
        packed.finish()?;
        writeln!(table, "({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{n}.gz\")).as_slice()),")?;
    }
    std::fs::write(out.join("demo.rs"), table + "]\n")?;
    Ok(())
}
