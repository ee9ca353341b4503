//! Times as FIX writes them: `20260102-03:04:05.678`, UTC.
//!
//! Inside, a time is nanoseconds since 1970, as a clock gives them. Messages carry milliseconds, since FIX 4.2 and 4.4 know no finer ones.

use pares_calendar::{date_of, day_of};

const NS_PER_S: u64 = 1_000_000_000;
const S_PER_DAY: u64 = 86_400;
/// Bytes of a time with milliseconds.
pub const STAMP_BYTES: usize = 21;
/// Bytes of the date, and of the time of day in whole seconds.
pub const DATE_BYTES: usize = 8;
const SECONDS_BYTES: usize = 17;

/// Writes a time. Years end at 9999, those of 64 bits of nanoseconds at 2554.
#[must_use]
pub fn stamp(time_ns: u64) -> [u8; STAMP_BYTES] {
    let seconds = time_ns / NS_PER_S;
    let milliseconds = (time_ns / 1_000_000 % 1_000) as usize;
    let mut text = *b"00000000-00:00:00.000";
    let (year, month, day) = date_of((seconds / S_PER_DAY) as u32);
    let of_day = (seconds % S_PER_DAY) as u32;
    let pairs = [year / 100, year % 100, month, day, of_day / 3_600, of_day / 60 % 60, of_day % 60];
    for (at, pair) in [0, 2, 4, 6, 9, 12, 15].into_iter().zip(pairs) {
        text[at..at + 2].copy_from_slice(&PAIRS[pair as usize]);
    }
    text[18] = b'0' + (milliseconds / 100) as u8;
    text[19..].copy_from_slice(&PAIRS[milliseconds % 100]);
    text
}

/// The digits of each number below 100: two at a time halve the divisions.
pub(crate) const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Reads a time: whole seconds, or with 3, 6, 9 or 12 digits behind the point, of which those behind the nanoseconds are cut off. `None` if it
/// is not one, or lies before 1970 or behind the year 2554.
#[inline]
#[must_use]
pub fn read_stamp(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = text.split_at_checked(SECONDS_BYTES)?;
    let days = read_date(&whole[..DATE_BYTES])?;
    let seconds = read_time_of_day(&whole[DATE_BYTES..])?;
    let fraction_ns = match fraction.split_first() {
        None => 0,
        Some((b'.', digits)) => {
            let unit_ps = match digits.len() {
                3 => 1_000_000_000,
                6 => 1_000_000,
                9 => 1_000,
                12 => 1,
                _ => return None,
            };
            number(digits)? * unit_ps / 1_000
        }
        Some(_) => return None,
    };
    let seconds = u64::from(days) * S_PER_DAY + seconds;
    seconds.checked_mul(NS_PER_S)?.checked_add(fraction_ns)
}

/// Reads `YYYYMMDD`: days since 1970-01-01. `None` if there is no such date, or if it lies before.
#[inline]
pub(crate) fn read_date(text: &[u8]) -> Option<u32> {
    let date = eight_digits(u64::from_le_bytes(text.try_into().ok()?))? as u32;
    let [year, month, day] = [date / 10_000, date / 100 % 100, date % 100];
    day_of(year, month, day)
}

/// Reads `-HH:MM:SS`. A leap second is one.
#[inline]
fn read_time_of_day(text: &[u8]) -> Option<u64> {
    let (b'-', rest) = text.split_first()? else { return None };
    let word = u64::from_le_bytes(rest.try_into().ok()?);
    // `HH:MM:SS` with zeros for colons is a number of eight digits.
    const COLONS: u64 = u64::from_le_bytes(*b"\0\0:\0\0:\0\0");
    const BOTH: u64 = u64::from_le_bytes(*b"\0\0\xff\0\0\xff\0\0");
    const ZEROS: u64 = u64::from_le_bytes(*b"\0\x000\0\x000\0\0");
    let time = eight_digits(word & !BOTH | ZEROS).filter(|_| word & BOTH == COLONS)?;
    let [hour, minute, second] = [time / 1_000_000, time / 1_000 % 100, time % 100];
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3_600 + minute * 60 + second)
}

/// The number that eight digits are, first digit lowest in the word: all are looked at together, and summed by pairs, then by fours.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let above_nine = word.wrapping_add(0x0606_0606_0606_0606);
    if word & HIGH != ZEROS || above_nine & HIGH != ZEROS {
        return None;
    }
    let digits = word - ZEROS;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours.wrapping_mul(10_000) + (fours >> 32)) & 0xFFFF_FFFF)
}

#[inline]
fn number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn times_are_written_and_read() {
        assert_eq!(&stamp(0), b"19700101-00:00:00.000");
        assert_eq!(&stamp(1_709_210_096_789 * MS), b"20240229-12:34:56.789");
        assert_eq!(read_stamp(b"20240229-12:34:56.789"), Some(1_709_210_096_789 * MS));
        assert_eq!(read_stamp(b"20240229-12:34:56"), Some(1_709_210_096_000 * MS));
        assert_eq!(read_stamp(b"20240229-12:34:56.789000001"), Some(1_709_210_096_789 * MS + 1));
        assert_eq!(read_stamp(b"20240229-12:34:56.789000001999"), Some(1_709_210_096_789 * MS + 1));
    }

    #[test]
    fn a_day_that_does_not_exist_is_no_date() {
        for text in ["20270230", "20270229", "21000229", "20260431", "20260100", "20260001", "20261301"] {
            assert_eq!(read_date(text.as_bytes()), None, "{text}");
            assert_eq!(read_stamp(format!("{text}-12:00:00").as_bytes()), None, "{text}");
        }
        assert_eq!([&b"20240229"[..], b"20260131"].map(read_date), [Some(19_782), Some(20_484)]);
    }

    #[test]
    fn each_day_of_four_centuries_comes_back() {
        for day in 0..146_097 + 366 {
            let time_ns = day * S_PER_DAY * NS_PER_S;
            assert_eq!(read_stamp(&stamp(time_ns)), Some(time_ns), "{day}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let wrong =
            ["20240229", "20240229-12:34", "2024022x-12:34:56", "20241329-12:34:56", "20240229-24:00:00"];
        let also = [
            "20240229-12:34:56.",
            "20240229-12:34:56.7",
            "20240229-12:34:56.7890000000000",
            "20240229 12:34:56",
            "19691231-23:59:59",
            "30260921-12:00:00",
        ];
        for text in wrong.into_iter().chain(also) {
            assert_eq!(read_stamp(text.as_bytes()), None, "{text}");
        }
    }
}
