//! Moments as people write and read them, in UTC: `2026-08-01T09:30:00.000000000Z`.
//!
//! Records carry time since 1970.

use std::str::FromStr;

use pares_calendar::{date_of, day_of};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_S: u64 = 86_400;

/// A moment given on the command line.
///
/// Either a date with an optional time (`2026-08-01`, `2026-08-01T09:30`, `2026-08-01T09:30:00.5`; a `Z` may
/// follow), or a time before now (`90s`, `15m`, `2h`, `3d`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since 1970.
    At(u64),
    /// Nanoseconds before now.
    Ago(u64),
}

impl Moment {
    /// The moment, if it is `now_ns`; nanoseconds since 1970.
    #[must_use]
    pub fn resolve(self, now_ns: u64) -> u64 {
        match self {
            Self::At(ns) => ns,
            Self::Ago(ns) => now_ns.saturating_sub(ns),
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = parse_ago(text).map(Self::Ago).or_else(|| parse_date(text).map(Self::At));
        parsed.ok_or_else(|| {
            format!(
                "`{text}` is not a time; expected 2026-08-01, 2026-08-01T09:30:00.5 (UTC), or an age: 90s, \
                 15m, 2h, 3d"
            )
        })
    }
}

fn parse_ago(text: &str) -> Option<u64> {
    let (number, unit_s) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1),
        b'm' => (&text[..text.len() - 1], 60),
        b'h' => (&text[..text.len() - 1], 3_600),
        b'd' => (&text[..text.len() - 1], DAY_S),
        _ => return None,
    };
    digits(number)?.checked_mul(unit_s * SECOND_NS)
}

fn parse_date(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = date.split('-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let number = |part: u64| u32::try_from(part).ok();
    let day = day_of(number(year)?, number(month)?, number(day)?).filter(|_| parts.next().is_none())?;
    (u64::from(day) * DAY_S).checked_mul(SECOND_NS)?.checked_add(parse_time(time)?)
}

/// Nanoseconds since midnight; none if it is no time of day.
#[must_use]
pub fn parse_time(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = whole.split(':').map(digits);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    if hour > 23 || minute > 59 || second > 59 || parts.next().is_some() || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    Some((hour * 3_600 + minute * 60 + second) * SECOND_NS + digits(fraction)? * scale)
}

/// Digits only: no sign, no spaces.
fn digits(text: &str) -> Option<u64> {
    let legal = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    legal.then(|| text.parse().ok()).flatten()
}

/// Nanoseconds since 1970 as text, to the nanosecond.
#[must_use]
pub fn format(stamp_ns: u64) -> String {
    let (seconds, ns) = (stamp_ns / SECOND_NS, stamp_ns % SECOND_NS);
    let ((year, month, day), of_day) = (date_of((seconds / DAY_S) as u32), seconds % DAY_S);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> u64 {
        match text.parse() {
            Ok(Moment::At(ns)) => ns,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn known_moments_print_as_calendars_say() {
        assert_eq!(format(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(format(951_782_400 * SECOND_NS), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(format(1_785_576_600_000_000_007), "2026-08-01T09:30:00.000000007Z");
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for ns in [0, 1, 951_868_799_999_999_999, 1_785_576_600_000_000_007, 4_102_444_800_000_000_000] {
            assert_eq!(at(&format(ns)), ns);
        }
    }

    #[test]
    fn short_forms_are_midnight_the_full_minute_and_times_ago() {
        assert_eq!(at("2026-08-01"), at("2026-08-01T00:00:00Z"));
        assert_eq!(at("2026-08-01 09:30"), at("2026-08-01T09:30:00.000"));
        assert_eq!("2h".parse(), Ok(Moment::Ago(7_200 * SECOND_NS)));
        assert_eq!(Moment::Ago(5).resolve(3), 0);
    }

    #[test]
    fn impossible_moments_are_refused() {
        for text in ["", "now", "2026-02-29", "2026-13-01", "2026-08-01T24:00", "2026-8", "-5s", "1969-12-31"]
        {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
