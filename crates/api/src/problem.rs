//! Errors of the API (RFC 9457). Each kind has a page that says what to do.

use serde::Serialize;

macro_rules! kinds {
    ($($variant:ident = $name:literal, $status:literal, $title:literal, $advice:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $($variant),+ }

        impl Kind {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            #[must_use]
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name),+ } }
            #[must_use]
            pub const fn status(self) -> u16 { match self { $(Self::$variant => $status),+ } }
            #[must_use]
            pub const fn title(self) -> &'static str { match self { $(Self::$variant => $title),+ } }
            #[must_use]
            pub const fn advice(self) -> &'static str { match self { $(Self::$variant => $advice),+ } }
        }
    };
}

kinds! {
    Unreadable = "unreadable", 400, "The request cannot be read", "Correct the parameter that the detail names.";
    SignIn = "sign-in", 401, "Sign in first", "Open the address that the server printed, or add ?k= and the key from its key file.";
    Origin = "origin", 403, "The request comes from another site", "Send it from a page of this server.";
    NotFound = "not-found", 404, "Not found", "Check what the detail names. The list of investigations has all ids.";
    NotKept = "not-kept", 404, "Not kept", "Set keep_requests = true in the models file, and the next requests are kept.";
    Method = "method", 405, "This method is not allowed here", "See /api/v1/openapi.json for the methods of each path.";
    NotClosed = "not-closed", 409, "The investigation is not closed", "Wait for its end, or add partial=1 to get what is recorded so far.";
    Exists = "exists", 409, "Already exists", "Use another name, or begin another upload.";
    Used = "used", 409, "An investigation uses it", "Begin another upload. Evidence of an investigation stays as it was.";
    TooManyUploads = "too-many-uploads", 409, "There are too many uploads", "Remove unused uploads on the page Launch.";
    OverLimit = "over-limit", 409, "A limit is not one that this server allows", "Leave the limit out, or lower it to what the detail names.";
    NoTeam = "no-team", 409, "This server only reads", "Start `casebook serve` with --evidence DIR, or send the alert to a team with `casebook alert`.";
    TooLarge = "too-large", 413, "The request is too large", "An alert may have 1 MiB, an uploaded file 256 MiB.";
    Media = "media-type", 415, "Unsupported content type", "Send application/json.";
    Host = "host", 421, "This host name is not served here", "Use 127.0.0.1 or localhost with the port of this server.";
    Invalid = "invalid", 422, "The content is not valid", "Correct what the detail names.";
    TooMany = "too-many", 429, "Too many requests", "Wait a minute, then try again.";
    Slow = "slow", 503, "The answer took too long", "Try again, or ask for less.";
    Storage = "storage", 503, "The server cannot store it", "Look at the disk of the data folder and at the log of the server.";
    Store = "store", 503, "The records cannot be read", "Look at the log of the server. `casebook verify` shows what is damaged.";
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub kind: Kind,
    /// What was wrong here.
    pub detail: String,
}

impl Problem {
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    #[must_use]
    pub fn json(&self, instance: &str) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(rename = "type")]
            kind: String,
            title: &'a str,
            status: u16,
            detail: &'a str,
            instance: &'a str,
            #[serde(rename = "try")]
            advice: &'a str,
        }
        let body = Body {
            kind: format!("/problems/{}", self.kind.name()),
            title: self.kind.title(),
            status: self.kind.status(),
            detail: &self.detail,
            instance,
            advice: self.kind.advice(),
        };
        serde_json::to_string(&body).unwrap_or_default()
    }
}

impl From<crate::cases::Trouble> for Problem {
    fn from(trouble: crate::cases::Trouble) -> Self {
        let kind = match &trouble {
            crate::cases::Trouble::Unknown(_) => Kind::NotFound,
            crate::cases::Trouble::Broken(_) => Kind::Store,
            crate::cases::Trouble::Cursor => Kind::Unreadable,
            crate::cases::Trouble::Unreadable(why) => {
                tracing::error!(why, "the records cannot be read");
                return Self::new(Kind::Store, "the reason is in the log of the server");
            }
        };
        Self::new(kind, trouble.to_string())
    }
}
