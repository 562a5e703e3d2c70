//! What a record says was done.

use casebook_protocol::{ActKind, Alert};

use super::row::Row;
use crate::facet::{Class, Facet};
use crate::programs::{self, program_name};

/// None for records of no act: ends of processes, reads, judgements of other products, and writes and loads in places
/// that nothing runs from.
pub(super) fn kind_of(row: &Row) -> Option<ActKind> {
    let object = || row.facets.get(Facet::Object).unwrap_or_default();
    let none = match row.class() {
        Class::ProcessEnd | Class::FileRead | Class::Alert => true,
        Class::FileCreate | Class::FileDelete => !object().is_empty() && !is_sensitive(object()),
        Class::ImageLoad => is_of_the_system(row.field(&["imageloaded"]).unwrap_or_else(object)),
        _ => false,
    };
    (!none).then(|| kind_of_class(row.class()))
}

pub(super) const fn kind_of_class(class: Class) -> ActKind {
    match class {
        Class::ProcessStart | Class::Script => ActKind::Process,
        Class::ProcessAccess => ActKind::ProcessAccess,
        Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession => ActKind::Connection,
        Class::FileCreate | Class::FileDelete => ActKind::FileWrite,
        Class::KernelModule => ActKind::ModuleLoad,
        Class::RegistryChange | Class::ConfigChange | Class::PackageOperation => ActKind::ConfigChange,
        Class::Authentication | Class::LogonFailure => ActKind::SignIn,
        Class::AccountChange => ActKind::AccountChange,
        Class::ApiCall | Class::TokenEvent => ActKind::ApiCall,
        Class::ServiceChange | Class::ScheduledTask => ActKind::ServiceChange,
        Class::ProcessEnd
        | Class::FileRead
        | Class::ImageLoad
        | Class::Email
        | Class::Usb
        | Class::Certificate
        | Class::Alert
        | Class::Other => ActKind::Other,
    }
}

/// Words in the title of an alert, and the kind of act that the rule claims. The most specific kind first.
const CLAIMS: [(ActKind, &[&str]); 9] = [
    (ActKind::ModuleLoad, &["kernel module", "module load", "driver load", "rootkit", "insmod"]),
    (ActKind::ProcessAccess, &["injection", "lsass", "process access", "remote thread"]),
    (
        ActKind::AccountChange,
        &[
            "account creat",
            "user creat",
            "new user",
            "new account",
            "user added",
            "added to",
            "password reset",
            "group member",
        ],
    ),
    (
        ActKind::ServiceChange,
        &[
            "service install",
            "new service",
            "service creat",
            "scheduled task",
            "cron",
            "autostart",
            "run key",
            "startup",
        ],
    ),
    (ActKind::SignIn, &["sign-in", "sign in", "signin", "login", "logon", "brute force", "spray"]),
    (
        ActKind::FileWrite,
        &["file creat", "file writ", "file modif", "file drop", "file change", "web shell", "webshell"],
    ),
    (ActKind::Connection, &["connection", "beacon", "command and control", "outbound", "certificate", "dns", "tls"]),
    (ActKind::Process, &["process", "command", "shell", "execution", "script", "powershell"]),
    (ActKind::ApiCall, &["credential", "bucket", "iam", "api", "policy", "role"]),
];

/// The kind of act that the rule of an alert claims, by its title. None if no word of the title says it.
pub(super) fn claimed(alert: &Alert) -> Option<ActKind> {
    let title = alert.title.to_lowercase();
    CLAIMS.iter().find(|(_, words)| words.iter().any(|word| title.contains(word))).map(|(kind, _)| *kind)
}

/// Texts that all known records of the kind have. Empty for kinds that are too frequent on a host to belong to the
/// alert.
pub(super) const fn terms(kind: ActKind) -> &'static [&'static str] {
    match kind {
        ActKind::ModuleLoad => &[
            "init_module",
            "finit_module",
            "delete_module",
            "free_module",
            "module_arg",
            "kern_module",
            "kernel_module",
            "driverload",
            "driver loaded",
            "imageloaded",
            ".ko",
        ],
        ActKind::AccountChange => &[
            "useradd",
            "usermod",
            "userdel",
            "groupadd",
            "passwd",
            "new user",
            "add_user",
            "add_group",
            "usr_mgmt",
            "user_mgmt",
            "grp_mgmt",
            "4720",
            "4722",
            "4724",
            "4728",
            "4732",
            "4738",
            "4756",
        ],
        ActKind::ServiceChange => {
            &["7045", "4697", "4698", "4702", "service_start", "systemctl", "scheduledtask", "schtasks", "cron"]
        }
        ActKind::Process
        | ActKind::Connection
        | ActKind::FileWrite
        | ActKind::ConfigChange
        | ActKind::ProcessAccess
        | ActKind::SignIn
        | ActKind::ApiCall
        | ActKind::Other => &[],
    }
}

const INTERPRETERS: [&str; 17] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ash",
    "python",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "tclsh",
    "cscript",
    "wscript",
    "powershell",
    "pwsh",
];

pub(super) fn is_interpreter(program: &str) -> bool {
    INTERPRETERS.contains(&program_name(program).as_str())
}

/// The script that an interpreter runs. None if the program is not an interpreter, or if its command has the code.
pub(super) fn script<'c>(program: &str, command: &'c str) -> Option<&'c str> {
    let mut rest = command.split_whitespace();
    let called = rest.next()?;
    if !is_interpreter(program) && !is_interpreter(called) {
        return None;
    }
    let code = |word: &str| {
        let word = word.to_ascii_lowercase();
        word.starts_with('-') && !word.starts_with("--") && word.contains(['c', 'e']) && word != "-e"
            || matches!(word.as_str(), "-command" | "-encodedcommand" | "/c" | "--eval")
    };
    for word in rest {
        if code(word) {
            return None;
        }
        if !(word.starts_with('-') || word.starts_with('/') && word.len() <= 3) {
            return Some(word.trim_matches('"')).filter(|word| word.contains(['/', '\\']));
        }
    }
    None
}

/// The packages that a package manager was asked for.
pub(super) fn packages(row: &Row) -> Vec<String> {
    row.command().filter(|_| row.starts()).map(programs::packages).unwrap_or_default()
}

/// Folders that only an administrator fills.
pub(super) fn is_of_the_system(path: &str) -> bool {
    const UNIX: [&str; 7] = ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/etc/"];
    const WINDOWS: [&str; 3] = [r":\windows\", r":\program files\", r":\program files (x86)\"];
    let lower = path.to_ascii_lowercase();
    let windows = lower.get(1..).is_some_and(|rest| WINDOWS.iter().any(|begin| rest.starts_with(begin)));
    !path.contains("..") && !lower.contains(r"\temp\") && (windows || UNIX.iter().any(|begin| path.starts_with(begin)))
}

/// Places from which something runs or by which a person gets in, and everything that can be run. A relative path may
/// be anywhere.
pub(super) fn is_sensitive(path: &str) -> bool {
    const PLACES: [&str; 22] = [
        "/etc/",
        "/usr/",
        "/bin/",
        "/sbin/",
        "/lib",
        "/boot/",
        "/opt/",
        "/root/",
        "/var/spool/cron",
        "/var/lib/dpkg/",
        "/.ssh/",
        "/.config/autostart",
        "/.bash",
        "/.profile",
        "/.zsh",
        "/www/",
        "initr",
        r"\windows\",
        r"\program files",
        r"\startup\",
        r"\start menu\",
        r"\tasks\",
    ];
    const RUNS: [&str; 24] = [
        ".sh", ".py", ".pl", ".rb", ".so", ".ko", ".service", ".timer", ".exe", ".dll", ".sys", ".ps1", ".bat", ".cmd",
        ".vbs", ".js", ".hta", ".scr", ".lnk", ".jar", ".jsp", ".php", ".aspx", ".msi",
    ];
    let lower = path.to_ascii_lowercase();
    let absolute = lower.starts_with('/') || lower.get(1..3) == Some(":\\");
    !absolute || PLACES.iter().any(|place| lower.contains(place)) || RUNS.iter().any(|end| lower.ends_with(end))
}
