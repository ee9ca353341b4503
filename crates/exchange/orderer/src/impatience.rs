//! When an orderer stands for the lead.
//!
//! A failure detector that watches the leader must choose: seconds of silence, and every death is an outage of seconds; milliseconds, and
//! a slow moment deposes a healthy leader. Here nobody is watched. What tells of a death is that the own requests stay undecided, so
//! the bound is what decisions take here, measured: patience is four times their 99.9th percentile, 2 ms at least.
//!
//! ```text
//!   begun again by       a change of lead, an own decision, an own request where none was pending
//!   then stands          after patience, and an eighth more for each host of a lower number, so that two seldom stand at once
//!   then stands again    after a quarter to a half of it, as who refused may be impatient by now; less and less often
//! ```
//! Standing is asked for first, and who still hears the leader says no: alone an impatient member changes nothing. Where all are
//! slower than their patience, it is *needless*: the leader speaks afterwards. Then patience doubles, and is halved
//! after a calm minute.
//!
//! A connection to the leader that ends is most likely its death: then each stands at once, one after the other.
//!
//! Some requests may wait though others are decided: the leader may lack one gateway's log. Sixteen times as long is enough for them.

use pares_random::Random;

/// The shortest patience.
pub const PATIENCE_MIN_NS: u64 = 2_000_000;
/// The longest.
pub const PATIENCE_MAX_NS: u64 = 1_000_000_000;
const DOUBLINGS_MAX: u32 = 9;
/// A doubling is taken back after so long without a needless election.
const CALM_NS: u64 = 60_000_000_000;
/// Patience while others are decided, in patiences.
const STARVED: u64 = 16;
/// Between two members that stand because the leader is gone: an election takes less on most networks.
const APART_NS: u64 = 1_500_000;
/// So often a member stands again quickly.
const QUICK_REPEATS: u32 = 4;

/// When one orderer stands.
#[derive(Clone, Debug)]
pub struct Impatience {
    rank: u64,
    random: Random,
    latencies: Latencies,
    doublings: u32,
    /// Term and host of the lead last heard of, and when that was.
    lead: (u64, Option<u8>),
    lead_ns: u64,
    /// The last own decision.
    decided_ns: u64,
    /// When it stands because who led is gone.
    gone_ns: Option<u64>,
    /// Not before.
    again_ns: u64,
    repeats: u32,
    /// It has stood against the lead of that member, and does not know yet whether that was needless.
    against: Option<u8>,
    needless_ns: u64,
    elections: u64,
    needless: u64,
}

impl Impatience {
    /// That of the host which so many others come before.
    #[must_use]
    pub fn new(rank: u8, seed: u64) -> Self {
        Self {
            rank: rank.into(),
            random: Random::new(seed),
            latencies: Latencies::default(),
            doublings: 0,
            lead: (0, None),
            lead_ns: 0,
            decided_ns: 0,
            gone_ns: None,
            again_ns: 0,
            repeats: 0,
            against: None,
            needless_ns: 0,
            elections: 0,
            needless: 0,
        }
    }

    /// So often it has stood.
    #[must_use]
    pub fn elections(&self) -> u64 {
        self.elections
    }

    /// So often it need not have.
    #[must_use]
    pub fn needless(&self) -> u64 {
        self.needless
    }

    /// What it waits for a decision.
    #[must_use]
    pub fn patience_ns(&self) -> u64 {
        let usual = (4 * self.latencies.at_most_us(999) * 1_000).max(PATIENCE_MIN_NS);
        (usual << self.doublings).min(PATIENCE_MAX_NS)
    }

    /// Forgets what it has learned, to be found out.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        (self.doublings, self.repeats, self.latencies) = (0, 0, Latencies::default());
    }

    /// So many of a thousand own decisions took this long lately, in microseconds, or less.
    #[must_use]
    pub fn decision_us(&self, of_thousand: u32) -> u64 {
        self.latencies.at_most_us(of_thousand)
    }

    /// When to stand, of all own requests pending the oldest having been taken at `oldest_ns`.
    #[must_use]
    pub fn due_ns(&self, oldest_ns: u64) -> u64 {
        let patience = self.patience_ns();
        let stagger = self.rank * patience / 8;
        let begun = oldest_ns.max(self.lead_ns);
        let still = begun.max(self.decided_ns) + patience;
        let starved = begun + STARVED * patience;
        (still.min(starved) + stagger).max(self.again_ns)
    }

    /// When to stand because the leader is gone.
    #[must_use]
    pub fn gone_due_ns(&self) -> Option<u64> {
        self.gone_ns.map(|gone| gone.max(self.again_ns))
    }

    /// The connection to that member has ended.
    pub fn on_gone(&mut self, now_ns: u64, host: u8) {
        if self.lead.1 == Some(host) {
            let before = self.rank - u64::from(u64::from(host) < self.rank);
            self.gone_ns = Some(now_ns + before * APART_NS);
        }
    }

    /// It stands.
    pub fn on_standing(&mut self, now_ns: u64) {
        if self.repeats == 0 {
            self.elections += 1;
            self.against = self.lead.1;
        }
        let quarter = (self.patience_ns() / 4) << (self.repeats / QUICK_REPEATS).min(DOUBLINGS_MAX);
        let quarter = quarter.min(PATIENCE_MAX_NS);
        self.again_ns = now_ns + quarter + self.random.below(quarter);
        self.repeats += 1;
    }

    /// That member leads in that term; nothing if it is so already.
    pub fn on_lead(&mut self, now_ns: u64, term: u64, host: u8) {
        if self.lead != (term, Some(host)) {
            (self.lead, self.lead_ns) = ((term, Some(host)), now_ns);
            self.begin_anew();
        }
    }

    /// A message of that member came.
    pub fn on_heard(&mut self, now_ns: u64, host: u8) {
        self.gone_ns = self.gone_ns.filter(|_| self.lead.1 != Some(host));
        if self.against == Some(host) {
            self.against = None;
            self.needless += 1;
            self.needless_ns = now_ns;
            self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        }
    }

    /// An own request, taken then, is decided.
    pub fn on_decided(&mut self, now_ns: u64, taken_ns: u64) {
        // What waited for a new lead says nothing about how long decisions take.
        if taken_ns >= self.lead_ns {
            self.latencies.add(now_ns.saturating_sub(taken_ns) / 1_000);
            self.against = None;
        }
        self.decided_ns = now_ns;
        if self.doublings > 0 && now_ns >= self.needless_ns + CALM_NS {
            self.doublings -= 1;
            self.needless_ns = now_ns;
        }
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        (self.repeats, self.again_ns, self.gone_ns) = (0, 0, None);
    }
}

const QUARTERS: u32 = 2;
/// What decisions took, in microseconds: a histogram with four classes for each power of two. Old ones fade.
#[derive(Clone, Debug)]
struct Latencies {
    counts: [u32; 128],
    total: u32,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: [0; 128], total: 0 }
    }
}

impl Latencies {
    /// When there are so many all are halved.
    const FULL: u32 = 8_192;

    fn add(&mut self, us: u64) {
        self.counts[class(us)] += 1;
        self.total += 1;
        if self.total >= Self::FULL {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    /// What so many of a thousand took at most.
    fn at_most_us(&self, of_thousand: u32) -> u64 {
        let (mut above, others) = (0, 1_000 - of_thousand);
        let high = self.counts.iter().rposition(|&count| {
            above += count;
            u64::from(above) * 1_000 > u64::from(self.total) * u64::from(others)
        });
        high.map_or(0, upper_us)
    }
}

/// The class of a number of microseconds; those of more than an hour are together.
fn class(us: u64) -> usize {
    let us = us.min(u64::from(u32::MAX) >> 1);
    match us.checked_ilog2() {
        None | Some(0..QUARTERS) => us as usize,
        Some(power) => {
            let shift = power - QUARTERS;
            (((shift + 1) << QUARTERS) as u64 + (us >> shift) - (1 << QUARTERS)) as usize
        }
    }
}

/// The first number beyond a class.
fn upper_us(class: usize) -> u64 {
    let (shift, part) = (class >> QUARTERS, class as u64 & 3);
    match shift {
        0 => part + 1,
        _ => (part + (1 << QUARTERS) + 1) << (shift - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn classes_are_in_order_and_bound_what_is_in_them() {
        for us in (0..5_000).chain([1 << 20, (1 << 31) - 1, u64::from(u32::MAX), u64::MAX]) {
            let class = class(us);
            assert!(class < 128 && class >= super::class(us.saturating_sub(1)));
            assert!(us.min((1 << 31) - 1) < upper_us(class), "{us}");
            assert!(class == 0 || us >= upper_us(class - 1), "{us}");
        }
    }

    #[test]
    fn patience_is_four_times_what_nearly_all_decisions_take() {
        let mut impatience = Impatience::new(0, 1);
        assert_eq!(impatience.patience_ns(), 2 * MS);
        (1..=5_000).for_each(|number| impatience.on_decided(number * MS, number * MS - 100_000));
        assert_eq!(impatience.patience_ns(), 2 * MS);
        (1..=100).for_each(|number| impatience.on_decided(number * MS, number * MS - 900_000));
        assert!((3 * MS..5 * MS).contains(&impatience.patience_ns()));
        (0..100_000).for_each(|_| impatience.on_decided(9_000 * MS, 9_000 * MS));
        assert_eq!(impatience.patience_ns(), 2 * MS, "old ones fade");
    }

    #[test]
    fn a_change_of_lead_or_own_decision_begins_patience_anew() {
        let mut impatience = Impatience::new(1, 1);
        assert_eq!(impatience.due_ns(10 * MS), 12 * MS + MS / 4);
        impatience.on_lead(11 * MS, 3, 2);
        assert_eq!(impatience.due_ns(10 * MS), 13 * MS + MS / 4);
        impatience.on_decided(20 * MS, 20 * MS);
        impatience.on_lead(21 * MS, 3, 2);
        assert_eq!(impatience.due_ns(10 * MS), 22 * MS + MS / 4, "the lead is the same");
        (0..50).for_each(|number| impatience.on_decided((22 + number) * MS, (22 + number) * MS));
        assert_eq!(impatience.due_ns(10 * MS), 43 * MS + MS / 4, "one waits while others do not");
    }

    #[test]
    fn a_leader_that_is_gone_is_replaced_at_once_unless_it_speaks() {
        let mut impatience = Impatience::new(2, 1);
        impatience.on_lead(0, 1, 0);
        impatience.on_gone(9 * MS, 1);
        assert_eq!(impatience.gone_due_ns(), None, "another did not lead");
        impatience.on_gone(9 * MS, 0);
        assert_eq!(impatience.gone_due_ns(), Some(9 * MS + APART_NS), "one is before it");
        impatience.on_heard(10 * MS, 0);
        assert_eq!(impatience.gone_due_ns(), None);
        impatience.on_gone(11 * MS, 0);
        impatience.on_lead(12 * MS, 2, 1);
        assert_eq!(impatience.gone_due_ns(), None);
    }

    #[test]
    fn it_stands_again_soon_and_then_seldom() {
        let mut impatience = Impatience::new(0, 1);
        impatience.on_lead(0, 1, 2);
        let mut now = 100 * MS;
        let gaps: Vec<u64> = (0..16)
            .map(|_| {
                impatience.on_standing(now);
                let gap = impatience.due_ns(0) - now;
                now += gap;
                gap
            })
            .collect();
        assert!(gaps[..4].iter().all(|gap| (MS / 2..=MS).contains(gap)));
        assert!(gaps[15] >= 4 * MS, "{gaps:?}");
        assert_eq!(impatience.elections(), 1);
        impatience.on_lead(now, 2, 0);
        assert_eq!(impatience.due_ns(0), now + 2 * MS);
    }

    #[test]
    fn patience_doubles_when_the_leader_lives_and_is_halved_in_calm() {
        let mut impatience = Impatience::new(0, 1);
        impatience.on_lead(0, 1, 2);
        for round in 1..=3 {
            impatience.on_standing(round * 10 * MS);
            impatience.on_heard(round * 10 * MS + 1, 1);
            impatience.on_heard(round * 10 * MS + 1, 2);
            impatience.on_heard(round * 10 * MS + 2, 2);
            impatience.on_lead(round * 10 * MS + 3, 1 + round, 2);
            assert_eq!((impatience.needless(), impatience.patience_ns()), (round, (2 * MS) << round));
        }
        impatience.on_standing(100 * MS);
        impatience.on_lead(102 * MS, 9, 0);
        impatience.on_decided(103 * MS, 103 * MS);
        impatience.on_heard(104 * MS, 2);
        assert_eq!((impatience.needless(), impatience.elections()), (3, 4), "who led was gone");
        impatience.on_decided(CALM_NS + 100 * MS, CALM_NS + 100 * MS);
        assert_eq!(impatience.patience_ns(), 8 * MS);
    }
}
