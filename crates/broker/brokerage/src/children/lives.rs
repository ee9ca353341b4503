//! How long what dies waits until it is started again, and when that is given up.
//!
//! What dies now and then is back after a second. What dies whenever it is started has a reason that a start does not take away: it is tried less and less often, and its last words are
//! said each time. A site that has to be repaired says so by its status, and is tried every 30 s.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use pares_operator::OperatorError;

use super::BrokerPart;

/// What dies is not started again more often than this.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// What has lived so long has served.
const LIFE_GOOD: Duration = Duration::from_secs(10);
/// The longest time between two starts.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// What has died so often, and never served, will not.
const DEATHS_MAX: u32 = 6;
/// So much of a log is looked at for its last lines, bytes.
const TAIL: u64 = 2 << 10;
/// So many of them are said.
const LINES: usize = 3;

/// How it stands with several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deaths {
    /// One of them serves, or may.
    Some,
    /// Each of them has died whenever it was started.
    InVain,
    /// Each of them has to be repaired.
    Damage,
}

#[derive(Debug)]
struct Life {
    began: Instant,
    /// Deaths one after the other, none of them after a good life.
    deaths: u32,
    has_served: bool,
    is_damaged: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Lives(BTreeMap<BrokerPart, Life>);

impl Lives {
    /// It is started.
    pub(super) fn began(&mut self, part: BrokerPart) {
        let began = Instant::now();
        let first = Life { began, deaths: 0, has_served: false, is_damaged: false };
        self.0.entry(part).or_insert(first).began = began;
    }

    /// It has ended by itself; how long to wait before it is started again.
    pub(super) fn died(&mut self, part: BrokerPart, how: ExitStatus) -> Duration {
        let Some(life) = self.0.get_mut(&part) else { return LIFE_MIN };
        life.died(life.began.elapsed(), how.code() == Some(i32::from(OperatorError::DAMAGED)))
    }

    /// How it stands with these.
    pub(super) fn of_all(&self, parts: &[BrokerPart]) -> Deaths {
        let lives = || parts.iter().map(|part| self.0.get(part));
        let is_in_vain = |life: &Life| life.is_damaged || (!life.has_served && life.deaths >= DEATHS_MAX);
        if lives().all(|life| life.is_some_and(|life| life.is_damaged)) {
            Deaths::Damage
        } else if lives().all(|life| life.is_some_and(is_in_vain)) {
            Deaths::InVain
        } else {
            Deaths::Some
        }
    }

    /// What is said of a death.
    pub(super) fn told(&self, part: BrokerPart, how: ExitStatus, pause: Duration, last: &str) -> String {
        let is_damaged = self.0.get(&part).is_some_and(|life| life.is_damaged);
        let repaired = if is_damaged { ", and needs repair" } else { "" };
        let when = match pause.as_secs_f64().round() as u64 {
            0 => "at once".to_owned(),
            seconds => format!("in {seconds} s"),
        };
        let last = if last.is_empty() { String::new() } else { format!(". Its last output: {last}") };
        format!("{part} ended ({how}){repaired}; restarting it {when}{last}")
    }
}

impl Life {
    fn died(&mut self, lived: Duration, is_damaged: bool) -> Duration {
        let is_good = lived >= LIFE_GOOD;
        self.is_damaged = is_damaged;
        self.has_served |= is_good;
        self.deaths = if is_good { 1 } else { self.deaths.saturating_add(1) };
        match self.deaths {
            _ if is_damaged => PAUSE_MAX,
            0 | 1 => LIFE_MIN.saturating_sub(lived),
            deaths => (LIFE_MIN * 2_u32.saturating_pow(deaths.min(10) - 2)).min(PAUSE_MAX),
        }
    }
}

/// The last lines of a file, as one; nothing if it cannot be read.
pub(super) fn last_lines(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        file.take(TAIL).read_to_end(&mut bytes)
    });
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.dedup();
    let last = lines[lines.len().saturating_sub(LINES)..].join(" | ");
    if read.is_ok() { last.chars().filter(|letter| !letter.is_control()).collect() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn repeated_death_backs_off_until_one_good_run() {
        let mut life = Life { began: Instant::now(), deaths: 0, has_served: false, is_damaged: false };
        let short = Duration::from_millis(300);
        let pauses: Vec<u64> = (0..9).map(|_| life.died(short, false).as_millis() as u64).collect();
        assert_eq!(pauses, [700, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(life.died(short, true), PAUSE_MAX);
        assert_eq!(life.died(LIFE_GOOD, false), Duration::ZERO);
        assert_eq!(life.died(short, false), LIFE_MIN);
    }

    #[test]
    fn a_death_after_a_long_life_is_repaired_at_once() {
        let lives = Lives::default();
        let told = |pause| lives.told(BrokerPart::Front(0), ExitStatus::from_raw(9), pause, "");
        assert!(told(Duration::ZERO).ends_with("; restarting it at once"));
        assert!(told(Duration::from_millis(1_900)).ends_with("; restarting it in 2 s"));
    }

    #[test]
    fn parts_are_given_up_when_none_of_them_can_serve() {
        let (one, other) = (BrokerPart::Front(0), BrokerPart::Front(1));
        let (exited, damaged) = (ExitStatus::from_raw(1 << 8), ExitStatus::from_raw(6 << 8));
        let mut lives = Lives::default();
        assert_eq!(lives.of_all(&[one]), Deaths::Some, "it was not started yet");
        lives.began(one);
        lives.began(other);
        for _ in 0..DEATHS_MAX {
            lives.died(one, exited);
        }
        assert_eq!((lives.of_all(&[one]), lives.of_all(&[one, other])), (Deaths::InVain, Deaths::Some));
        lives.died(other, damaged);
        assert_eq!((lives.of_all(&[other]), lives.of_all(&[one, other])), (Deaths::Damage, Deaths::InVain));
        lives.0.get_mut(&one).unwrap().has_served = true;
        assert_eq!(lives.of_all(&[one]), Deaths::Some, "it may again");
    }

    #[test]
    fn the_last_words_are_the_last_lines_of_a_log_of_any_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("front-0.log");
        assert_eq!(last_lines(&path), "");
        std::fs::write(&path, format!("{}\none\ntwo\n\ntwo\nthr\x1bee\n", "x".repeat(10_000))).unwrap();
        assert_eq!(last_lines(&path), "one | two | three");
    }
}
