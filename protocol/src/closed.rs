//! Enums whose values have one name, which is their stored form, too, and one meaning: both are written once.

/// A value of a closed set.
pub trait Closed: Copy + Sized + 'static {
    /// Every value, in order.
    const VALUES: &'static [Self];
    /// The name, which is the stored form, too.
    fn stored(self) -> &'static str;
    /// What it means, for people and models; may be empty.
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
            /// Every value, in order.
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The name, which is the stored form, too.
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// What it means.
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
