//! Business days.

use core::fmt;
use core::str::FromStr;

use crate::{DAY_NS, Timestamp};

/// A business day of the exchange: days since the Unix epoch, shown and read as a date. 0: none has begun yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BusinessDay(pub u32);

impl BusinessDay {
    /// No business day: a system that begins none trades all the same.
    pub const NONE: Self = Self(0);
    /// The last one: 9999-12-31.
    pub const MAX: Self = Self(2_932_896);

    /// The day, UTC, of that time; [`BusinessDay::MAX`] beyond it.
    #[must_use]
    pub fn of(time: Timestamp) -> Self {
        u32::try_from(time.0 / DAY_NS).map_or(Self::MAX, Self).min(Self::MAX)
    }

    /// The midnight, UTC, at which the day of that date begins.
    #[must_use]
    pub fn midnight(self) -> Timestamp {
        Timestamp(u64::from(self.0).saturating_mul(DAY_NS))
    }

    /// Year, month and day of the month.
    #[must_use]
    pub fn date(self) -> (u32, u32, u32) {
        pares_calendar::date_of(self.0)
    }
}

/// How far a shard's day has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DayStage {
    /// Orders are taken. Before the first day too.
    #[default]
    On,
    /// It ends, step by step.
    Ending,
    /// None is on.
    Over,
    /// It begins, step by step.
    Beginning,
}

impl fmt::Display for BusinessDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Not a date from 1970-01-02 to 9999-12-31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayError;

impl fmt::Display for DayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a day must be a date such as 2026-11-22, from 1970-01-02 on")
    }
}

impl core::error::Error for DayError {}

impl FromStr for BusinessDay {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let mut parts = text.splitn(3, '-').map(|part| part.parse::<u32>().map_err(|_| DayError));
        let mut next = || parts.next().unwrap_or(Err(DayError));
        let (year, month, day) = (next()?, next()?, next()?);
        pares_calendar::day_of(year, month, day).filter(|day| *day > 0).map(Self).ok_or(DayError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_shown_as_dates_and_read_again() {
        for (day, date) in [(1, "1970-01-02"), (11_016, "2000-02-29"), (20_779, "2026-11-22")] {
            assert_eq!(BusinessDay(day).to_string(), date);
            assert_eq!(date.parse(), Ok(BusinessDay(day)));
        }
        assert_eq!(BusinessDay::MAX.to_string(), "9999-12-31");
        for day in (1..BusinessDay::MAX.0).step_by(997) {
            assert_eq!(BusinessDay(day).to_string().parse(), Ok(BusinessDay(day)));
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for wrong in ["", "2026", "2026-13-01", "2026-02-30", "1970-01-01", "x-1-1", "2026-1-1-1"] {
            assert!(wrong.parse::<BusinessDay>().is_err(), "{wrong}");
        }
    }
}
