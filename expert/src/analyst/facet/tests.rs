use super::*;

fn facets(fields: &[(&str, &str)]) -> Facets {
    Facets::read(&fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(), "")
}

#[track_caller]
fn check(fields: &[(&str, &str)], facet: Facet, expect: Option<&str>) {
    assert_eq!(facets(fields).get(facet), expect);
}

#[test]
fn fields_of_many_makes_are_understood() {
    check(
        &[("SyslogMessage.EventData.Image", "/bin/bash"), ("ProcessName", "sysmon")],
        Facet::Process,
        Some("/bin/bash"),
    );
    check(
        &[("process_kprobe.process.binary", "/usr/sbin/insmod"), ("process_kprobe.process.arguments", "x.ko")],
        Facet::Command,
        Some("/usr/sbin/insmod x.ko"),
    );
    check(&[("process_kprobe.parent.binary", "/usr/bin/sudo")], Facet::Parent, Some("/usr/bin/sudo"));
    check(
        &[("process_exec.process.binary", "/bin/bash"), ("process_exec.parent.arguments", "--root /run")],
        Facet::Command,
        None,
    );
    check(&[("id.orig_h", "10.0.0.1")], Facet::SrcIp, Some("10.0.0.1"));
    check(&[("id_resp_p", "445")], Facet::DstPort, Some("445"));
    check(&[("userIdentity.arn", "arn:x"), ("userIdentity.userName", "mara")], Facet::User, Some("arn:x"));
    check(&[("errorCode", "AccessDenied")], Facet::Outcome, Some("failure"));
    check(&[("User", "-")], Facet::User, None);
    check(&[("message.USER", "root"), ("user", "jonas")], Facet::User, Some("jonas"));
}
#[test]
fn what_a_command_was_given_is_its_object_and_the_name_of_a_parameter_is_none() {
    let command = [
        ("Operation", "Add-MailboxPermission"),
        ("Parameters.0.Name", "DomainController"),
        ("Parameters.0.Value", ""),
        ("Parameters.1.Name", "Identity"),
        ("Parameters.1.Value", "corp.example/boss"),
    ];
    check(&command, Facet::Object, Some("corp.example/boss"));
    check(&command[..3], Facet::Object, None);
}

/// A browser's name, and that of somebody who tries to sign in, are words of whoever is recorded.
#[test]
fn what_somebody_wrote_into_a_field_goes_after_the_fields_of_the_record() {
    let forged = "src_ip=10.1.2.3 user=boss EventID=1102";
    let agent = [
        ("remote_addr", "203.0.113.66"),
        ("remote_user", "eve"),
        ("http_user_agent", forged),
        ("http_user_agent.src_ip", "10.1.2.3"),
        ("http_user_agent.clientip", "10.1.2.3"),
        ("http_user_agent.EventID", "1102"),
    ];
    check(&agent, Facet::SrcIp, Some("203.0.113.66"));
    assert_ne!(facets(&agent).class, Some(Class::ConfigChange));
    let json = [
        ("client_ip", "203.0.113.66"),
        ("user_agent", r#"{"src_ip":"10.1.2.3"}"#),
        ("user_agent.srcip", "10.1.2.3"),
        ("AuditData", r#"{"UserId":"mara"}"#),
        ("AuditData.UserId", "mara"),
        ("Identity", "7f3c"),
    ];
    check(&json, Facet::SrcIp, Some("203.0.113.66"));
    check(&json, Facet::User, Some("mara"));
    let ecs = [
        ("source.ip", "203.0.113.66"),
        ("user.name", "eve"),
        ("user_agent.original", "a=1 user=boss srcip=10.1.2.3 EventID=4720 EventType=audit_failure"),
        ("user_agent.original.user", "boss"),
        ("user_agent.original.srcip", "10.1.2.3"),
        ("user_agent.original.EventID", "4720"),
        ("user_agent.original.EventType", "audit_failure"),
    ];
    check(&ecs, Facet::SrcIp, Some("203.0.113.66"));
    check(&ecs, Facet::User, Some("eve"));
    check(&ecs, Facet::Outcome, None);
    assert_ne!(facets(&ecs).class, Some(Class::AccountChange));
    let fields: BTreeMap<String, String> = ecs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    assert_eq!(event_id(&fields), None);
    let command = "env process.binary=/bin/ls process.arguments=-la /tmp/evil";
    let ran =
        [("CommandLine", command), ("CommandLine.process.binary", "/bin/ls"), ("CommandLine.process.arguments", "-la")];
    check(&ran, Facet::Command, Some(command));
    let user = [("user", "[x src_ip=10.1.2.3 a=b"), ("user.src_ip", "10.1.2.3"), ("client_ip", "203.0.113.66")];
    check(&user, Facet::SrcIp, Some("203.0.113.66"));
    let login = [("username", "Accepted password for boss"), ("username.user", "boss"), ("client_ip", "203.0.113.66")];
    check(&login, Facet::User, Some("Accepted password for boss"));
    let collected = [("message", "user=mara x=y"), ("message.user", "mara"), ("hostname", "a")];
    check(&collected, Facet::User, Some("mara"));
}

#[test]
fn the_table_that_a_record_was_exported_from_is_no_action() {
    let exported = [("TenantId", "t"), ("TimeGenerated", "2026-01-01"), ("Type", "Syslog")];
    check(&exported, Facet::Action, None);
    check(&[("Type", "Syslog")], Facet::Action, Some("Syslog"));
}

#[test]
fn the_first_line_of_a_request_holds_its_address() {
    check(&[("request", "GET /a?b=c d HTTP/1.1")], Facet::Url, Some("/a?b=c d"));
    check(&[("url", "/get HTTP/1.1")], Facet::Url, Some("/get HTTP/1.1"));
}

#[test]
fn an_outcome_of_windows_is_read_in_each_notation() {
    for success in ["0x0", "0x00000000", "0", "Audit Success", "AUDIT_SUCCESS"] {
        check(&[("Status", success)], Facet::Outcome, Some("success"));
    }
    check(&[("Status", "0xC000006D")], Facet::Outcome, Some("failure"));
    check(&[("Status", "0x18")], Facet::Outcome, Some("failure"));
    check(&[("winlog.keywords.0", "Audit Failure")], Facet::Outcome, Some("failure"));
    check(&[("Keywords", "0x8010000000000000"), ("Status", "0x0")], Facet::Outcome, Some("failure"));
    check(&[("Keywords", "-9214364837600034816")], Facet::Outcome, Some("success"));
    check(&[("EventType", "INFO")], Facet::Outcome, None);
}

#[test]
fn an_address_that_is_mapped_is_told_as_what_it_is() {
    check(&[("IpAddress", "::ffff:192.0.2.7")], Facet::SrcIp, Some("192.0.2.7"));
    check(&[("IpAddress", "fe80::ffff:1")], Facet::SrcIp, Some("fe80::ffff:1"));
    check(&[("UserData.EventXML.Address", "192.0.2.9")], Facet::SrcIp, Some("192.0.2.9"));
    check(&[("UserData.EventXML.Address", "LOCAL")], Facet::SrcIp, None);
}
#[test]
fn who_writes_a_record_is_not_who_acted() {
    let fields = [("UserID", "S-1-5-18"), ("AccountName", "SYSTEM"), ("Image", "C:\\a.exe")];
    let fields: BTreeMap<String, String> = fields.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    assert_eq!(Facets::read(&fields, "Microsoft-Windows-Sysmon").get(Facet::User), None);
    assert_eq!(Facets::read(&fields, "PowerShell").get(Facet::User), Some("S-1-5-18"));
    let task = [("TaskContent.Principals.Principal.UserId", "S-1-5-18"), ("SubjectUserName", "mara")];
    check(&task, Facet::User, Some("mara"));
}

#[test]
fn who_wrote_a_record_is_nothing_that_was_acted_on() {
    let fields = [
        ("Event.System.Provider.#attributes.Name", "Microsoft-Windows-Security-Auditing"),
        ("Event.System.EventID", "4662"),
        ("Event.EventData.SubjectUserName", "mara"),
    ];
    check(&fields, Facet::Object, None);
}

#[test]
fn the_number_of_an_event_has_a_name_in_each_language_of_windows() {
    for name in ["EventID", "Ereignis-ID", "イベント ID", "ID de l’événement"] {
        let fields = [(name.to_owned(), "4688".to_owned())].into_iter().collect();
        assert_eq!(event_id(&fields), Some("4688"), "{name}");
    }
}

#[test]
fn what_stands_in_a_command_is_no_number_of_an_event() {
    let fields = [("ProcessCommandLine", "cmd /c a"), ("ProcessCommandLine.Ereignis-ID", "4703")];
    let fields = fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    assert_eq!(event_id(&fields), None);
}

#[test]
fn the_name_of_a_field_makes_no_event_of_windows_a_request() {
    let fields = [("EventID", "1116"), ("Post Clean Status", "0")];
    let fields = fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    assert_eq!(Facets::read(&fields, r#"{"EventID":"1116","Post Clean Status":"0"}"#).class, Some(Class::Other));
}
