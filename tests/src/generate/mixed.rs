//! Mixed logs of one day in equal shares: web access, logins, Sysmon, CloudTrail, syslog. They are the noise of a busy
//! network, with one intrusion on the host of [`ALERT`].

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub const ALERT: &str = r#"{"id":"generated-mixed-1","rule":{"title":"Encoded PowerShell started by Word","level":"high"},"event_time":"2026-01-15T12:00:00Z","host":"ws-017.example.org","user":"EXAMPLE\\mara","description":"WINWORD.EXE started powershell.exe with an encoded command on ws-017"}"#;

const DAY: u64 = 86_400_000;

type Dice = ChaCha8Rng;
type Line = fn(&mut Dice, u64, &mut dyn Write) -> io::Result<()>;

/// Writes about `bytes` of logs. Each file has the same size, so that a loader must also share one large file.
pub fn write(folder: &Path, bytes: u64, seed: u64) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let files: [(&str, Line, u64); 5] = [
        ("access.log", web, 190),
        ("auth.log", auth, 97),
        ("sysmon.ndjson", sysmon, 700),
        ("cloudtrail.ndjson", cloudtrail, 900),
        ("syslog", syslog, 105),
    ];
    for (number, (name, line, size)) in files.into_iter().enumerate() {
        let mut dice = Dice::seed_from_u64(seed ^ number as u64);
        let mut out = BufWriter::new(File::create(folder.join(name))?);
        let steps = (bytes / 5 / size).max(200);
        for step in 0..steps {
            let ms = step * DAY / steps;
            line(&mut dice, ms, &mut out)?;
            if step == steps / 2 && name == "sysmon.ndjson" {
                intrusion(&mut out)?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

fn below(dice: &mut Dice, end: u64) -> u64 {
    dice.random_range(0..end)
}

fn any<'a>(dice: &mut Dice, all: &[&'a str]) -> &'a str {
    all.get(below(dice, all.len() as u64) as usize).copied().unwrap_or_default()
}

fn clock(ms: u64) -> (u64, u64, u64, u64) {
    (ms / 3_600_000 % 24, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
}

fn iso(ms: u64) -> String {
    let (h, m, s, ms) = clock(ms);
    format!("2026-01-15T{h:02}:{m:02}:{s:02}.{ms:03}Z")
}

fn web(dice: &mut Dice, ms: u64, out: &mut dyn Write) -> io::Result<()> {
    const PAGES: [&str; 10] = [
        "/",
        "/login",
        "/static/js/app.3f9c.js",
        "/static/css/site.css",
        "/api/v1/items",
        "/api/v1/items/search",
        "/images/logo.png",
        "/health",
        "/account/orders",
        "/docs/getting-started.html",
    ];
    const AGENTS: [&str; 6] = [
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15",
        "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "kube-probe/1.30",
        "okhttp/4.12.0",
    ];
    let (h, m, s, _) = clock(ms);
    let status = any(dice, &["200", "200", "200", "200", "200", "200", "304", "302", "404", "403"]);
    let method = any(dice, &["GET", "GET", "GET", "GET", "GET", "POST"]);
    let (page, agent) = (any(dice, &PAGES), any(dice, &AGENTS));
    let (net, host, query, size) = (below(dice, 200), below(dice, 250), below(dice, 1 << 40), below(dice, 90_000));
    let from = if below(dice, 2) == 0 { "https://www.example.org/" } else { "-" };
    writeln!(
        out,
        r#"198.51.{net}.{host} - - [15/Jan/2026:{h:02}:{m:02}:{s:02} +0000] "{method} {page}?id={query:x}&page={} HTTP/1.1" {status} {size} "{from}" "{agent}""#,
        query % 90
    )
}

fn auth(dice: &mut Dice, ms: u64, out: &mut dyn Write) -> io::Result<()> {
    let (h, m, s, _) = clock(ms);
    let (host, user, pid) = (below(dice, 60), below(dice, 200), 800 + below(dice, 60_000));
    let (net, end, port) = (below(dice, 4), below(dice, 250), 1024 + below(dice, 60_000));
    write!(out, "Jan 15 {h:02}:{m:02}:{s:02} srv-{host:03} ")?;
    match below(dice, 12) {
        0 => writeln!(out, "sshd[{pid}]: Failed password for user{user} from 10.0.{net}.{end} port {port} ssh2"),
        1 | 2 => writeln!(
            out,
            "sshd[{pid}]: Accepted publickey for user{user} from 10.0.{net}.{end} port {port} ssh2: ED25519 SHA256:{:x}",
            below(dice, u64::MAX)
        ),
        3 | 4 => writeln!(out, "sshd[{pid}]: Connection closed by 10.0.{net}.{end} port {port} [preauth]"),
        5 => writeln!(
            out,
            "sshd[{pid}]: pam_unix(sshd:session): session opened for user user{user}(uid={user}) by (uid=0)"
        ),
        6 => writeln!(out, "sshd[{pid}]: pam_unix(sshd:session): session closed for user user{user}"),
        7 | 8 => writeln!(out, "CRON[{pid}]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)"),
        9 => writeln!(out, "CRON[{pid}]: pam_unix(cron:session): session closed for user root"),
        10 => writeln!(
            out,
            "sudo: user{user} : TTY=pts/{} ; PWD=/home/user{user} ; USER=root ; COMMAND=/usr/bin/systemctl status app-{end}",
            net
        ),
        _ => writeln!(out, "systemd-logind[612]: New session {pid} of user user{user}."),
    }
}

fn syslog(dice: &mut Dice, ms: u64, out: &mut dyn Write) -> io::Result<()> {
    let (h, m, s, _) = clock(ms);
    let (host, pid, number) = (below(dice, 60), 300 + below(dice, 60_000), below(dice, 1 << 48));
    let (net, end) = (below(dice, 4), below(dice, 250));
    write!(out, "Jan 15 {h:02}:{m:02}:{s:02} srv-{host:03} ")?;
    match below(dice, 10) {
        0 | 1 => {
            writeln!(out, "systemd[1]: Started app-worker@{}.service - Application worker {}.", pid % 90, pid % 90)
        }
        2 => writeln!(out, "systemd[1]: logrotate.service: Deactivated successfully."),
        3 => writeln!(
            out,
            "kernel: [{}.{:06}] eth0: renamed from veth{:07x}",
            number % 900_000,
            number % 1_000_000,
            number % (1 << 28)
        ),
        4 => writeln!(
            out,
            "dhclient[{pid}]: DHCPACK of 10.0.{net}.{end} from 10.0.{net}.1 (xid=0x{:x})",
            number % (1 << 32)
        ),
        5 => writeln!(out, "postfix/smtpd[{pid}]: connect from mail-{end}.example.net[192.0.2.{end}]"),
        6 => writeln!(
            out,
            "postfix/qmgr[{pid}]: {number:012X}: from=<news-{end}@example.net>, size={}, nrcpt=1 (queue active)",
            number % 90_000
        ),
        7 => writeln!(out, "CRON[{pid}]: (root) CMD (/usr/lib/sysstat/debian-sa1 {net} {end})"),
        8 => writeln!(
            out,
            "dockerd[901]: time=\"{}\" level=info msg=\"ignoring event\" container={number:012x}{number:012x} module=libcontainerd",
            iso(ms)
        ),
        _ => writeln!(
            out,
            "nginx[{pid}]: upstream server temporarily disabled while connecting, client: 10.0.{net}.{end}, request {number:x}"
        ),
    }
}

/// Image, command line (with `%` for a number) and image of the parent.
const PROGRAMS: [(&str, &str, &str); 14] = [
    (
        "C:\\\\Windows\\\\System32\\\\svchost.exe",
        "C:\\\\Windows\\\\system32\\\\svchost.exe -k netsvcs -p -s Schedule%",
        "C:\\\\Windows\\\\System32\\\\services.exe",
    ),
    (
        "C:\\\\Program Files\\\\Google\\\\Chrome\\\\Application\\\\chrome.exe",
        "\\\"C:\\\\Program Files\\\\Google\\\\Chrome\\\\Application\\\\chrome.exe\\\" --type=renderer --field-trial-handle=%,i --lang=en-US",
        "C:\\\\Program Files\\\\Google\\\\Chrome\\\\Application\\\\chrome.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\backgroundTaskHost.exe",
        "\\\"C:\\\\Windows\\\\system32\\\\backgroundTaskHost.exe\\\" -ServerName:App.AppX%.mca",
        "C:\\\\Windows\\\\System32\\\\svchost.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\conhost.exe",
        "\\\\??\\\\C:\\\\Windows\\\\system32\\\\conhost.exe 0x%",
        "C:\\\\Windows\\\\System32\\\\cmd.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\cmd.exe",
        "C:\\\\Windows\\\\system32\\\\cmd.exe /c dir /b C:\\\\ProgramData\\\\Agent\\\\jobs\\\\%",
        "C:\\\\Program Files\\\\Agent\\\\agent.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\WindowsPowerShell\\\\v1.0\\\\powershell.exe",
        "powershell.exe -NonInteractive -File C:\\\\Scripts\\\\inventory.ps1 -Run %",
        "C:\\\\Program Files\\\\Agent\\\\agent.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\wbem\\\\WmiPrvSE.exe",
        "C:\\\\Windows\\\\system32\\\\wbem\\\\wmiprvse.exe -secured -Embedding %",
        "C:\\\\Windows\\\\System32\\\\svchost.exe",
    ),
    (
        "C:\\\\Program Files\\\\Microsoft Office\\\\root\\\\Office16\\\\OUTLOOK.EXE",
        "\\\"C:\\\\Program Files\\\\Microsoft Office\\\\root\\\\Office16\\\\OUTLOOK.EXE\\\" /restore %",
        "C:\\\\Windows\\\\explorer.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\taskhostw.exe",
        "taskhostw.exe Install $(Arg%)",
        "C:\\\\Windows\\\\System32\\\\svchost.exe",
    ),
    (
        "C:\\\\Program Files\\\\Git\\\\cmd\\\\git.exe",
        "git.exe fetch --all --prune origin-%",
        "C:\\\\Program Files\\\\Build\\\\runner.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\SearchProtocolHost.exe",
        "\\\"C:\\\\Windows\\\\system32\\\\SearchProtocolHost.exe\\\" Global\\\\UsGthrFltPipeMssGthrPipe% 1 -2147483646",
        "C:\\\\Windows\\\\System32\\\\SearchIndexer.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\net.exe",
        "net use Z: \\\\\\\\files.example.org\\\\share%",
        "C:\\\\Windows\\\\System32\\\\cmd.exe",
    ),
    (
        "C:\\\\Program Files\\\\nodejs\\\\node.exe",
        "\\\"C:\\\\Program Files\\\\nodejs\\\\node.exe\\\" C:\\\\app\\\\server.js --port %",
        "C:\\\\Windows\\\\System32\\\\services.exe",
    ),
    (
        "C:\\\\Windows\\\\System32\\\\msiexec.exe",
        "C:\\\\Windows\\\\system32\\\\msiexec.exe /V %",
        "C:\\\\Windows\\\\System32\\\\services.exe",
    ),
];

fn sysmon(dice: &mut Dice, ms: u64, out: &mut dyn Write) -> io::Result<()> {
    let number = below(dice, PROGRAMS.len() as u64) as usize;
    let Some((image, command, parent)) = PROGRAMS.get(number).copied() else { return Ok(()) };
    let (host, user, value) = (below(dice, 300), below(dice, 400), below(dice, 1 << 40));
    let (pid, time) = (1000 + below(dice, 60_000), iso(ms));
    let head = |id: u32| {
        format!(
            r#"{{"@timestamp":"{time}","Channel":"Microsoft-Windows-Sysmon/Operational","Provider":"Microsoft-Windows-Sysmon","EventID":{id},"Computer":"ws-{host:03}.example.org","EventRecordID":{},"UtcTime":"{}","ProcessGuid":"{{{value:08X}-5A1C-0000-0010-{value:012X}}}","ProcessId":{pid},"Image":"{image}","User":"EXAMPLE\\user{user}""#,
            value % 10_000_000,
            time.replace('T', " ").trim_end_matches('Z')
        )
    };
    match below(dice, 10) {
        0..=3 => {
            let command = command.replace('%', &format!("{value:x}"));
            let hash = format!("{:016X}{:016X}", value.wrapping_mul(0x9e37_79b9_7f4a_7c15), number);
            writeln!(
                out,
                r#"{},"CommandLine":"{command}","CurrentDirectory":"C:\\Windows\\system32\\","IntegrityLevel":"Medium","Hashes":"SHA256={hash}{hash},IMPHASH={hash}","OriginalFileName":"{}","Company":"-","ParentImage":"{parent}","ParentCommandLine":"{parent} -start {}","ParentProcessId":{}}}"#,
                head(1),
                image.rsplit('\\').next().unwrap_or_default(),
                value % 1000,
                pid / 2
            )
        }
        4 | 5 => writeln!(
            out,
            r#"{},"Protocol":"tcp","Initiated":"true","SourceIp":"10.1.{}.{}","SourcePort":{},"DestinationIp":"198.51.100.{}","DestinationHostname":"cdn-{}.example.net","DestinationPort":{}}}"#,
            head(3),
            value % 4,
            value % 250,
            1024 + value % 60_000,
            value % 240,
            value % 90,
            any(dice, &["443", "443", "80", "8443"])
        ),
        6 => writeln!(
            out,
            r#"{},"TargetFilename":"C:\\Users\\user{user}\\AppData\\Local\\Temp\\{value:x}.tmp","CreationUtcTime":"{time}"}}"#,
            head(11)
        ),
        7 => writeln!(
            out,
            r#"{},"EventType":"SetValue","TargetObject":"HKU\\S-1-5-21-{value}\\Software\\Microsoft\\Office\\16.0\\Common\\Session{user}","Details":"DWORD (0x{:08x})"}}"#,
            head(13),
            value % (1 << 32)
        ),
        8 => writeln!(
            out,
            r#"{},"QueryName":"host-{}.example.net","QueryStatus":"0","QueryResults":"::ffff:198.51.100.{};"}}"#,
            head(22),
            value % 5000,
            value % 240
        ),
        _ => writeln!(
            out,
            r#"{},"ImageLoaded":"C:\\Windows\\System32\\{}.dll","Signed":"true","Signature":"Microsoft Windows","SignatureStatus":"Valid","FileVersion":"10.0.{}"}}"#,
            head(7),
            any(dice, &["ntdll", "kernel32", "user32", "combase", "crypt32", "wininet", "mscoree", "amsi"]),
            value % 20_000
        ),
    }
}

fn cloudtrail(dice: &mut Dice, ms: u64, out: &mut dyn Write) -> io::Result<()> {
    const CALLS: [(&str, &str, &str); 10] = [
        ("ec2.amazonaws.com", "DescribeInstances", "true"),
        ("s3.amazonaws.com", "GetObject", "true"),
        ("s3.amazonaws.com", "PutObject", "false"),
        ("sts.amazonaws.com", "AssumeRole", "true"),
        ("kms.amazonaws.com", "Decrypt", "true"),
        ("logs.amazonaws.com", "PutLogEvents", "false"),
        ("dynamodb.amazonaws.com", "Query", "true"),
        ("ecr.amazonaws.com", "BatchGetImage", "true"),
        ("iam.amazonaws.com", "GetRole", "true"),
        ("lambda.amazonaws.com", "Invoke", "false"),
    ];
    let call =
        CALLS.get(below(dice, 10) as usize).copied().unwrap_or(("ec2.amazonaws.com", "DescribeInstances", "true"));
    let (source, name, read) = call;
    let (role, value, end) = (below(dice, 40), below(dice, 1 << 48), below(dice, 250));
    let agent = any(
        dice,
        &[
            "aws-sdk-go/1.55.5 (go1.22.5; linux; amd64)",
            "Boto3/1.35.10 md/Botocore#1.35.10 ua/2.0 os/linux",
            "aws-internal/3",
            "console.amazonaws.com",
        ],
    );
    let region = any(dice, &["eu-central-1", "eu-west-1", "us-east-1"]);
    let error = if value % 200 == 0 { r#","errorCode":"AccessDenied","errorMessage":"not authorized""# } else { "" };
    writeln!(
        out,
        r#"{{"eventVersion":"1.10","userIdentity":{{"type":"AssumedRole","principalId":"AROAEXAMPLE{role:04}:session-{}","arn":"arn:aws:sts::123456789012:assumed-role/app-{role}/session-{}","accountId":"123456789012","accessKeyId":"ASIA{value:012X}","sessionContext":{{"sessionIssuer":{{"type":"Role","principalId":"AROAEXAMPLE{role:04}","arn":"arn:aws:iam::123456789012:role/app-{role}","accountId":"123456789012","userName":"app-{role}"}},"attributes":{{"creationDate":"2026-01-15T00:00:00Z","mfaAuthenticated":"false"}}}}}},"eventTime":"{}","eventSource":"{source}","eventName":"{name}","awsRegion":"{region}","sourceIPAddress":"10.2.{}.{end}","userAgent":"{agent}"{error},"requestParameters":{{"bucketName":"data-{role}","key":"in/{value:x}/part-{end}","maxResults":100}},"responseElements":null,"requestID":"{value:012x}-{end:04x}","eventID":"{value:012x}-{role:04x}-{end:04x}","readOnly":{read},"eventType":"AwsApiCall","managementEvent":true,"recipientAccountId":"123456789012","eventCategory":"Management"}}"#,
        value % 900,
        value % 900,
        &format!("{}Z", iso(ms).get(..19).unwrap_or_default()),
        role % 8
    )
}

fn intrusion(out: &mut dyn Write) -> io::Result<()> {
    for (ms, pid, parent_pid, image, command, parent) in [
        (
            43_200_000,
            7001,
            6400,
            "powershell.exe",
            "powershell.exe -nop -w hidden -enc SQBFAFgAIAAoAE4AZQB3AC0ATwBiAGoAZQBjAHQAKQA=",
            "C:\\\\Program Files\\\\Microsoft Office\\\\root\\\\Office16\\\\WINWORD.EXE",
        ),
        (43_207_000, 7002, 7001, "whoami.exe", "whoami /all", "C:\\\\Windows\\\\System32\\\\powershell.exe"),
        (
            43_215_000,
            7003,
            7001,
            "rundll32.exe",
            "rundll32.exe C:\\\\Windows\\\\System32\\\\comsvcs.dll, MiniDump 644 C:\\\\Windows\\\\Temp\\\\l.dmp full",
            "C:\\\\Windows\\\\System32\\\\powershell.exe",
        ),
    ] {
        writeln!(
            out,
            r#"{{"@timestamp":"{}","Channel":"Microsoft-Windows-Sysmon/Operational","Provider":"Microsoft-Windows-Sysmon","EventID":1,"Computer":"ws-017.example.org","EventRecordID":{pid},"UtcTime":"{}","ProcessGuid":"{{0000{pid}-5A1C-0000-0010-00000000{pid}}}","ProcessId":{pid},"Image":"C:\\Windows\\System32\\{image}","User":"EXAMPLE\\mara","CommandLine":"{command}","CurrentDirectory":"C:\\Users\\mara\\","IntegrityLevel":"Medium","OriginalFileName":"{image}","ParentImage":"{parent}","ParentCommandLine":"{parent}","ParentProcessId":{parent_pid}}}"#,
            iso(ms),
            iso(ms).replace('T', " ").trim_end_matches('Z')
        )?;
    }
    Ok(())
}
