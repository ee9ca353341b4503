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
#[derive(Debug, Default)]
pub(super) struct ClockSaid(Said);

impl ClockSaid {
    /// The line to be said of a clock that is ahead by so much, ms, if there is one.
    pub(super) fn of(&mut self, ahead_ms: i64) -> Option<String> {
        let said = match ahead_ms.unsigned_abs() {
            0..=CLOCK_SAID_MS => Said::Right,
            ms if ms <= CLOCK_OFF_MAX_MS => Said::Off,
            _ => Said::FarOff,
        };
        if said == std::mem::replace(&mut self.0, said) {
            return None;
        }
        let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
        let seconds = ahead_ms.unsigned_abs() / 1_000;
        Some(match said {
            Said::Right => "the clock is the quote server's again".to_owned(),
            Said::Off => format!("the clock is {seconds} s and more {way} the quote server's"),
            Said::FarOff => {
                format!(
                    "the clock is {seconds} s and more {way} the quote server's: set it; no commands are taken"
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_said_when_it_changes() {
        let mut said = ClockSaid::default();
        let lines: Vec<_> = [0, 5_000, 5_001, 9_000, 30_000, 31_000, 90_000, -31_000, -7_000, 0, 0]
            .into_iter()
            .filter_map(|ahead_ms| said.of(ahead_ms))
            .collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].contains("5 s and more ahead of") && lines[1].contains("31 s"), "{lines:?}");
        assert!(lines[2].contains("7 s and more behind"), "{lines:?}");
    }
}
