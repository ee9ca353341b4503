//! The Gregorian calendar counted in days since 1970-01-01, without leap seconds, as Unix time is.
//!
//! Inside, years begin in March, so that the leap day is a year's last; 400 of them are 146,097 days (H. Hinnant,
//! *chrono-compatible low-level date algorithms*).

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Days from 1970-01-01 to that date; below 0 before. A day beyond its month's last is one of the next month: who must know
/// compares with [`date_of`].
#[inline]
#[must_use]
const fn days_to(year: u32, month: u32, day: u32) -> i64 {
    // January and February belong to the year before.
    let (year, month) = if month > 2 { (year as i64, month - 3) } else { (year as i64 - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year as i64 - 1 - EPOCH_DAYS
}

/// Year, month and day of the month of the day so many days after 1970-01-01.
#[inline]
#[must_use]
pub const fn date_of(days: u32) -> (u32, u32, u32) {
    let days = days as u64 + EPOCH_DAYS as u64;
    let (era, of_era) = ((days / 146_097) as u32, (days % 146_097) as u32);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let (month, next) = if from_march < 10 { (from_march + 3, 0) } else { (from_march - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

/// The day of a date from 1970-01-01 to 9999-12-31; `None` if there is no such date.
#[must_use]
pub fn day_of(year: u32, month: u32, day: u32) -> Option<u32> {
    let is_near = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let days = u32::try_from(days_to(year, month, day)).ok().filter(|_| is_near)?;
    // Every month has 28 days, so most dates need no second look.
    (day <= 28 || date_of(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_comes_back() {
        let (mut last, end) = ((1969, 12, 31), day_of(9999, 12, 31).unwrap());
        for days in 0..=end {
            let date = date_of(days);
            assert!(date > last, "{date:?}");
            assert_eq!(day_of(date.0, date.1, date.2), Some(days));
            last = date;
        }
        assert_eq!(date_of(11_016), (2000, 2, 29));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for (year, month, day) in
            [(2026, 2, 29), (2100, 2, 29), (2026, 13, 1), (2026, 4, 31), (1969, 12, 31), (2026, 1, 0)]
        {
            assert_eq!(day_of(year, month, day), None);
        }
        assert_eq!(days_to(1969, 12, 31), -1);
    }
}
