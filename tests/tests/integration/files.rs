//! Who may read what Casebook writes, and where it writes to.

use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use casebook_tests::{generate, run};

/// Runs `casebook` in `folder` under umask 022.
fn casebook(folder: &Path, arguments: &str) -> Output {
    let program = run::program("casebook");
    let script = format!("umask 022; exec {} {arguments}", program.display());
    Command::new("sh").args(["-c", &script]).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn done(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Everything below `folder`, itself included.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_path_buf()];
    let mut next = 0;
    while let Some(path) = all.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            all.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    all
}

fn assert_private(folder: &Path) {
    let all = below(folder);
    assert!(all.len() > 3, "{all:?}");
    let open: Vec<_> = all.iter().filter(|path| mode(path) & 0o077 != 0).map(|path| (path, mode(path))).collect();
    assert!(open.is_empty(), "others may read {open:?}");
}

const INVESTIGATE: &str = "investigate alert.json --evidence evidence --data data --out out";

#[test]
fn data_folder_and_its_files_are_for_their_owner_alone_and_a_report_is_not() {
    let case = generate::case().unwrap();
    let folder = case.path();
    // A gzip file has a copy of its text beside the index.
    done(&Command::new("gzip").arg("evidence/access.log").current_dir(folder).output().unwrap());
    let mut running = Command::new("sh");
    let script = format!("umask 022; exec {} {INVESTIGATE} -v", run::program("casebook").display());
    let mut running =
        running.args(["-c", &script]).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0];
    running.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    while !folder.join("data/casebook.db-wal").exists() {
        assert!(running.try_wait().unwrap().is_none(), "it ended too early to look at its files");
    }
    assert_private(&folder.join("data"));
    std::io::copy(running.stdout.as_mut().unwrap(), &mut std::io::sink()).unwrap();
    assert!(running.wait().unwrap().success());
    assert_private(&folder.join("data"));
    assert_eq!(mode(&folder.join("out/report.json")), 0o644);
}

#[test]
fn data_folder_of_an_earlier_version_is_tightened_and_one_with_other_files_is_reported() {
    let case = generate::case().unwrap();
    let folder = case.path();
    done(&casebook(folder, INVESTIGATE));
    let data = folder.join("data");
    let loosen = || {
        for path in below(&data) {
            let mode = if path.is_dir() { 0o755 } else { 0o644 };
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    loosen();
    done(&casebook(folder, "list --data data"));
    for name in ["", "evidence", "casebook.db", "casebook.lock"] {
        assert_eq!(mode(&data.join(name)) & 0o077, 0, "{name:?}");
    }
    loosen();
    std::fs::write(data.join("notes.txt"), "of another program").unwrap();
    let listed = casebook(folder, "list --data data");
    done(&listed);
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(said.contains("chmod 700 it") && said.contains("data"), "{said}");
    assert_eq!((mode(&data), mode(&data.join("notes.txt")), mode(&data.join("casebook.db"))), (0o755, 0o644, 0o600));
}

#[test]
fn files_of_a_cluster_are_for_their_owner_alone() {
    let case = generate::case().unwrap();
    let mut inner = run::cluster().unwrap();
    inner.args(["alert.json", "--evidence", "evidence", "--data", "data", "--out", "out"]);
    let words: Vec<String> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|w| w.to_string_lossy().into_owned())
        .collect();
    let script = format!("umask 022; exec {}", words.join(" "));
    done(&Command::new("sh").args(["-c", &script]).current_dir(case.path()).output().unwrap());
    assert_private(&case.path().join("data"));
    assert_eq!(mode(&case.path().join("out/report.json")), 0o644);
}

#[test]
fn a_report_goes_through_pipes_devices_and_links_and_replaces_only_files() {
    let case = generate::case().unwrap();
    let folder = case.path();
    done(&casebook(folder, INVESTIGATE));
    let listed = casebook(folder, "list --data data");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let id = listed.split_whitespace().find(|word| word.len() == 36).unwrap().to_owned();
    let export = |path: &str| done(&casebook(folder, &format!("export {id} --data data --format json -o {path}")));
    export("whole.json");
    let expected = std::fs::read_to_string(folder.join("whole.json")).unwrap();
    assert_eq!(expected, std::fs::read_to_string(folder.join("out/report.json")).unwrap());

    done(&Command::new("mkfifo").arg("pipe").current_dir(folder).output().unwrap());
    let pipe = folder.join("pipe");
    let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap());
    export("pipe");
    assert_eq!(reader.join().unwrap(), expected);
    assert!(std::fs::symlink_metadata(folder.join("pipe")).unwrap().file_type().is_fifo());

    export("/dev/null");
    assert!(std::fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());

    let script =
        format!("{} export {id} --data data --format json -o /dev/stdout | cat", run::program("casebook").display());
    let piped = Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&piped.stdout), expected);

    std::fs::create_dir(folder.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere/report.json", folder.join("link.json")).unwrap();
    for _ in 0..2 {
        export("link.json");
        assert!(folder.join("link.json").is_symlink());
        assert_eq!(std::fs::read_to_string(folder.join("elsewhere/report.json")).unwrap(), expected);
    }
    // `investigate --out` writes in the same way.
    std::fs::create_dir(folder.join("second")).unwrap();
    std::os::unix::fs::symlink("/dev/null", folder.join("second/report.html")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/kept.md", folder.join("second/report.md")).unwrap();
    done(&casebook(folder, "investigate alert.json --evidence evidence --data data2 --out second"));
    assert!(folder.join("second/report.html").is_symlink() && folder.join("second/report.md").is_symlink());
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(folder.join("elsewhere/kept.md").is_file());
}
