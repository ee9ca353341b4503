//! Codes of the protocol, each listed once: variant, code, word, meaning.
//!
//! An enum, the list of its variants, their names for people and the page that documents them are four places that can differ.
//! Here all of them come from one list; a test holds the page against it.

/// Defines an enum of codes (one may be marked `default` behind its word) with `ALL`, `of`, `word`, `meaning` and [`Display`](core::fmt::Display), which is the word.
#[macro_export]
macro_rules! coded {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[doc = $meaning:literal])* $variant:ident = $code:literal $word:literal $($default:ident)?,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $meaning])* $(#[$default])? $variant = $code,)*
        }

        impl $name {
            /// All of them, in the order of their codes.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            /// The one of that code.
            #[must_use]
            pub const fn of(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Its name, everywhere: in commands, in the history, in the documentation.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// What it says, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($meaning),*).trim_ascii(),)*
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

pub(crate) use coded;
