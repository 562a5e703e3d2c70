//! The kind of a record, by well-known event numbers or else by its facets.

use std::collections::BTreeMap;

use super::{Class, Facet, audit_prefix, event_id, last, outer};

type Values = BTreeMap<Facet, String>;

pub(super) fn of(values: &Values, fields: &BTreeMap<String, String>, text: &str) -> Class {
    let has = |facet| values.contains_key(&facet);
    let action = values.get(&Facet::Action).map(|a| a.to_ascii_lowercase()).unwrap_or_default();
    if judged(fields) {
        return Class::Alert;
    }
    numbered(fields, text)
        .or_else(|| audited(values, fields))
        .or_else(|| fields.keys().find_map(|path| traced(path)))
        .or_else(|| named(&action, text))
        .or_else(|| {
            let names: Vec<String> = fields.keys().map(|k| last(k, 1)).collect();
            let any = |wanted: &[&str]| names.iter().any(|n| wanted.contains(&n.as_str()));
            Some(
                if any(&["awsregion", "eventsource", "operationname", "workload", "auditid", "objectref", "methodname"])
                {
                    Class::ApiCall
                } else if any(&["qtypename", "qtype", "queryname", "rrname"]) {
                    Class::DnsQuery
                } else if any(&["cipher"]) && any(&["requesttype"]) || any(&["authsuccess"]) {
                    // A Kerberos ticket (which names a cipher, as TLS sessions do) or an SSH session.
                    match values.get(&Facet::Outcome).map(String::as_str) {
                        Some("failure") => Class::LogonFailure,
                        _ => Class::Authentication,
                    }
                } else if any(&["package"]) && any(&["action"]) {
                    Class::PackageOperation
                } else if any(&["ja3", "cipher", "validationstatus"]) {
                    Class::TlsSession
                } else if any(&["facility"]) && any(&["message"]) {
                    // A syslog message, in any transport.
                    return worded(text);
                } else if any(&["certificateserial", "certificatesubject"])
                    || fields.keys().any(|path| last(path, 2) == "certificate.subject")
                {
                    Class::Certificate
                } else if has(Facet::HttpMethod) && has(Facet::Url) || any(&["transdepth"]) && has(Facet::HttpStatus) {
                    // A capture of one direction has only the response.
                    Class::HttpRequest
                } else if has(Facet::Command)
                    && (has(Facet::Parent) || has(Facet::ParentCommand) || any(&["ppid", "argc", "execid"]))
                {
                    Class::ProcessStart
                } else if has(Facet::DstIp) && has(Facet::DstPort) {
                    Class::NetworkConnection
                } else {
                    return None;
                },
            )
        })
        // Windows events have fields with names such as `Post Clean Status`.
        .or_else(|| worded(text).filter(|class| *class != Class::HttpRequest || event_id(fields).is_none()))
        .unwrap_or(Class::Other)
}

fn numbered(fields: &BTreeMap<String, String>, text: &str) -> Option<Class> {
    let id = event_id(fields)?;
    let head = text.get(..text.len().min(4096)).unwrap_or(text);
    // Another log may name the Sysmon program. Sysmon event ids have at most two digits.
    if id.len() <= 2 && head.to_ascii_lowercase().contains("sysmon") {
        return Some(match id {
            "1" => Class::ProcessStart,
            "5" => Class::ProcessEnd,
            "3" => Class::NetworkConnection,
            "6" => Class::KernelModule,
            "7" => Class::ImageLoad,
            "8" | "10" | "25" => Class::ProcessAccess,
            "9" => Class::FileRead,
            "11" | "15" => Class::FileCreate,
            "23" | "26" => Class::FileDelete,
            "12" | "13" | "14" => Class::RegistryChange,
            "16" => Class::ConfigChange,
            "19" | "20" | "21" => Class::ScheduledTask,
            "22" => Class::DnsQuery,
            _ => Class::Other,
        });
    }
    // Many providers use small event ids.
    if head.contains("TerminalServices") && matches!(id, "21" | "22" | "23" | "24" | "25" | "39" | "40" | "1149") {
        return Some(Class::Authentication);
    }
    Some(match id {
        "4688" => Class::ProcessStart,
        "4689" => Class::ProcessEnd,
        "4624" | "4634" | "4647" | "4648" | "4672" | "4768" | "4769" | "4770" | "4776" | "4778" | "4779" | "4800"
        | "4801" => Class::Authentication,
        "4625" | "4771" | "4740" => Class::LogonFailure,
        "4720" | "4722" | "4723" | "4724" | "4725" | "4726" | "4728" | "4729" | "4732" | "4733" | "4738" | "4741"
        | "4731" | "4734" | "4735" | "4737" | "4742" | "4756" | "4767" | "4781" => Class::AccountChange,
        "4697" | "7045" | "7036" | "7040" => Class::ServiceChange,
        "4698" | "4699" | "4700" | "4701" | "4702" | "106" | "140" | "141" => Class::ScheduledTask,
        "5156" => Class::NetworkConnection,
        "5140" | "5145" | "4663" => Class::FileRead,
        "4657" => Class::RegistryChange,
        "4103" | "4104" | "24577" => Class::Script,
        "800" if head.contains("PowerShell") => Class::Script,
        "1102" | "104" | "4719" | "4616" | "33205" => Class::ConfigChange,
        // A port was bound, without a connection.
        "5158" => Class::Other,
        _ => return None,
    })
}

/// True if the system call starts a program, by name or by number on x86-64, ARM and x86.
fn starts(arch: &str, call: &str) -> bool {
    match arch {
        "c000003e" | "x86_64" => matches!(call, "59" | "322" | "execve" | "execveat"),
        "c00000b7" | "aarch64" => matches!(call, "221" | "281" | "execve" | "execveat"),
        "40000003" | "i386" => matches!(call, "11" | "358" | "execve" | "execveat"),
        _ => matches!(call, "execve" | "execveat"),
    }
}

/// An alert: it has a name and usually a severity.
fn judged(fields: &BTreeMap<String, String>) -> bool {
    let names: Vec<String> = fields.keys().filter(|path| outer(path)).map(|path| last(path, 1)).collect();
    let any = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.as_str()));
    let graded = any(&["alertseverity", "severity", "alertseveritylevel"])
        && any(&["alertname", "alerttitle", "systemalertid", "alertid", "alerttype", "vendororiginalid"]);
    // Notices of Zeek have no severity. An API call with the name of an alert is still a call.
    let called = any(&["auditid", "eventsource", "objectref", "protopayload", "eventname", "operationname", "channel"]);
    // Snort and Suricata, maybe in a field of a collector.
    let signed = fields.keys().any(|path| last(path, 2) == "alert.signature");
    (graded || signed || any(&["note"]) && any(&["suppressfor"])) && !called
}

/// By the name that Tetragon puts around a record.
fn traced(path: &str) -> Option<Class> {
    Some(match path.split('.').next()? {
        "process_exec" => Class::ProcessStart,
        "process_exit" => Class::ProcessEnd,
        "process_connect" | "process_accept" | "process_listen" | "process_close" => Class::NetworkConnection,
        "process_loader" => Class::ImageLoad,
        _ => return None,
    })
}

/// By the type of a Linux audit record.
fn audited(values: &Values, fields: &BTreeMap<String, String>) -> Option<Class> {
    let prefix = audit_prefix(fields)?;
    let field = |name: &str| fields.get(&format!("{prefix}{name}")).map(String::as_str);
    let kind = field("type")?;
    let failed = values.get(&Facet::Outcome).is_some_and(|o| o == "failure");
    Some(match kind {
        "EXECVE" | "USER_CMD" => Class::ProcessStart,
        "SYSCALL" if starts(field("arch").unwrap_or_default(), field("syscall").unwrap_or_default()) => {
            Class::ProcessStart
        }
        "USER_LOGIN" | "USER_AUTH" | "USER_ERR" | "USER_ACCT" | "LOGIN" if failed => Class::LogonFailure,
        "USER_LOGIN" | "USER_AUTH" | "USER_ERR" | "USER_ACCT" | "LOGIN" | "USER_START" | "USER_END" | "USER_LOGOUT"
        | "CRED_ACQ" | "CRED_DISP" | "CRED_REFR" => Class::Authentication,
        "ADD_USER" | "DEL_USER" | "ADD_GROUP" | "DEL_GROUP" | "USER_MGMT" | "GRP_MGMT" | "USER_CHAUTHTOK"
        | "ACCT_LOCK" | "ACCT_UNLOCK" => Class::AccountChange,
        "SERVICE_START" | "SERVICE_STOP" => Class::ServiceChange,
        "CONFIG_CHANGE" | "DAEMON_START" | "DAEMON_END" | "DAEMON_CONFIG" | "DAEMON_ABORT" | "MAC_STATUS"
        | "MAC_CONFIG_CHANGE" | "MAC_POLICY_LOAD" | "NETFILTER_CFG" => Class::ConfigChange,
        "KERN_MODULE" => Class::KernelModule,
        _ => return None,
    })
}

/// Names of actions, the most specific first.
const ACTIONS: &[(&[&str], Class)] = &[
    (
        &[
            "process_start",
            "command.input",
            "session.command",
            "process_exec",
            "process_create",
            "processcreate",
            "processrollup",
            "processstart",
            "execve",
        ],
        Class::ProcessStart,
    ),
    (&["process_exit", "process_end", "process_terminat", "processterminat", "processexit"], Class::ProcessEnd),
    (
        &["init_module", "free_module", "delete_module", "module_request", "find_module", "kernel_module"],
        Class::KernelModule,
    ),
    (
        &[
            "failed_login",
            "login.failed",
            "login_failed",
            "login_failure",
            "logon_failed",
            "userloginfailed",
            "challenge_failure",
            "authentication_failed",
        ],
        Class::LogonFailure,
    ),
    (
        &[
            "consolelogin",
            "user.login",
            "login_success",
            "login.success",
            "userloggedin",
            "sign-in",
            "sign_in",
            "signin",
            "user.session.start",
            "new_device",
            "user.logout",
            "two_factor",
            "device_verification",
        ],
        Class::Authentication,
    ),
    (&["access_token", "oauth_", "api_key", "credential", "accesskey"], Class::TokenEvent),
    (
        &["add_member", "createuser", "create_user", "reset_password", "add member", "update user", "add user"],
        Class::AccountChange,
    ),
    (&["processapicall", "threadapicall", "remotethread"], Class::ProcessAccess),
    (&["filecreat", "file_create", "filemodif", "filerenam", "file_write"], Class::FileCreate),
    (&["filedelet", "file_delete"], Class::FileDelete),
    (&["registryvalue", "registrykey", "registry_"], Class::RegistryChange),
    (&["imageload", "image_load", "moduleload"], Class::ImageLoad),
    (&["logonfail", "logon_fail"], Class::LogonFailure),
    (&["logonsuccess", "logonattempt", "logon_success"], Class::Authentication),
    (&["powershellcommand", "scriptcontent", "scriptexec"], Class::Script),
    (&["connect"], Class::NetworkConnection),
];

fn named(action: &str, text: &str) -> Option<Class> {
    // The kernel reads modules like other files.
    if action.contains("security_kernel_read_file") && text.contains(".ko") {
        return Some(Class::KernelModule);
    }
    ACTIONS.iter().find(|(words, _)| words.iter().any(|word| action.contains(word))).map(|(_, class)| *class)
}

/// For text logs: the wording of well-known programs.
fn worded(text: &str) -> Option<Class> {
    let text = text.to_ascii_lowercase();
    let any = |wanted: &[&str]| wanted.iter().any(|w| text.contains(w));
    Some(
        if any(&["failed password", "authentication failure", "invalid user", "failed none", "maximum authentication"])
        {
            Class::LogonFailure
        } else if any(&[
            "accepted password",
            "accepted publickey",
            "session opened for user",
            "session closed for user",
            "new session",
            "accepted keyboard",
        ]) {
            Class::Authentication
        } else if any(&["command="]) {
            Class::ProcessStart
        } else if any(&["useradd", "usermod", "groupadd", "new user:", "password changed", "passwd["]) {
            Class::AccountChange
        } else if any(&[
            "start-date:",
            "commandline: apt",
            " install ",
            " status installed ",
            " status half",
            " configure ",
            " trigproc ",
            "dpkg",
            "unpack ",
        ]) {
            Class::PackageOperation
        } else if any(&["cron[", "(root) cmd", "anacron"]) {
            Class::ScheduledTask
        } else if any(&["systemd[", "started ", "stopped "]) {
            Class::ServiceChange
        } else if any(&["\"get ", "\"post ", "\"head ", "\"put ", " connect ", " get http"]) {
            Class::HttpRequest
        } else {
            return None;
        },
    )
}
