use super::*;
use crate::config;
use crate::service::common::{http, number, servers};

#[derive(Debug, Args)]
struct Options {
    /// Tasks at once
    #[arg(long, value_name = "N", value_parser = number::<usize>(1, 9))]
    at_once: Option<usize>,
    /// What it reads
    #[arg(long, value_name = "FILE")]
    profile: Vec<PathBuf>,
    /// Money
    #[arg(long, value_name = "AMOUNT", value_parser = config::micros)]
    cost: Option<u64>,
}

const PROGRAM: Program = Program { name: "casebook-x", about: "Does x." };

/// What is asked for, with `file` as the settings file.
fn asked(file: &str, variables: &[(&str, &str)], options: &[&str]) -> Result<Asked<Options>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml").display().to_string();
    std::fs::write(&path, file).unwrap();
    let arguments = ["casebook-x", "--config", &path].into_iter().chain(options.iter().copied());
    let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
    let inside = |text: String| text.replace(&format!("{}/", folder.path().display()), "/etc/");
    match PROGRAM.asked(arguments.map(OsString::from), variable) {
        Ok(Asked::Print(text)) => Ok(Asked::Print(inside(text))),
        Ok(serve) => Ok(serve),
        Err(failure) => Err(inside(failure.what)),
    }
}

fn printed(file: &str, variables: &[(&str, &str)], options: &[&str]) -> String {
    match asked(file, variables, options) {
        Ok(Asked::Print(text)) => text,
        other => panic!("it prints nothing: {other:?}"),
    }
}

#[test]
fn options_win_over_variables_and_variables_over_the_file() {
    let file = "drain = 10\nnats = \"nats://file:1\"\nhealth = 8080\nca = \"tls/ca.pem\"\nkey = \"/run/key\"\ncost = 2.5\n\
                profile = [\"a.toml\", \"/b.toml\"]\n";
    let variables = [("CASEBOOK_NATS", "nats://environment:1"), ("CASEBOOK_DRAIN", "20"), ("CASEBOOK_HEALTH", "")];
    let options = ["--nats", "nats://option:1,tls://b", "--at-once", "3", "--cert", "cert.pem"];
    let Ok(Asked::Serve(common, own, _)) = asked(file, &variables, &options) else { panic!("it does not serve") };
    assert_eq!((common.nats.as_str(), common.drain.as_secs()), ("nats://option:1,tls://b", 20));
    assert_eq!(common.health, Some("127.0.0.1:8080".parse().unwrap()), "an empty variable sets nothing");
    assert!(common.ca.is_some_and(|ca| ca.is_absolute() && ca.ends_with("tls/ca.pem")), "paths start at the file");
    assert_eq!((common.key, common.cert), (Some("/run/key".into()), Some("cert.pem".into())));
    assert_eq!((own.at_once, own.cost, own.profile.len()), (Some(3), Some(2_500_000), 2));

    let printed = printed(file, &variables, &[&options[..], &["--print-config"]].concat());
    expect_test::expect![[r##"
        # casebook-x 0.1.0 (messages VERSION)
        nats = "nats://option:1,tls://b"  # --nats
        # credentials is not set: File with our credentials (user:password, an nkey seed, .creds), or a folder with one file for each user
        ca = "/etc/tls/ca.pem"  # /etc/x.toml:4
        cert = "cert.pem"  # --cert
        key = "/run/key"  # /etc/x.toml:5
        health = 8080  # /etc/x.toml:3
        drain = 20  # environment CASEBOOK_DRAIN
        log = "text"  # default
        # otlp is not set: Send traces and metrics to this OpenTelemetry collector, over HTTP (OTLP, protobuf); default: that of OTEL_EXPORTER_OTLP_ENDPOINT
        at_once = 3  # --at-once
        profile = ["/etc/a.toml", "/b.toml"]  # /etc/x.toml:7
        cost = "2.5"  # /etc/x.toml:6
    "##]]
    .assert_eq(&printed.replace(&format!("(messages {WIRE_VERSION})"), "(messages VERSION)"));
    assert!(check::<Options>(Path::new("x.toml"), &printed).is_ok(), "what is printed is such a file");
}

#[test]
fn a_wrong_value_is_reported_with_its_place() {
    let file = |text: &str| asked(text, &[], &[]).unwrap_err();
    let set = |name: &str, text: &str| asked("", &[(name, text)], &[]).unwrap_err();
    let option = |name: &str, text: &str| asked("", &[], &[name, text]).unwrap_err();
    let all = [
        file("drain = 5\n\ndrian = 6\nca = true\nx = 1"),
        file("drain = 99999\nprofile = [1]"),
        file("nats = \"nats://x\"\nkey = hunter2\n"),
        set("CASEBOOK_DRAIN", "soon"),
        option("--log", "xml"),
        option("--at-once", "10"),
        option("--ca", ""),
        option("--health", "localhost"),
        option("--nats", "nats://director:hunter2@127.0.0.1:4222"),
        option("--otlp", "http://c:4318/?key=hunter2"),
    ];
    expect_test::expect![[r#"
        /etc/x.toml:3: drian: unknown key; write drain
        /etc/x.toml:4: ca: expected a text
        /etc/x.toml:5: x: unknown key; write one of nats, credentials, ca, cert, key, health, drain, log, otlp, at_once, profile, cost
        /etc/x.toml:1: drain: expected a whole number from 0 to 3600, got "99999"
        /etc/x.toml:2: profile: expected a text
        /etc/x.toml:2: the file: string values must be quoted, expected literal string
        environment CASEBOOK_DRAIN: expected a whole number from 0 to 3600, got "soon"
        --log: expected one of text, json, got "xml"
        --at-once: expected a whole number from 1 to 9, got "10"
        --ca: expected a value, got ""
        --health: expected a port such as 8080, or an address such as 127.0.0.1:8080, got "localhost"
        --nats: expected an address without user and password; put them in a file and name it with `credentials`
        --otlp: expected an address without user, password and query; put a collector's key into OTEL_EXPORTER_OTLP_HEADERS"#]].assert_eq(&all.join("\n"));
    assert!(option("--drian", "3").contains("--drain"));
}

#[test]
fn help_names_variables_and_not_what_they_hold() {
    let help = printed("", &[("CASEBOOK_DRAIN", "77")], &["--help"]);
    assert!(help.contains("--drain <SECONDS>") && help.contains("[env: CASEBOOK_DRAIN] [default: 30]"), "{help}");
    assert!(help.contains("[env: CASEBOOK_CONFIG]") && help.contains("[env: CASEBOOK_NATS_CA]"), "{help}");
    assert!(printed("", &[], &["--version"]).contains("(messages "));
    let missing = ["x", "--config", "/nowhere/x.toml"].map(OsString::from);
    let missing = PROGRAM.asked::<Options>(missing, |_| None).unwrap_err().what;
    assert!(missing.starts_with("cannot read the settings file /nowhere/x.toml: "), "{missing}");
}

#[test]
fn an_address_that_can_never_be_reached_is_refused() {
    for right in ["nats://a:4222, tls://b", "127.0.0.1:4222", "nats://[::1]:4222", "localhost", "nats://a:4222/"] {
        assert!(servers(right).is_ok(), "{right}");
    }
    for bad in ["nats://a:99999", "nats://", "ws://a", "nats://:4222", "nats://a:x", "nats://a/b", "nats://a b", ""] {
        assert!(servers(bad).is_err_and(|why| why.starts_with("expected a NATS server")), "{bad}");
    }
    assert!(http("https://collector.example:4318/otlp").is_ok());
    for bad in ["c:4318", "http://", "http:///v1", "grpc://c:4317", "http://c d", "http://:4318", "http://c:port"] {
        assert!(http(bad).is_err_and(|why| why.starts_with("expected an HTTP server")), "{bad}");
    }
    for secret in ["https://me:hunter2@collector:4318", "http://c:4318/?key=hunter2", "me:hunter2@c"] {
        assert!(http(secret).is_err_and(|why| !why.contains("hunter2")), "{secret}");
    }
}
