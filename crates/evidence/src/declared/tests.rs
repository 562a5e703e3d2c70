use super::*;

#[test]
fn pattern_matches_whole_paths_below_the_evidence() {
    for (pattern, matching, others) in [
        (
            "proxy.log",
            &["proxy.log"][..],
            &["sub/proxy.log", "proxy.log.gz", "proxy_log", "Proxy.log", "xproxy.log"][..],
        ),
        ("*.log", &["a.log", ".log"], &["sub/a.log", "a.log.gz", "a.LOG"]),
        ("audit/*", &["audit/a", "audit/"], &["audit/b/c", "audit", "xaudit/a"]),
        ("**", &["a", "a/b/c.log"], &[]),
        ("**/x.log", &["x.log", "a/x.log", "a/b/x.log"], &["a/yx.log", "yx.log"]),
        ("a/**/x", &["a/x", "a/b/c/x"], &["a/yx", "ax", "b/x"]),
        ("a**/x", &["ab/x", "a/b/x"], &["ax", "b/x"]),
        ("a*b*c", &["abc", "axbxbxc"], &["ab", "a/bc"]),
        (r"a\*b", &["a*b"], &["axb"]),
    ] {
        let parsed = FilePattern::new(pattern).unwrap();
        matching.iter().for_each(|file| assert!(parsed.matches(file), "{pattern} {file}"));
        others.iter().for_each(|file| assert!(!parsed.matches(file), "{pattern} {file}"));
    }
    for file in ["a*b", r"a\b", "**", r"\*", "日本.log"] {
        let exact = FilePattern::new(&FilePattern::exact(file)).unwrap();
        assert!(exact.matches(file) && !exact.matches("axb") && !exact.matches("a/b"), "{file}");
    }
    for wrong in ["", "/var/log/x", "../x", "a/../b", "./x", "a//b", "a/", r"x\"] {
        assert!(FilePattern::new(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn unconfirmed_sources_with_a_common_host_are_one_sensor() {
    let host = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let all = [
        ("auditd", false, host(&["Web-1"])),
        ("proxy", false, host(&["db-1", "web-1."])),
        ("squid", true, host(&["web-1"])),
        ("zeek", false, host(&[])),
        ("dns", false, host(&[])),
        ("x", false, host(&["other"])),
        ("y", false, host(&["db-1", "app-1"])),
    ];
    let origins = all.iter().map(|(sensor, confirmed, hosts)| Origin { sensor, confirmed: *confirmed, hosts });
    let one = "unconfirmed@app-1";
    assert_eq!(counted(origins), [one, one, "squid", "unconfirmed", "unconfirmed", "unconfirmed@other", one]);
}
