use std::path::{Path, PathBuf};

use casebook_agent::model::config::Config;
use casebook_evidence::Declared;
use casebook_evidence::formats::LineFormat;
use casebook_runtime::config::{ConfigFault, ConfigFaults, Form, Source, sorted};
use serde_json::json;

use crate::args::Check;
use crate::embedded::TEAM_ENV;
use crate::failure::{Exit, Failure};
use crate::models;
use crate::progress::loaded;
use crate::screen::{RED, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::words;

mod file;
mod formats;
mod schema;
mod sources;
mod team;

pub use schema::schema;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub files: Vec<PathBuf>,
    /// In order of file and line.
    pub faults: Vec<ConfigFault>,
    /// What is valid and needs a look, in the same order.
    pub notices: Vec<ConfigFault>,
    /// The sources.toml files without faults.
    declared: Vec<Declared>,
    /// The formats.toml files without faults.
    formats: Vec<(PathBuf, Vec<LineFormat>)>,
}

impl Found {
    /// Records that `file` was read, and keeps its faults.
    fn keep<T>(&mut self, file: &Path, read: Result<T, ConfigFaults>) -> Option<T> {
        self.files.push(file.to_path_buf());
        read.map_err(|faults| self.faults.extend(faults.0)).ok()
    }

    /// Records a fault at `path` in a file that was parsed.
    fn at(&mut self, form: Form, file: &Path, path: &[&str], what: &str) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        self.faults.push(Source::new(form, file, &text).fault(path, what));
    }

    fn fault(&mut self, file: &Path, line: usize, what: impl Into<String>) {
        self.faults.push(ConfigFault { file: file.to_path_buf(), line, what: what.into() });
    }
}

pub(super) async fn run(data: &Path, args: &Check, screen: &mut Screen) -> Result<Exit, Failure> {
    if let Some(format) = args.schema {
        screen.line(schema(format).trim_end());
        return Ok(Exit::Done);
    }
    let mut paths = args.paths.clone();
    let models = models::file(args.models.as_deref());
    if paths.is_empty() {
        paths.extend(std::env::var_os(TEAM_ENV).filter(|team| !team.is_empty()).map(PathBuf::from));
    }
    if paths.is_empty() && models.is_none() {
        return Err(Failure::usage(
            "nothing to check",
            format!(
                "name a team folder or a file, or set {TEAM_ENV}; `casebook check --help` lists the kinds of files"
            ),
        ));
    }
    let mut found = check(&paths, models.as_deref(), &|name| std::env::var(name).ok());
    if let Some(evidence) = &args.evidence {
        let mut stop = stop::listen()?;
        let mut declared = found.declared.first().cloned().unwrap_or_default();
        declared.formats = found.formats.iter().flat_map(|(_, formats)| formats.clone()).collect();
        let catalog = loaded(evidence, data, None, &declared, &mut stop).await?;
        sources::compare(&catalog, &mut found);
        formats::compare(&catalog, &mut found);
    }
    report(&found, args.json, screen);
    Ok(if found.faults.is_empty() { Exit::Done } else { Exit::Usage })
}

/// Checks `paths` (files and team folders) and the models file; `variable` reads environment variables.
pub fn check(paths: &[PathBuf], models: Option<&Path>, variable: &dyn Fn(&str) -> Option<String>) -> Found {
    let mut found = Found::default();
    let config: Option<Config> = models.and_then(|file| file::models(file, &mut found));
    for path in paths {
        if path.is_dir() {
            team::check(path, config.as_ref(), variable, &mut found);
        } else if Some(path.as_path()) != models {
            file::check(path, config.as_ref(), variable, &mut found);
        }
    }
    found.faults = sorted(std::mem::take(&mut found.faults));
    found.notices = sorted(std::mem::take(&mut found.notices));
    found
}

fn report(found: &Found, as_json: bool, screen: &mut Screen) {
    if as_json {
        let all = |faults: &[ConfigFault]| -> Vec<_> {
            faults.iter().map(|f| json!({"file": f.file, "line": f.line, "what": f.what})).collect()
        };
        let result = json!({"files": found.files, "faults": all(&found.faults), "notices": all(&found.notices)});
        // Serialisation fails only for paths that are not UTF-8.
        screen.line(serde_json::to_string_pretty(&result).unwrap_or_default());
        return;
    }
    for (faults, colour) in [(&found.faults, RED), (&found.notices, YELLOW)] {
        for fault in faults {
            screen.line(format_args!(
                "{}:{}: {}",
                safe(&fault.file.display().to_string(), 300),
                fault.line,
                paint(colour, safe(&fault.what, 600))
            ));
        }
    }
    let files = words::count(found.files.len() as u64, "file");
    match found.faults.len() {
        0 if found.files.len() == 1 => screen.line("1 file is valid"),
        0 => screen.line(format_args!("{files} are valid")),
        n => screen.line(format_args!("{} in {files}", words::count(n as u64, "fault"))),
    }
}
