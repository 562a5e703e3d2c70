use std::collections::BTreeMap;

use casebook_protocol::CallId;

use super::super::facet::Facets;
use super::*;

fn rec(fields: &[(&str, &str)]) -> Rec {
    let fields: BTreeMap<String, String> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let facets = Facets::read(&fields, fields.get("message").map_or("", String::as_str));
    let call = CallId::new("r1.investigate.identity.t1.0").unwrap();
    Rec::of(call, fields, facets)
}

#[track_caller]
fn check(recs: &[Rec], expect: &str) {
    let (main, others) = recs.split_first().unwrap();
    assert_eq!(claim(main, &others.iter().collect::<Vec<_>>(), None, false, &|_| true), expect);
}

#[test]
fn who_ran_a_command_as_whom_and_what_was_denied_is_told() {
    let sudo = [
        ("message", "mara : TTY=pts/1 ; USER=root ; COMMAND=/usr/bin/id"),
        ("user", "mara"),
        ("target_user", "root"),
        ("command", "/usr/bin/id"),
    ];
    check(&[rec(&sudo)], "Ran `/usr/bin/id` by `mara` as `root`");
    let denied = [&sudo[..], &[("outcome", "user NOT in sudoers")]].concat();
    check(&[rec(&denied)], "Tried to run `/usr/bin/id` by `mara` as `root`, which was denied");
}

#[test]
fn a_program_and_arguments_that_stand_apart_are_told_apart() {
    let exec = rec(&[
        ("process_exec.process.binary", "/usr/bin/nsenter"),
        ("process_exec.process.arguments", "-t 1 -m bash"),
        ("process_exec.parent.binary", "/bin/bash"),
    ]);
    let together = |text: &str| !text.contains("nsenter -t");
    let told = claim(&exec, &[], None, false, &together);
    assert_eq!(told, "`/bin/bash` started `/usr/bin/nsenter` with `-t 1 -m bash`");
}

#[test]
fn a_packet_is_no_connection() {
    let packet = [("src", "192.0.2.5"), ("dst", "192.0.2.6"), ("dport", "8080")];
    check(&[rec(&packet)], "Connection from `192.0.2.5` to `192.0.2.6` port `8080`");
    check(
        &[rec(&[&packet[..], &[("tcp_flags", "24")]].concat())],
        "Packet from `192.0.2.5` to `192.0.2.6` port `8080`",
    );
}

#[test]
fn a_connection_that_carries_much_says_so_and_an_alert_says_whose_it_is() {
    let sent = |bytes: &str| {
        rec(&[("id.orig_h", "192.0.2.5"), ("id.resp_h", "192.0.2.6"), ("id.resp_p", "443"), ("orig_bytes", bytes)])
    };
    check(&[sent("718478")], "Connection from `192.0.2.5` to `192.0.2.6` port `443`, sending `718478` bytes");
    check(&[sent("900")], "Connection from `192.0.2.5` to `192.0.2.6` port `443`");
    let ssh = [
        ("id.orig_h", "192.0.2.5"),
        ("id.resp_h", "192.0.2.6"),
        ("id.resp_p", "22"),
        ("auth_success", "true"),
        ("client", "SSH-2.0-PuTTY_Release_0.62"),
    ];
    check(&[rec(&ssh)], "Sign-in from `192.0.2.5` to `192.0.2.6` port `22`, which succeeded");
    let alert = [
        ("AlertName", "Password Spray"),
        ("AlertSeverity", "High"),
        ("ProviderName", "IPC"),
        ("UserPrincipalName", "mara@corp.example"),
    ];
    check(&[rec(&alert)], "Alert `Password Spray` of `IPC` about `mara@corp.example`");
    let told = claim(&rec(&alert), &[], None, false, &|_| true);
    assert!(told.starts_with(casebook_trust::claim::JUDGEMENT), "the Director knows it by that");
}

#[test]
fn each_answer_to_a_request_that_was_made_again_is_told() {
    let put = |status: &str, url: &str| {
        rec(&[("method", "PUT"), ("uri", url), ("status_code", status), ("id.orig_h", "10.0.0.1")])
    };
    let again = [put("401", "/a"), put("201", "/a"), put("201", "/a"), put("500", "/b")];
    check(&again, "HTTP request `PUT` `/a` from `10.0.0.1`, answered `401`, then `201`; with it `/b`");
    check(&[put("200", "/a"), put("200", "/a")], "HTTP request `PUT` `/a` from `10.0.0.1`, answered `200`");
}

#[test]
fn what_has_no_words_of_its_own_is_told_by_its_values() {
    let event = [
        ("Event.System.EventID.#text", "15457"),
        ("Event.System.Provider.#attributes.Name", "MSSQL$A"),
        ("Event.System.Computer", "db1"),
        ("Event.EventData.Data.#text.0", "xp_cmdshell"),
        ("Event.EventData.Data.#text.1", "0"),
        ("Event.EventData.Data.#text.2", "1"),
    ];
    check(&[rec(&event)], "Event `15457` of `MSSQL$A` with `xp_cmdshell`, `0`, `1` on `db1`");
    let package = [
        ("EventID", "4622"),
        ("Channel", "Security"),
        ("Computer", "pc1"),
        ("SecurityPackageName", r"C:\Windows\system32\wdigest.DLL : WDigest"),
    ];
    check(
        &[rec(&package)],
        r"Security package loaded by the logon service: `C:\Windows\system32\wdigest.DLL : WDigest` on `pc1` (event `4622`)",
    );
    let certificate = [
        ("ts", "2026-03-01T10:00:00Z"),
        ("certificate.serial", "06F40D"),
        ("certificate.subject", "CN=a.example"),
        ("certificate.issuer", "CN=CA,O=Example"),
    ];
    check(&[rec(&certificate)], "Certificate of `CN=a.example` issued by `CN=CA,O=Example`");
}

#[test]
fn a_message_of_syslog_that_was_seen_on_its_way_is_told_and_not_the_way() {
    let seen = [
        ("id.orig_h", "192.0.2.5"),
        ("id.resp_h", "192.0.2.6"),
        ("id.resp_p", "514"),
        ("facility", "LOCAL0"),
        ("severity", "ERR"),
        ("message", "Security Risk Found! Trojan Horse"),
    ];
    check(&[rec(&seen)], "Recorded: `Security Risk Found! Trojan Horse`");
}

#[test]
fn an_event_of_google_workspace_is_told_by_its_name() {
    let event = [
        ("actor.email", "mara@example.org"),
        ("ipAddress", "192.0.2.5"),
        ("events.0.type", "login"),
        ("events.0.name", "login_success"),
    ];
    let told = claim(&rec(&event), &[], None, false, &|_| true);
    assert!(told.starts_with("`login_success`") && told.contains("`mara@example.org`"), "{told}");
}
