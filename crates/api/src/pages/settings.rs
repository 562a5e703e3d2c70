//! The settings of this server. Only the look of the pages can be changed here.

use maud::html;

use super::frame::{Frame, Live, Theme};

const ZONES: [&str; 14] = [
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Kyiv",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Australia/Sydney",
];
const KEYS: [(&str, &str); 9] = [
    ("/", "search"),
    ("j k", "next and previous"),
    ("Enter", "open"),
    ("u", "back to all investigations"),
    ("1 … 9", "tabs of an investigation"),
    ("[ ]", "event before and after"),
    ("{", "round before"),
    ("Space", "play"),
    ("g i, g l, g c, g h, g s", "go to investigations, launch, compare, insights, settings"),
];

#[must_use]
pub fn page(frame: &Frame, settings: &[(String, String)]) -> String {
    let body = html! {
        div { h1 { "Settings" } p.facts { "How pages look is yours to choose; the rest comes from the command and its files" } }
        div.half {
            section.card { header { h2 #zone { "Time zone" } } div.pad {
                form.stack method="post" action="/preferences" {
                    input type="hidden" name="back" value="/settings";
                    label for="zone-name" { "A name of the IANA database" }
                    div.row { input #zone-name name="zone" list="zones" value=(frame.zone.name); button { "Use" } }
                    datalist #zones { @for zone in ZONES { option value=(zone) {} } }
                    p.soft.small { "Now it is " (frame.zone.second(frame.now)) ". UTC is the usual choice: evidence and colleagues are elsewhere." }
                }
            } }
            section.card { header { h2 { "Theme" } } div.pad {
                form.row method="post" action="/preferences" {
                    input type="hidden" name="back" value="/settings";
                    @for theme in Theme::ALL { @let (name, icon) = (theme.name(), theme.icon()); button name="theme" value=(name) aria-pressed=(if theme == frame.theme { "true" } else { "false" }) { (icon.show()) (casebook_report::words::capital(name)) } }
                }
            } }
            section.card { header { h2 { "This server" } } div.pad { dl.pairs.left { @for (name, value) in settings { dt { (name) } dd { (value) } } dt { "API" } dd { a href="/api/v1/openapi.json" { "openapi.json" } } } } }
            section.card { header { h2 { "Keys" } } div.pad.stack {
                form.row method="post" action="/preferences" {
                    input type="hidden" name="back" value="/settings";
                    @let (other, word) = if frame.keys { ("off", "Switch them off") } else { ("on", "Switch them on") };
                    button name="keys" value=(other) { (word) }
                }
                dl.pairs.left { @for (key, does) in KEYS { dt { code { (key) } } dd { (does) } } } } }
        }
    };
    frame.page("Settings", "/settings", Live::Still, &body)
}
