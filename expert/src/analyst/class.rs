//! What sort of thing a record is about, by well-known event numbers first and by its facets else.

use std::collections::BTreeMap;

use super::facet::{Class, Facet, event_id, last};

type Values = BTreeMap<Facet, String>;

pub(crate) fn of(values: &Values, fields: &BTreeMap<String, String>, text: &str) -> Class {
    let has = |facet| values.contains_key(&facet);
    let action = values.get(&Facet::Action).map(|a| a.to_ascii_lowercase()).unwrap_or_default();
    numbered(fields, text)
        .or_else(|| named(&action, text))
        .or_else(|| {
            let names: Vec<String> = fields.keys().map(|k| last(k, 1)).collect();
            let any = |wanted: &[&str]| names.iter().any(|n| wanted.contains(&n.as_str()));
            Some(
                if any(&[
                    "awsregion",
                    "eventsource",
                    "operationname",
                    "workload",
                    "auditid",
                    "objectref",
                    "protopayload",
                ]) {
                    Class::ApiCall
                } else if any(&["qtypename", "qtype", "queryname", "rrname"]) {
                    Class::DnsQuery
                } else if any(&["ja3", "cipher", "validationstatus"]) {
                    Class::TlsSession
                } else if any(&["certificateserial", "certificatesubject"]) {
                    Class::Certificate
                } else if has(Facet::HttpMethod) && has(Facet::Url) {
                    Class::HttpRequest
                } else if has(Facet::Command) && (has(Facet::Parent) || any(&["ppid", "argc", "execid"])) {
                    Class::ProcessStart
                } else if has(Facet::DstIp) && has(Facet::DstPort) {
                    Class::NetworkConnection
                } else {
                    return None;
                },
            )
        })
        .or_else(|| worded(text))
        .unwrap_or(Class::Other)
}

fn numbered(fields: &BTreeMap<String, String>, text: &str) -> Option<Class> {
    let id = event_id(fields)?;
    let head = text.get(..text.len().min(4096)).unwrap_or(text);
    // Another log may name the sensor's program: its own numbers have two digits at most.
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
    // Small numbers are used by many providers.
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
        | "4742" | "4756" | "4767" | "4781" => Class::AccountChange,
        "4697" | "7045" | "7036" | "7040" => Class::ServiceChange,
        "4698" | "4699" | "4700" | "4701" | "4702" | "106" | "140" | "141" => Class::ScheduledTask,
        "5156" | "5158" => Class::NetworkConnection,
        "5140" | "5145" | "4663" => Class::FileRead,
        "4657" => Class::RegistryChange,
        "4103" | "4104" | "24577" => Class::Script,
        "1102" | "104" | "4719" => Class::ConfigChange,
        _ => return None,
    })
}

fn named(action: &str, text: &str) -> Option<Class> {
    let any = |wanted: &[&str]| wanted.iter().any(|w| action.contains(w));
    Some(if any(&["process_start", "process_exec", "process_create", "processcreate", "execve", "auoms_execve"]) {
        Class::ProcessStart
    } else if any(&["process_exit", "process_end", "process_terminat"]) {
        Class::ProcessEnd
    } else if any(&[
        "init_module",
        "finit_module",
        "free_module",
        "delete_module",
        "module_request",
        "find_module",
        "kernel_module",
    ]) || (any(&["security_kernel_read_file"]) && text.contains(".ko"))
    {
        Class::KernelModule
    } else if any(&[
        "failed_login",
        "login_failed",
        "logon_failed",
        "userloginfailed",
        "challenge_failure",
        "authentication_failed",
    ]) {
        Class::LogonFailure
    } else if any(&[
        "consolelogin",
        "user.login",
        "userloggedin",
        "sign-in",
        "sign_in",
        "signin",
        "user.session.start",
        "new_device",
        "user.logout",
        "two_factor",
        "device_verification",
    ]) {
        Class::Authentication
    } else if any(&["access_token", "oauth_", "api_key", "credential", "accesskey"]) {
        Class::TokenEvent
    } else if any(&[
        "add_member",
        "createuser",
        "create_user",
        "reset_password",
        "add member",
        "update user",
        "add user",
    ]) {
        Class::AccountChange
    } else if any(&["network_connect", "connect", "connection"]) {
        Class::NetworkConnection
    } else {
        return None;
    })
}

/// For logs of sentences: the words that the well-known programs write.
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
