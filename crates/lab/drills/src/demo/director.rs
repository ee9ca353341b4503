//! Who is killed when, and when it is back.
//!
//! ```text
//!            time to kill, all nodes back                     answered again, 50 ms over
//!   Calm ------------------------------> Absent --> back --------------------------------> Calm
//!     gaps count as quiet                  gaps count as this kill's
//! ```
//! The leading venue is killed, because the other one's death would prove less. A kill waits until every venue is
//! up and has caught up: what two venues promise is that one may die, not both.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_flow::Random;
use pares_load::{Killer, LabError, Observed, Return, Stretch, Venues};
use pares_node::Supervisor;
use pares_node::supervisor::Death;
use pares_text as text;
use pares_types::VenueId;

use super::day::news::News;

/// How long after a kill gaps are put down to it, at least.
const AFTERMATH: Duration = Duration::from_millis(50);

/// A kill, when all is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Who was killed.
    pub venue: VenueId,
    /// The longest time between two answers from the kill until it was back.
    pub gap_ns: u64,
    /// From the kill until it had caught up again, as seen from here.
    pub absent: Duration,
    /// From the start of its new process until it had caught up, as it says itself.
    pub resync: Duration,
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The leading venue was killed.
    Killed(VenueId),
    /// It is back.
    Back(Kill),
    /// A node died that nobody killed.
    Died(Death),
    /// The trading day continues.
    Day(News),
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(venue) => write!(f, "venue-{venue} killed (kill -9) while leading"),
            Self::Back(kill) => {
                let nanos = |duration: Duration| text::duration(duration.as_nanos() as u64);
                let (absent, resync, gap) =
                    (nanos(kill.absent), nanos(kill.resync), text::duration(kill.gap_ns));
                write!(f, "venue-{} back after {absent}, resync {resync}; gap {gap}", kill.venue)
            }
            Self::Died(death) => {
                let complaint = death.complaint.as_deref().unwrap_or("no complaint");
                write!(f, "{} ended by itself ({}): {complaint}", death.node, death.how)
            }
            Self::Day(news) => news.fmt(f),
        }
    }
}

/// A node that was killed and is not back yet.
#[derive(Default)]
struct Absence {
    /// Since it is back: how it was, and how many requests had been answered then.
    back: Option<(Return, u64)>,
    gap_ns: u64,
}

/// The one who kills.
pub struct Director {
    every: Option<Duration>,
    random: Random,
    next: Option<Instant>,
    asked: bool,
    killer: Killer,
    absence: Option<Absence>,
    /// The kills so far that are over.
    pub kills: Vec<Kill>,
    /// Venues killed, by id.
    pub killed: Vec<u64>,
    killed_at: Vec<Option<Instant>>,
    /// The longest gap while nobody was absent.
    pub quiet_gap_ns: u64,
    /// While set, nobody is killed.
    pub paused: bool,
}

impl Director {
    /// Kills about every `every`, or never if that is zero.
    pub fn new(every: Duration, seed: u64, venues: usize) -> Self {
        let mut director = Self {
            every: Some(every).filter(|every| !every.is_zero()),
            random: Random::new(seed),
            next: None,
            asked: false,
            killer: Killer::default(),
            absence: None,
            kills: Vec::new(),
            killed: vec![0; venues],
            killed_at: vec![None; venues],
            quiet_gap_ns: 0,
            paused: false,
        };
        director.plan_next();
        director
    }

    /// Puts a gap that ended now down to the kill at hand, or to nothing.
    pub fn note_gap(&mut self, gap_ns: u64) {
        match &mut self.absence {
            Some(absence) => absence.gap_ns = absence.gap_ns.max(gap_ns),
            None => self.quiet_gap_ns = self.quiet_gap_ns.max(gap_ns),
        }
    }

    /// The longest gap around a kill.
    pub fn kill_gap_ns(&self) -> u64 {
        self.kills.iter().map(|kill| kill.gap_ns).max().unwrap_or_default()
    }

    /// Whether a killed venue is still awaited.
    pub fn awaits(&self) -> bool {
        self.absence.is_some()
    }

    /// Whether `venue` is dead, or its successor not started yet.
    pub fn is_dead(&self, venue: VenueId) -> bool {
        self.killer.awaits_death_of(venue)
    }

    /// Kills at the next opportunity.
    pub fn hurry(&mut self) {
        self.asked = true;
    }

    /// Kills nobody from now on.
    pub fn end(&mut self) {
        (self.next, self.every, self.asked) = (None, None, false);
    }

    /// When `venue` was killed last.
    pub fn last_killed(&self, venue: VenueId) -> Option<Instant> {
        self.killed_at[usize::from(venue.0)]
    }

    /// Takes note of a death. Says whether it was the one awaited.
    pub fn on_death(&mut self, death: &Death) -> bool {
        self.killer.on_death(death)
    }

    /// Takes the next step: kills, or sees who is back.
    ///
    /// # Errors
    /// If a killed venue does not come back.
    pub fn step(
        &mut self,
        supervisor: &mut Supervisor,
        venues: &Venues,
        observed: &Observed,
        leading: VenueId,
    ) -> Result<Option<Happening>, LabError> {
        if self.absence.is_some() {
            return self.await_back(supervisor, venues, observed);
        }
        if !self.is_due() || !venues.all_back(supervisor) {
            return Ok(None);
        }
        self.asked = false;
        observed.enter(Stretch::Disturbed);
        self.killer.kill(supervisor, leading)?;
        self.killed[usize::from(leading.0)] += 1;
        self.killed_at[usize::from(leading.0)] = Some(Instant::now());
        self.absence = Some(Absence::default());
        Ok(Some(Happening::Killed(leading)))
    }

    fn await_back(
        &mut self,
        supervisor: &Supervisor,
        venues: &Venues,
        observed: &Observed,
    ) -> Result<Option<Happening>, LabError> {
        let absence = self.absence.as_mut().expect("only called while somebody is absent");
        let completed = observed.completed.load(Ordering::Relaxed);
        if let Some(back) = self.killer.returns(supervisor, venues)?.pop() {
            absence.back = Some((back, completed));
        }
        let over = self.killed_at.iter().flatten().all(|killed| killed.elapsed() >= AFTERMATH);
        match absence.back {
            // A gap counts when it ends: wait for an answer.
            Some((back, before)) if over && completed > before => {
                let Return { venue, away: absent, resync } = back;
                let kill = Kill { venue, gap_ns: absence.gap_ns, absent, resync };
                self.kills.push(kill);
                self.absence = None;
                self.plan_next();
                observed.enter(Stretch::Quiet);
                Ok(Some(Happening::Back(kill)))
            }
            _ => Ok(None),
        }
    }

    fn is_due(&self) -> bool {
        self.asked || (!self.paused && self.next.is_some_and(|next| Instant::now() >= next))
    }

    /// Not in step with anything: up to a fifth sooner or later than asked.
    fn plan_next(&mut self) {
        let percent = 80 + self.random.below(41) as u32;
        self.next = self.every.map(|every| Instant::now() + every * percent / 100);
    }
}
