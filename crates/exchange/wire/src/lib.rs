//! Every message once: a `#[repr(C)]` struct of fixed little-endian fields *is* the schema.
//!
//! The obvious way, a serialiser with a schema language, costs a build step and hides the bytes; here
//! the layout is the type, its size is asserted at compile time, and golden bytes in the tests freeze
//! it. Records (in the logs) begin with `schema, version`; frames (to clients) with `length, kind,
//! version`. Fields are only ever appended, and a reader refuses a version it does not know.
//!
//! - [`record`]: what the mapped logs carry: requests, results, checkpoints (docs/protocols/records.md).
//! - [`frame`]: the binary order entry protocol of the gateway (docs/protocols/order-entry.md).
//!
//! Bytes become domain types (`pares-types`) here and nowhere else; nothing here panics on any input.

/// The name that the certificates of all gateways bear, whatever their address.
pub const GATEWAYS_NAME: &str = "gateways.pares";
/// The name that the certificates of all replayers of market data bear.
pub const REPLAYERS_NAME: &str = "replayers.pares";

/// A record or a message: its layout, its size and its fields by name, from one list.
macro_rules! layout {
    ($(#[$doc:meta])* $name:ident ($size:literal) { $($(#[$field_doc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }
        const _: () = assert!(size_of::<$name>() == $size);
        impl $name {
            /// The fields, in order: name and Rust type. The protocol page is checked against them.
            pub const FIELDS: &'static [(&'static str, &'static str)] = &[$((stringify!($field), stringify!($ty)),)*];
        }
    };
}

mod code;
mod field;
pub mod frame;
pub mod record;
mod register;

pub use register::{TRANSCRIPT_BYTES, Transcript, VALUE_BYTES, password_salt};

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Fewer bytes than the message has.
    Truncated,
    /// A schema, kind or version this build does not know.
    UnknownSchema {
        /// What the bytes claim to be.
        schema: u8,
        /// In which version.
        version: u8,
    },
    /// A field holds a value outside its legal range.
    InvalidField(&'static str),
}

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated => write!(f, "message is cut short"),
            Self::UnknownSchema { schema, version } => {
                write!(f, "unknown message {schema} version {version}: written by a newer build?")
            }
            Self::InvalidField(name) => write!(f, "field `{name}` is outside its legal range"),
        }
    }
}

impl core::error::Error for WireError {}
