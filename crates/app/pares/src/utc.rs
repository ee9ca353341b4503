//! Stamps of records as people write and read them, in UTC.

pub use pares_text::moment::{Moment, parse_time};
pub use pares_text::time_of_day;
use pares_types::Timestamp;

/// A stamp as text, to the nanosecond.
pub fn format(stamp: Timestamp) -> String {
    pares_text::moment::format(stamp.0)
}
