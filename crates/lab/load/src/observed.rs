//! What a load generator has seen, shared with its watchers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use pares_config::ROLE_MAX;

use crate::numbers::Numbers;

/// Under which heading latencies are recorded: a drill compares disturbed stretches with quiet ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stretch {
    /// Nothing is being done to the system.
    Quiet = 0,
    /// A node is dead or stopped.
    Disturbed = 1,
    /// A node is coming back.
    Resync = 2,
}

/// Latencies in nanoseconds from the scheduled send time, up to two minutes.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 120_000_000_000, 3).expect("constant bounds are valid")
}

/// The generator's figures; every field may be read at any time.
pub struct Observed {
    /// Requests due so far.
    pub offered: AtomicU64,
    /// Requests sent.
    pub sent: AtomicU64,
    /// Requests answered, each counted once.
    pub completed: AtomicU64,
    /// Answers to a request already answered.
    pub duplicated: AtomicU64,
    /// Requests a gateway did not take in.
    pub rejected: AtomicU64,
    /// Requests sent again because a connection broke.
    pub retried: AtomicU64,
    /// Trades reported to resting or incoming orders.
    pub trades: AtomicU64,
    /// When the last answer came, monotonic ns.
    pub last_ns: AtomicU64,
    /// Members that are not connected to their own gateway.
    pub away: AtomicU64,
    gap_max_ns: AtomicU64,
    /// The same for the members of each gateway.
    gaps_max_ns: [AtomicU64; ROLE_MAX],
    resumed_ns: AtomicU64,
    recalled: AtomicBool,
    phase: AtomicU8,
    stop: AtomicBool,
    latencies: Mutex<[Histogram<u64>; 3]>,
    recent: Mutex<Histogram<u64>>,
    answered: Mutex<Numbers>,
}

impl Observed {
    pub(crate) fn new() -> Self {
        Self {
            offered: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            duplicated: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            retried: AtomicU64::new(0),
            trades: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
            away: AtomicU64::new(0),
            gap_max_ns: AtomicU64::new(0),
            gaps_max_ns: std::array::from_fn(|_| AtomicU64::new(0)),
            resumed_ns: AtomicU64::new(0),
            recalled: AtomicBool::new(false),
            phase: AtomicU8::new(Stretch::Quiet as u8),
            stop: AtomicBool::new(false),
            latencies: Mutex::new([histogram(), histogram(), histogram()]),
            recent: Mutex::new(histogram()),
            answered: Mutex::new(Numbers::default()),
        }
    }

    /// The longest time between two answers since this was last asked.
    pub fn take_gap_max_ns(&self) -> u64 {
        self.gap_max_ns.swap(0, Ordering::Relaxed)
    }

    /// The longest time between two answers to members of that gateway, since this was last asked. They are its
    /// members also while they are away.
    pub fn take_gap_max_ns_of(&self, gateway: usize) -> u64 {
        self.gaps_max_ns[gateway].swap(0, Ordering::Relaxed)
    }

    /// `of_all` since the last answer to any member, `of_gateway` since the last to a member of `gateway`.
    pub(crate) fn note_gaps(&self, of_all: u64, gateway: usize, of_gateway: u64) {
        self.gap_max_ns.fetch_max(of_all, Ordering::Relaxed);
        self.gaps_max_ns[gateway].fetch_max(of_gateway, Ordering::Relaxed);
    }

    /// When the first answer came on a connection that replaced a lost one, monotonic ns, since this was last
    /// asked; none if there was none.
    pub fn take_resumed_ns(&self) -> Option<u64> {
        Some(self.resumed_ns.swap(0, Ordering::Relaxed)).filter(|&ns| ns != 0)
    }

    pub(crate) fn note_resumed(&self, now_ns: u64) {
        // Only the first counts; whether it was is of no interest here.
        let _ = self.resumed_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether members that are away are to return to their own gateway.
    pub fn recall(&self, recalled: bool) {
        self.recalled.store(recalled, Ordering::Relaxed);
    }

    pub(crate) fn recalled(&self) -> bool {
        self.recalled.load(Ordering::Relaxed)
    }

    /// Records latencies under `phase` from now on.
    pub fn enter(&self, phase: Stretch) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn phase(&self) -> usize {
        usize::from(self.phase.load(Ordering::Relaxed))
    }

    /// The latencies recorded under `phase`.
    pub fn latencies(&self, phase: Stretch) -> Histogram<u64> {
        self.latencies.lock().expect("the generator does not panic while holding this")[phase as usize]
            .clone()
    }

    /// All latencies.
    pub fn all_latencies(&self) -> Histogram<u64> {
        let mut all = self.latencies(Stretch::Quiet);
        for phase in [Stretch::Disturbed, Stretch::Resync] {
            all.add(self.latencies(phase)).expect("equal bounds");
        }
        all
    }

    /// Latencies since this was last asked, for live displays.
    pub fn take_recent(&self) -> Histogram<u64> {
        let mut recent = self.recent.lock().expect("the generator does not panic while holding this");
        std::mem::replace(&mut *recent, histogram())
    }

    /// Forgets all latencies so far: those of warming up.
    pub fn forget_latencies(&self) {
        let mut all = self.latencies.lock().expect("nobody panics while holding this");
        all.iter_mut().for_each(Histogram::reset);
    }

    /// Requests sent and neither answered nor rejected.
    pub fn in_flight(&self) -> u64 {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // What is done is read first: it never exceeds what is sent later.
        let done = load(&self.completed) + load(&self.rejected);
        load(&self.sent).saturating_sub(done)
    }

    pub(crate) fn add_latencies(&self, batch: &mut [Histogram<u64>; 3]) {
        let mut recent = self.recent.lock().expect("nobody panics while holding this");
        let mut all = self.latencies.lock().expect("nobody panics while holding this");
        for (all, batch) in all.iter_mut().zip(batch) {
            all.add(&*batch).expect("equal bounds");
            recent.add(&*batch).expect("equal bounds");
            batch.reset();
        }
    }

    pub(crate) fn keep_answered(&self, answered: Numbers) {
        *self.answered.lock().expect("nobody panics while holding this") = answered;
    }

    /// The requests that were answered, by their number from the load's first; none before the load has ended.
    pub fn answered(&self) -> Numbers {
        self.answered.lock().expect("nobody panics while holding this").clone()
    }

    /// Asks the generator to send no more, and to end when all is answered.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
