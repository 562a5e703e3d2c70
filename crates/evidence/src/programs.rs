//! What is known of programs and of the folders they are in.

mod harmless;

pub use harmless::is_harmless;

/// What a path ends with, after the last separator of Windows or Unix.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The file name of a program, without a version and `.exe`, in lower case.
pub fn program_name(path: &str) -> String {
    let file = file_name(path.trim_matches('"')).to_ascii_lowercase();
    let file = file.strip_suffix(".exe").unwrap_or(&file);
    file.trim_start_matches('-').trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
}

/// The packages that a package manager was asked for.
pub fn packages(command: &str) -> Vec<String> {
    const MANAGERS: [&str; 12] =
        ["apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "rpm", "zypper", "apk", "pacman", "pip", "npm"];
    const VERBS: [&str; 10] =
        ["install", "upgrade", "dist-upgrade", "full-upgrade", "add", "reinstall", "update", "-i", "-U", "-S"];
    let mut words = command.split_whitespace().skip_while(|word| program_name(word) == "sudo");
    if !words.next().is_some_and(|word| MANAGERS.contains(&program_name(word).as_str())) {
        return Vec::new();
    }
    let asked = words.skip_while(|word| !VERBS.contains(word)).skip(1);
    let name = |word: &&str| {
        !word.starts_with('-') && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.:_".contains(&b))
    };
    asked.filter(name).map(|word| word.split(':').next().unwrap_or(word).to_owned()).collect()
}

/// True for a folder where any user may write.
pub fn brought(path: &str) -> bool {
    const FOLDERS: [&str; 9] = [
        "\\users\\",
        "\\temp\\",
        "\\programdata\\",
        "\\perflogs\\",
        "/tmp/",
        "/dev/shm/",
        "/home/",
        "/users/",
        "/downloads/",
    ];
    let path = path.to_lowercase();
    FOLDERS.iter().any(|folder| path.contains(folder))
}

/// Folders of Windows security software, inside folders where any user may write.
pub fn of_protection(path: &str) -> bool {
    path.to_ascii_lowercase()
        .get(1..)
        .is_some_and(|rest| rest.starts_with(r":\programdata\microsoft\windows defender\"))
}

/// Only an administrator can put a program there.
pub fn of_the_system(path: &str) -> bool {
    const UNIX: [&str; 7] = ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/etc/"];
    const SCRIPTS: [&str; 2] = ["/var/lib/dpkg/info/", "/var/lib/dpkg/tmp.ci/"];
    const WINDOWS: [&str; 3] = [r":\windows\", r":\program files\", r":\program files (x86)\"];
    /// Folders below these paths where any user may create files.
    const OPEN: [&str; 6] = [
        r":\windows\temp\",
        r":\windows\tasks\",
        r":\windows\tracing\",
        r":\windows\system32\tasks\",
        r":\windows\system32\spool\drivers\color\",
        r":\windows\debug\wia\",
    ];
    if path.contains("..") || path.split_whitespace().count() > 6 {
        return false;
    }
    let lower = path.to_ascii_lowercase();
    let starts = |list: &[&str], text: &str| list.iter().any(|begin| text.starts_with(begin));
    let windows = lower.get(1..).is_some_and(|rest| starts(&WINDOWS, rest) && !starts(&OPEN, rest));
    let unix = starts(&UNIX, path) || starts(&SCRIPTS, path);
    (windows || unix && !brought(path)) || of_protection(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_administrator_puts_a_program_into_the_system() {
        for path in ["/usr/bin/apt", r"C:\Windows\System32\netsh.exe", r"C:\Program Files (x86)\A b\c.exe"] {
            assert!(of_the_system(path), "{path}");
        }
        for path in [
            r"C:\a\netsh.exe",
            r"C:\Windows\Temp\a.exe",
            r"C:\Windows\..\a\b.exe",
            "/run/user/1000/gitlab-runner",
            "/var/www/a",
            "/memfd:a",
            "/proc/self/exe",
            "/opt/../tmp/a",
        ] {
            assert!(!of_the_system(path), "{path}");
        }
    }
}
