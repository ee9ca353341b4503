//! When what is to happen.
//!
//! A timetable names times of a UTC day to the second and is part of the settings, so the day is planned before the
//! system starts: it begins at a whole second a little ahead. Rows that lay behind midnight would be past already
//! when the clocks begin to tell the time, and be done at once; so a day planned just before midnight has no timetable,
//! and the exchange brings its instruments from phase to phase by requests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pares_config::{PhaseSetting, TimetableSetting};
use pares_text as utc;
use pares_types::{DAY_NS, Phase};

const SECOND_NS: u64 = 1_000_000_000;
/// Nearer to midnight than this a day has no timetable.
const MIDNIGHT_NS: u64 = 180 * SECOND_NS;
/// What the times below are parts of.
const WHOLE: u64 = 40;
/// The phases of the timetable, and when they begin, in parts of the day.
pub const ROWS: [(u64, PhaseSetting); 7] = [
    (2, PhaseSetting::OpeningCall),
    (7, PhaseSetting::Continuous),
    (27, PhaseSetting::ClosingCall),
    (31, PhaseSetting::PostClose),
    (33, PhaseSetting::Closed),
    (35, PhaseSetting::OpeningCall),
    (38, PhaseSetting::Continuous),
];
/// When an order runs through the band; how long the call lasts, and its extension if it would end outside the band;
/// when the exchange halts that, and resumes trading.
const BREACH: u64 = 10;
const CALL: u64 = 3;
const EXTENSION: u64 = 8;
const HALT: u64 = 16;
const RESUME: u64 = 19;

/// The shortest day that has room for everything, seconds.
pub const SECONDS_MIN: u64 = 12;
/// The longest: it must be planned before midnight is near.
pub const SECONDS_MAX: u64 = 150;

/// All phases of the leading instrument in order; there may be more calls in between.
pub const COURSE: [Phase; 11] = [
    Phase::OpeningCall,
    Phase::Continuous,
    Phase::VolatilityCall,
    Phase::Halted,
    Phase::VolatilityCall,
    Phase::Continuous,
    Phase::ClosingCall,
    Phase::PostClose,
    Phase::Closed,
    Phase::OpeningCall,
    Phase::Continuous,
];

/// A planned day. Times are nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The timetable: when which phase begins.
    pub rows: Vec<(u64, PhaseSetting)>,
    /// Whether the gateways' clocks and the timetable drive the phases; otherwise requests do.
    pub by_timetable: bool,
    /// When an order runs through the band.
    pub breach_ns: u64,
    /// How long the volatility call lasts.
    pub call: Duration,
    /// How much longer it lasts if it is extended.
    pub extension: Duration,
    /// When the exchange halts the leading instrument.
    pub halt_ns: u64,
    /// When it resumes trading there.
    pub resume_ns: u64,
    /// When all is over.
    pub end_ns: u64,
}

impl Plan {
    /// A day of about `seconds` that begins now. Without `timetable`, or close to midnight, phases are for requests.
    pub fn new(now_ns: u64, seconds: u64, timetable: bool) -> Self {
        let begin_ns = now_ns - now_ns % SECOND_NS + SECOND_NS;
        let part_ns = |part: u64| begin_ns + part * seconds * SECOND_NS / WHOLE;
        let length = |parts: u64| Duration::from_millis(parts * seconds * 1_000 / WHOLE);
        let mut last = 0;
        let rows = ROWS.map(|(part, phase)| {
            // Rounded to the second, and at least a second after the row before.
            last = ((part * seconds + WHOLE / 2) / WHOLE).max(last + 1);
            (begin_ns + last * SECOND_NS, phase)
        });
        Self {
            rows: rows.to_vec(),
            by_timetable: timetable && DAY_NS - now_ns % DAY_NS > MIDNIGHT_NS,
            breach_ns: part_ns(BREACH),
            call: length(CALL),
            extension: length(EXTENSION),
            halt_ns: part_ns(HALT),
            resume_ns: part_ns(RESUME),
            end_ns: part_ns(WHOLE).max(begin_ns + (last + 1) * SECOND_NS),
        }
    }

    /// The timetable as instruments have it; empty if there is none.
    pub fn timetable(&self) -> Vec<TimetableSetting> {
        let row = |&(at_ns, phase): &(u64, PhaseSetting)| TimetableSetting {
            at: utc::time_of_day(at_ns % DAY_NS),
            phase,
        };
        if self.by_timetable { self.rows.iter().map(row).collect() } else { Vec::new() }
    }
}

/// Nanoseconds since 1970.
pub fn wall_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).expect("the year is below 2554")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_NS: u64 = 20_000 * DAY_NS + DAY_NS / 2;

    fn seconds_after(plan: &Plan, now_ns: u64) -> Vec<u64> {
        plan.rows.iter().map(|(at_ns, _)| (at_ns - now_ns) / SECOND_NS).collect()
    }

    #[test]
    fn a_day_of_forty_seconds_is_as_written() {
        let plan = Plan::new(NOON_NS, 40, true);
        assert_eq!(seconds_after(&plan, NOON_NS + SECOND_NS), [2, 7, 27, 31, 33, 35, 38]);
        assert_eq!(plan.timetable()[0].at, "12:00:03");
        assert_eq!((plan.end_ns - NOON_NS) / SECOND_NS, 41);
    }

    #[test]
    fn in_a_short_day_everything_has_its_turn() {
        for seconds in SECONDS_MIN..40 {
            let plan = Plan::new(NOON_NS + 5, seconds, true);
            let rows = &plan.rows;
            assert!(rows.windows(2).all(|two| two[0].0 < two[1].0), "{seconds}: {plan:?}");
            let (call_ns, extension_ns) = (plan.call.as_nanos() as u64, plan.extension.as_nanos() as u64);
            let extended_ns = plan.breach_ns + call_ns;
            assert!(rows[1].0 < plan.breach_ns && extended_ns < plan.halt_ns, "{seconds}: {plan:?}");
            assert!(plan.halt_ns < extended_ns + extension_ns, "{seconds}: {plan:?}");
            assert!(plan.halt_ns < plan.resume_ns, "{seconds}: {plan:?}");
            assert!(plan.resume_ns + call_ns < rows[2].0, "{seconds}: {plan:?}");
            assert!(rows[6].0 < plan.end_ns, "{seconds}: {plan:?}");
        }
    }

    #[test]
    fn before_midnight_there_is_no_timetable() {
        let late_ns = 20_001 * DAY_NS - 100 * SECOND_NS;
        assert!(!Plan::new(late_ns, 40, true).by_timetable);
        assert_eq!(Plan::new(late_ns, 40, true).timetable(), []);
        assert!(Plan::new(late_ns - 100 * SECOND_NS, 40, true).by_timetable);
    }
}
