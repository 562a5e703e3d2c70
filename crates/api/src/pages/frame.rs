//! What all pages have: the navigation, the theme, the time zone, the state of the connection.

use casebook_protocol::{Timestamp, closed};
use casebook_report::visible;
use maud::{DOCTYPE, Markup, html};

use super::icon::Icon;
use crate::model::zone::Zone;

closed! {
    #[derive(Default)]
    pub enum Theme {
        #[default]
        System = "system";
        Light = "light";
        Dark = "dark";
    }
}

impl Theme {
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.name() == name).unwrap_or_default()
    }

    #[must_use]
    pub const fn icon(self) -> Icon {
        match self {
            Self::System => Icon::Screen,
            Self::Light => Icon::Sun,
            Self::Dark => Icon::Moon,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Frame {
    pub theme: Theme,
    pub zone: Zone,
    pub now: Timestamp,
    /// Keys without a modifier act.
    pub keys: bool,
    /// Path and query of the page, to come back to.
    pub here: String,
    /// This process investigates new alerts.
    pub investigates: bool,
    /// The version of script and style.
    pub build: &'static str,
}

/// What a page listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live<'a> {
    /// Nothing: the page cannot change.
    Still,
    All,
    One(&'a str),
}

const PLACES: [(&str, &str, Icon); 5] = [
    ("/", "Investigations", Icon::List),
    ("/launch", "Launch", Icon::Launch),
    ("/compare", "Compare", Icon::Compare),
    ("/insights", "Insights", Icon::Chart),
    ("/settings", "Settings", Icon::Gear),
];

impl Frame {
    /// A whole page. Hidden characters are made visible.
    #[must_use]
    pub fn page(&self, title: &str, place: &str, live: Live<'_>, body: &Markup) -> String {
        let current = |path: &str| (path == place).then_some("page");
        let (scope, one) = match live {
            Live::Still => ("none", ""),
            Live::All => ("all", ""),
            Live::One(id) => ("one", id),
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" data-theme=(self.theme.name()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " · Casebook" }
                    link rel="icon" href="/static/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href={ "/static/style.css?" (self.build) };
                    script src={ "/static/app.js?" (self.build) } defer {}
                }
                body data-live=(scope) data-id=(one) data-keys=(if self.keys { "on" } else { "off" }) {
                    a.skip href="#main" { "Skip to content" }
                    div.shell {
                        header.side {
                            a.logo href="/" { (Icon::Book.show()) "Casebook" }
                            nav aria-label="Main" { ul {
                                @for (path, name, icon) in PLACES {
                                    li { a href=(path) aria-current=[current(path)] { (icon.show()) (name) } }
                                }
                            } }
                            (self.foot(live))
                        }
                        main #main tabindex="-1" { (body) }
                    }
                    p.sr #said role="status" aria-live="polite" {}
                }
            }
        };
        visible(&page.into_string())
    }

    fn foot(&self, live: Live<'_>) -> Markup {
        let state = match (live, self.investigates) {
            (Live::Still, _) => "complete",
            (_, true) => "loaded once",
            (_, false) => "reading, not investigating",
        };
        html! {
            div.foot {
                @if live != Live::Still { span.live #live data-state="off" { (state) } } @else { span.live { (state) } }
                span { "Times in " a href="/settings#zone" { (self.zone.name) } }
                form method="post" action="/preferences" aria-label="Theme" {
                    input type="hidden" name="back" value=(self.here);
                    @for theme in Theme::ALL {
                        @let (name, icon) = (theme.name(), theme.icon());
                        button.ghost name="theme" value=(name) aria-pressed=(if theme == self.theme { "true" } else { "false" }) title={ "Theme: " (name) } {
                            (icon.show()) span.sr { "Theme: " (name) }
                        }
                    }
                }
            }
        }
    }
}
