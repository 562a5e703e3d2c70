//! Enums whose values each have one name, which is also their stored form, and one meaning.

pub trait Closed: Copy + Sized + 'static {
    const VALUES: &'static [Self];
    /// The name, which is also the stored form.
    fn stored(self) -> &'static str;
    /// The meaning, for people and models. May be empty.
    fn means(self) -> &'static str;
}

/// Declares a [`Closed`] set: `Variant = "stored name", "meaning";` for each value.
#[macro_export]
macro_rules! closed {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$attr:meta])* $variant:ident = $text:literal $(, $meaning:literal)?;)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[doc = $meaning])? $(#[$attr])* #[serde(rename = $text)] $variant,)+
        }

        #[allow(dead_code, reason = "not every set needs all of them")]
        impl $name {
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            $vis const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!("" $(, $meaning)?),)+ }
            }
        }

        impl $crate::closed::Closed for $name {
            const VALUES: &'static [Self] = &Self::ALL;
            fn stored(self) -> &'static str {
                self.name()
            }
            fn means(self) -> &'static str {
                self.meaning()
            }
        }
    };
}
