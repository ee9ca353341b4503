//! When business days begin and end.

use pares_gateway::DayTimes;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::instrument::nanoseconds;

/// The timetable of business days. Times are UTC; a day that ends no later than it begins ends on the date after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DayConfig {
    /// When a day begins: `07:00:00`.
    pub begin: String,
    /// When it ends: `18:30:00`.
    pub end: String,
    /// Whether Saturdays and Sundays are business days too.
    #[serde(default)]
    pub weekends: bool,
}

impl DayConfig {
    /// From midnight to midnight, without a pause.
    pub(crate) fn every_day() -> Self {
        let midnight = String::from("00:00:00");
        Self { begin: midnight.clone(), end: midnight, weekends: true }
    }

    /// The timetable as gateways want it.
    ///
    /// # Errors
    /// If it names no time of day.
    pub fn times(&self) -> Result<DayTimes, ConfigError> {
        let time = |text: &str| {
            let wrong = || {
                let what =
                    format!("`{text}` in `day` is not a time of day; expected HH:MM:SS, such as 18:30:00");
                ConfigError(what)
            };
            nanoseconds(text).ok_or_else(wrong)
        };
        Ok(DayTimes { begin_ns: time(&self.begin)?, end_ns: time(&self.end)?, weekends: self.weekends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_two_times() {
        let day = |end: &str| DayConfig { begin: "7:00".into(), end: end.into(), weekends: false };
        let hour_ns = 3_600_000_000_000;
        let times = DayTimes { begin_ns: 7 * hour_ns, end_ns: 18 * hour_ns, weekends: false };
        assert_eq!(day("18:00").times().unwrap(), times);
        assert!(day("25:00").times().unwrap_err().to_string().contains("25:00"));
    }
}
