//! How fast commands had their replies, and what they waited for meanwhile.
//!
//! An average hides what a run is made of: at first commands wait for quotes, then the site is the limit, and at the end few users have anything left. So replies
//! are counted in every tenth of a second, and once in each it is looked at what waits.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_broker::{BrokerReply, Verb};
use pares_front::FrontBacklog;
use pares_os::Quantiles;
use serde::Serialize;

/// Width of a slot, ms.
const SLOT_MS: u64 = 100;
/// Slots of a second.
const SECOND: usize = 10;
/// Longest time that is distinguished, ns.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// What waited at a moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BacklogSample {
    /// Since the run began.
    pub ms: u64,
    /// Commands that waited for a quote.
    pub for_quotes: usize,
    /// Commands that waited for an earlier one of their user's.
    pub for_users: usize,
    /// Commands that the accounts had.
    pub under_way: usize,
    /// Users all of whose commands had their replies.
    pub idle_users: usize,
}

/// Times of a kind of command, from its arrival to its reply.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CommandTimes {
    /// How many commands.
    pub count: u64,
    /// Half of them had their reply within this.
    pub p50_ms: f64,
    /// Of a hundred, 99 had it within this.
    pub p99_ms: f64,
    /// All had it within this.
    pub max_ms: f64,
}

/// See the [module](self).
pub(crate) struct Tally {
    began: Instant,
    pub(crate) done: u64,
    pub(crate) refused: u64,
    /// Lines that are no command.
    pub(crate) unreadable: u64,
    /// When each command without a reply arrived.
    open: HashMap<u64, Duration>,
    /// Replies in each tenth of a second.
    slots: Vec<u64>,
    times: BTreeMap<Verb, Histogram<u64>>,
    samples: Vec<BacklogSample>,
}

impl Tally {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            done: 0,
            refused: 0,
            unreadable: 0,
            open: HashMap::new(),
            slots: Vec::new(),
            times: BTreeMap::new(),
            samples: Vec::new(),
        }
    }

    /// A command arrives at this place.
    pub(crate) fn arrived(&mut self, arrival: u64) {
        self.open.insert(arrival, self.began.elapsed());
    }

    /// The one that arrived at this place has its reply.
    pub(crate) fn note(&mut self, arrival: u64, verb: Verb, reply: &BrokerReply) {
        let Some(arrived) = self.open.remove(&arrival) else { return };
        let took = self.began.elapsed().saturating_sub(arrived);
        self.count(verb, took, !matches!(reply, BrokerReply::Refused { .. }));
    }

    /// A command has its reply, so long after it arrived.
    pub(crate) fn count(&mut self, verb: Verb, took: Duration, is_done: bool) {
        let slot = slot_of(self.began.elapsed());
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += 1;
        let took = u64::try_from(took.as_nanos()).unwrap_or(LONGEST_NS);
        self.times.entry(verb).or_insert_with(times).saturating_record(took);
        match is_done {
            true => self.done += 1,
            false => self.refused += 1,
        }
    }

    /// Looks at what waits, if that was not done in this tenth of a second.
    pub(crate) fn look(&mut self, backlog: impl FnOnce() -> FrontBacklog) -> bool {
        let now = self.began.elapsed();
        let is_due = self.samples.last().is_none_or(|last| last.ms / SLOT_MS < ms(now) / SLOT_MS);
        if is_due {
            let FrontBacklog { for_quotes, for_users, under_way, idle_users } = backlog();
            self.samples.push(BacklogSample { ms: ms(now), for_quotes, for_users, under_way, idle_users });
        }
        is_due
    }

    /// What it has seen waiting; none if it has never looked.
    pub(crate) fn backlog(&self) -> Option<Vec<BacklogSample>> {
        (!self.samples.is_empty()).then(|| self.samples.clone())
    }

    pub(crate) fn since_began(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.began)
    }

    pub(crate) fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// Replies in each tenth of a second.
    pub(crate) fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// The most replies within a second.
    pub(crate) fn best_second(&self) -> u64 {
        let whole = self.slots.windows(SECOND.min(self.slots.len().max(1)));
        whole.map(|slots| slots.iter().sum()).max().unwrap_or_default()
    }

    /// Replies a second from `instant` to `took` after the beginning; none if that is less than a tenth of a second.
    pub(crate) fn per_second_after(&self, instant: Instant, took: Duration) -> Option<f64> {
        let first = slot_of(self.since_began(instant)) + 1;
        let from = Duration::from_millis(first as u64 * SLOT_MS);
        let seconds = took.checked_sub(from)?.as_secs_f64();
        let told: u64 = self.slots.get(first..)?.iter().sum();
        (seconds * 1e3 >= SLOT_MS as f64).then(|| told as f64 / seconds)
    }

    /// By the command's name.
    pub(crate) fn times(&self) -> BTreeMap<&'static str, CommandTimes> {
        let in_ms = |ns: Option<u64>| ns.unwrap_or_default() as f64 / 1e6;
        let of = |times: &Histogram<u64>| {
            let Quantiles { count, p50, p99, max } = Quantiles::of(times);
            CommandTimes { count, p50_ms: in_ms(p50), p99_ms: in_ms(p99), max_ms: in_ms(max) }
        };
        self.times.iter().map(|(verb, times)| (verb.name(), of(times))).collect()
    }

    /// Of a hundred commands, whatever they were, 99 had their reply within this, ms.
    pub(crate) fn p99_ms(&self) -> f64 {
        let mut all = times();
        for of_verb in self.times.values() {
            all.add(of_verb).expect("all have the same bounds");
        }
        Quantiles::of(&all).p99.unwrap_or_default() as f64 / 1e6
    }

    pub(crate) fn told(&self) -> u64 {
        self.done + self.refused
    }
}

fn times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("constant bounds are valid")
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn slot_of(time: Duration) -> usize {
    usize::try_from(ms(time) / SLOT_MS).unwrap_or(usize::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_second_is_ten_tenths_after_last_quote_is_apart() {
        let mut tally = Tally::begin();
        assert_eq!(tally.best_second(), 0);
        tally.slots = vec![1, 1, 50];
        assert_eq!(tally.best_second(), 52, "a run of less than a second is all of it");
        tally.slots = [vec![1; 5], vec![10; 10], vec![2; 5]].concat();
        assert_eq!(tally.best_second(), 100);
        let (quote, took) = (tally.began + Duration::from_millis(1_450), Duration::from_millis(2_000));
        assert_eq!(tally.per_second_after(quote, took), Some(20.0));
        assert_eq!(tally.per_second_after(quote, Duration::from_millis(1_550)), None);
    }

    #[test]
    fn each_command_has_time_each_tenth_one_sample() {
        let mut tally = Tally::begin();
        (0..3).for_each(|arrival| tally.arrived(arrival));
        tally.note(1, Verb::Add, &BrokerReply::Done);
        tally.note(0, Verb::Quote, &BrokerReply::Done);
        let times = tally.times();
        assert_eq!((times["ADD"].count, times["QUOTE"].count, tally.told()), (1, 1, 2));
        assert!(times["ADD"].p50_ms <= times["ADD"].max_ms && tally.open.len() == 1);
        assert!(tally.p99_ms() >= times["ADD"].p50_ms && tally.p99_ms() > 0.0);
        assert!(tally.backlog().is_none(), "nobody has looked");
        tally.look(FrontBacklog::default);
        assert_eq!(tally.backlog().map(|samples| samples.len()), Some(1));
        tally.samples[0].ms = u64::MAX;
        assert!(!tally.look(|| panic!("it was looked at already")));
    }
}
