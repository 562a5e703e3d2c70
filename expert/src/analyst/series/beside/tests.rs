use super::*;

/// The pattern is one that the tools take.
#[test]
fn sentences_about_sessions_are_recognized() {
    let pattern = regex::Regex::new(SENTENCES).unwrap();
    for text in [
        "CreatePassiveSession(): incoming session via a.example",
        "authentication using dynamic password was successful",
        "Session to 7 ended. Latency=65ms",
        "sync_app.py:2057 Signing Out",
        "create_directories: Access is denied",
        "User logged in",
        "upload of a.pdf completed",
    ] {
        assert!(pattern.is_match(text), "{text}");
    }
    for text in ["session id is 7", "logging level: info", "the blog index was built", "passwords are kept"] {
        assert!(!pattern.is_match(text), "{text}");
    }
}
