//! What a front says of its clock: a line when that changes, and not one for each stamp.

use pares_front::{CLOCK_OFF_MAX_MS, CLOCK_SAID_MS};

/// How much was said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    /// Nothing, or that the clock is right.
    #[default]
    Right,
    Off,
    /// No commands are taken, unless the clock is trusted.
    FarOff,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ClockSaid {
    said: Said,
    is_trusted: bool,
}

impl ClockSaid {
    /// Nothing was said yet of a clock that the operator trusts, or does not.
    pub(super) fn of_trusted(is_trusted: bool) -> Self {
        Self { said: Said::default(), is_trusted }
    }

    /// The line to be said of a clock that is ahead by so much, ms, if there is one.
    pub(super) fn line(&mut self, ahead_ms: i64) -> Option<String> {
        let said = match ahead_ms.unsigned_abs() {
            0..=CLOCK_SAID_MS => Said::Right,
            ms if ms <= CLOCK_OFF_MAX_MS => Said::Off,
            _ => Said::FarOff,
        };
        if said == std::mem::replace(&mut self.said, said) {
            return None;
        }
        let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
        let seconds = ahead_ms.unsigned_abs() / 1_000;
        let off = format!("the clock is at least {seconds} s {way} the quote server's");
        Some(match said {
            Said::Right => "the clock agrees with the quote server's again".to_owned(),
            Said::Off => off,
            Said::FarOff if self.is_trusted => format!("{off}: accepting commands because of --trust-clock"),
            Said::FarOff => {
                format!("{off}: refusing commands; set the clock, or trust it with --trust-clock")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(is_trusted: bool, ahead_ms: &[i64]) -> Vec<String> {
        let mut said = ClockSaid::of_trusted(is_trusted);
        ahead_ms.iter().filter_map(|ahead_ms| said.line(*ahead_ms)).collect()
    }

    #[test]
    fn front_with_wrong_clock_reports_whether_it_accepts() {
        assert_eq!(
            lines(false, &[31_000]),
            [
                "the clock is at least 31 s ahead of the quote server's: refusing commands; set the clock, or trust it with --trust-clock"
            ]
        );
        assert_eq!(
            lines(true, &[-31_000]),
            [
                "the clock is at least 31 s behind the quote server's: accepting commands because of --trust-clock"
            ]
        );
    }

    #[test]
    fn a_line_is_said_when_it_changes() {
        let lines = lines(false, &[0, 5_000, 5_001, 9_000, 30_000, 31_000, 90_000, -31_000, -7_000, 0, 0]);
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].contains("5 s ahead of") && lines[1].contains("31 s"), "{lines:?}");
        assert!(lines[2].contains("7 s behind"), "{lines:?}");
    }
}
