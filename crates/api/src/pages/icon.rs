//! Icons as paths of a 24-unit square, drawn as lines.

use maud::{Markup, html};

macro_rules! icons {
    ($($name:ident $path:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Icon { $($name),+ }

        impl Icon {
            const fn path(self) -> &'static str {
                match self { $(Self::$name => $path),+ }
            }
        }
    };
}

icons! {
    Book "M4 5a2 2 0 0 1 2-2h13v18H6a2 2 0 0 1-2-2V5m0 14a2 2 0 0 1 2-2h13M9 8h6";
    List "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01";
    Launch "M5 4l14 8-14 8V4";
    Compare "M9 4H5v16h4M15 4h4v16h-4M12 2v20";
    Chart "M4 20h16M7 16v-5M12 16V6M17 16v-8";
    Gear "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2";
    Flame "M12 3c1 4 5 5 5 10a5 5 0 0 1-10 0c0-2 1-3 2-4 0 2 1 3 2 3 1-3-1-5 1-9";
    Alert "M12 4L3 20h18L12 4M12 10v4M12 17h.01";
    Info "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 11v5M12 8h.01";
    Shield "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6l7-3M9 12l2 2 4-4";
    Check "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M8 12l3 3 5-6";
    Ban "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M6 6l12 12";
    Question "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .9-1 1.7M12 16.5h.01";
    Spinner "M12 3a9 9 0 1 0 9 9";
    Pause "M9 5v14M15 5v14";
    Broken "M4 4l16 16M12 3a9 9 0 0 1 9 9M12 21a9 9 0 0 1-9-9";
    Clock "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5l3 2";
    Host "M4 4h16v7H4zM4 13h16v7H4zM8 7.5h.01M8 16.5h.01";
    User "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M5 20c1-4 4-5 7-5s6 1 7 5";
    Gap "M3 12h4M17 12h4M10 7v10M14 7v10";
    File "M6 3h8l4 4v14H6V3M14 3v4h4M9 12h6M9 16h6";
    Brain "M12 5a3 3 0 0 0-5 1 3 3 0 0 0-2 5 3 3 0 0 0 2 5 3 3 0 0 0 5 2V5m0 0a3 3 0 0 1 5 1 3 3 0 0 1 2 5 3 3 0 0 1-2 5 3 3 0 0 1-5 2";
    Tool "M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5L8 21l-4-4 8-8a4 4 0 0 1 2-3";
    Eye "M2 12c3-5 6-7 10-7s7 2 10 7c-3 5-6 7-10 7s-7-2-10-7M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6";
    Bulb "M9 18h6M10 21h4M12 3a6 6 0 0 0-4 10c1 1 1 2 1 3h6c0-1 0-2 1-3a6 6 0 0 0-4-10";
    Flag "M5 21V4h12l-2 4 2 4H5";
    Moon "M20 14A8 8 0 1 1 10 4a6 6 0 0 0 10 10";
    Sun "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1 1M18 18l1 1M19 5l-1 1M6 18l-1 1";
    Screen "M3 5h18v11H3zM9 20h6M12 16v4";
    Back "M15 5l-7 7 7 7";
    Next "M9 5l7 7-7 7";
    Search "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M16 16l5 5";
    Coins "M9 4a6 3 0 1 0 0 6 6 3 0 0 0 0-6M3 7v8c0 2 3 3 6 3M15 12a6 3 0 1 0 0 6 6 3 0 0 0 0-6M9 15v3c0 2 3 3 6 3s6-1 6-3v-3";
    Pen "M4 20l1-5L16 4l4 4L9 19l-5 1";
}

impl Icon {
    /// Decoration: the word beside it says the same.
    #[must_use]
    pub fn show(self) -> Markup {
        html! { svg.icon viewBox="0 0 24 24" aria-hidden="true" { path d=(self.path()) {} } }
    }
}
