use super::*;
use crate::service::common;

fn gather(
    file: Option<&str>,
    environment: &[(&str, &str)],
    flags: &[(&'static str, &str)],
) -> Result<Settings, SettingsError> {
    let file = file.map(|text| File { path: "/etc/casebook/director.toml".into(), text: text.into() });
    let environment =
        |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let flags: Vec<_> = flags.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
    Settings::gather(&common::KEYS, file.as_ref(), environment, &flags)
}

fn refused(text: &str) -> String {
    gather(Some(text), &[], &[]).unwrap_err().to_string()
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let file = Some("drain = 10\nnats = \"nats://file:1\"\nhealth = 8080");
    let environment = [("CASEBOOK_NATS", "nats://environment:1"), ("CASEBOOK_DRAIN", "20"), ("CASEBOOK_HEALTH", "")];
    let all = gather(file, &environment, &[("nats", "nats://flag:1")]).unwrap();
    assert_eq!(all.text(&common::NATS), "nats://flag:1");
    assert_eq!(all.number(&common::DRAIN), Some(20));
    assert_eq!(all.address(&common::HEALTH).map(|a| a.port()), Some(8080), "an empty variable sets nothing");
    assert_eq!(all.origin(&common::DRAIN), Some(&Origin::Environment("CASEBOOK_DRAIN")));
    assert_eq!(all.path(&common::CA), None);
}

#[test]
fn what_is_not_set_has_its_usual_value() {
    let none = gather(None, &[], &[]).unwrap();
    assert_eq!(none.text(&common::NATS), "nats://127.0.0.1:4222");
    assert_eq!((none.number(&common::DRAIN), none.address(&common::HEALTH)), (Some(30), None));
}

#[test]
fn a_path_in_a_file_is_relative_to_the_file_and_elsewhere_to_the_working_folder() {
    let settings = gather(Some("ca = \"tls/ca.pem\"\nkey = \"/run/key\""), &[], &[("cert", "cert.pem")]).unwrap();
    assert_eq!(settings.path(&common::CA), Some(Path::new("/etc/casebook/tls/ca.pem")));
    assert_eq!(settings.path(&common::TLS_KEY), Some(Path::new("/run/key")));
    assert_eq!(settings.path(&common::CERT), Some(Path::new("cert.pem")));
}

#[test]
fn a_fault_in_the_file_is_told_with_its_line() {
    assert_eq!(
        refused("drain = 5\n\ndrian = 6\n"),
        "/etc/casebook/director.toml:3: there is no setting \"drian\": there are nats, credentials, ca, cert, key, \
         health, drain, log, otlp"
    );
    assert_eq!(refused("\ndrain = \"5\""), "/etc/casebook/director.toml:2: drain: \"5\" is a text: write a number");
    assert_eq!(
        refused("drain = 99999"),
        "/etc/casebook/director.toml:1: drain: \"99999\" is no whole number from 0 to 3600"
    );
    assert_eq!(refused("ca = true"), "/etc/casebook/director.toml:1: ca: this is boolean, which it cannot be");
    let broken = refused("nats = \"nats://x\"\nkey = hunter2\n");
    assert!(broken.starts_with("/etc/casebook/director.toml:2: ") && !broken.contains("hunter2"), "{broken}");
}

#[test]
fn a_fault_elsewhere_is_told_with_the_variable_or_the_flag() {
    let environment = gather(None, &[("CASEBOOK_DRAIN", "soon")], &[]).unwrap_err().to_string();
    assert_eq!(environment, "environment CASEBOOK_DRAIN: \"soon\" is no whole number from 0 to 3600");
    let flag = gather(None, &[], &[("log", "xml")]).unwrap_err().to_string();
    assert_eq!(flag, "--log: \"xml\" is none of text, json");
}

#[test]
fn what_is_printed_is_a_file_that_says_the_same() {
    let file = "health = \"127.0.0.1:0\"\nca = \"/a \\\"b\\\" \\u007F.toml\"";
    let before = gather(Some(file), &[("CASEBOOK_DRAIN", "7")], &[("nats", "tls://a:1,tls://b:1")]).unwrap();
    let printed = before.print();
    assert!(printed.contains("drain = 7  # environment CASEBOOK_DRAIN\n"), "{printed}");
    assert!(printed.contains("nats = \"tls://a:1,tls://b:1\"  # --nats\n"), "{printed}");
    assert!(printed.contains("health = \"127.0.0.1:0\"  # /etc/casebook/director.toml:1\n"), "{printed}");
    assert!(printed.contains("log = \"text\"  # default\n"), "{printed}");
    assert!(printed.contains("# cert is not set: "), "{printed}");
    let after = gather(Some(&printed), &[], &[]).unwrap();
    for key in common::KEYS {
        assert_eq!(after.value(key), before.value(key), "{}", key.name);
    }
}
