//! When the leading venue is killed: after every so many events, and never the last one that can continue.
//!
//! ```text
//!            events % N == 0, all venues back            death seen, restarted, resynchronised
//!  [all back] ------------------------------> [one down] ------------------------------------> [all back]
//!                                                  |
//!                                                  +-- the next kill comes due first: the flow is held
//! ```
//! At full speed N events pass faster than a process starts. Killing the survivor would prove nothing about a
//! race, and skipping the kill would make the figure a matter of luck; so the flow is held until both race
//! again, and continues for a moment before the kill, which thus always meets commands in flight (a kill
//! whose moment would lie beyond the end of the day is left out).

use pares_load::{Killer, LabError, Venues};
use pares_node::Supervisor;
use pares_node::supervisor::Death;

/// Kills the leading venue when that is due.
pub(crate) struct Schedule {
    every: Option<u64>,
    /// The next kill by the plan, and when it may come at the earliest; events.
    planned: u64,
    due: u64,
    /// The flow waits for a venue to come back.
    held: bool,
    /// Events for which the flow continues after being held.
    run_up: u64,
    venues: Venues,
    killer: Killer,
    /// What the killing gave.
    pub toll: KillStats,
}

/// What the killing gave.
#[derive(Clone, Debug, Default)]
pub struct KillStats {
    /// Venues killed.
    pub kills: u64,
    /// How long each needed to resynchronise, from the start of its process, microseconds.
    pub resync_us: Vec<u64>,
    /// How long each was away, from the kill, microseconds.
    pub away_us: Vec<u64>,
    /// Nodes that died without being killed, in words.
    pub deaths: Vec<String>,
}

impl Schedule {
    /// Kills after each `every` events of a flow with `in_flight` commands in flight; `None` never kills.
    #[must_use]
    pub fn new(every: Option<u64>, in_flight: u64, supervisor: &Supervisor) -> Self {
        let planned = every.unwrap_or(u64::MAX);
        Self {
            every,
            planned,
            due: planned,
            held: false,
            run_up: in_flight.min(planned) / 2,
            venues: Venues::new(supervisor.layout(), supervisor.config()),
            killer: Killer::default(),
            toll: KillStats::default(),
        }
    }

    /// The event after which no command may be sent before [`Schedule::tick`] was called again.
    #[must_use]
    pub fn stop_before(&self) -> u64 {
        if self.held { 0 } else { self.due }
    }

    /// Whether the flow waits for a venue.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Looks after the nodes, and kills the leading venue if that is due after so many `events`.
    ///
    /// # Errors
    /// If a node cannot be restarted, or a killed venue does not come back.
    pub fn tick(&mut self, supervisor: &mut Supervisor, events: u64) -> Result<(), LabError> {
        for death in supervisor.tick() {
            self.on_death(&death);
        }
        self.note_returns(supervisor)?;
        if events < self.due {
            return Ok(());
        }
        let all_back = !self.killer.awaits() && self.venues.all_back(supervisor);
        match (all_back, std::mem::replace(&mut self.held, !all_back)) {
            (false, _) => {}
            (true, true) => self.due = events + self.run_up,
            (true, false) => self.kill(supervisor, events)?,
        }
        Ok(())
    }

    fn kill(&mut self, supervisor: &mut Supervisor, events: u64) -> Result<(), LabError> {
        let leader = self.venues.leading();
        self.killer.kill(supervisor, leader)?;
        self.toll.kills += 1;
        self.planned = self.planned.saturating_add(self.every.unwrap_or(u64::MAX));
        self.due = self.planned.max(events);
        Ok(())
    }

    fn on_death(&mut self, death: &Death) {
        if !self.killer.on_death(death) {
            let complaint = death.complaint.as_deref().unwrap_or("it said nothing");
            self.toll.deaths.push(format!("{} ended ({}): {complaint}", death.node, death.how));
        }
    }

    fn note_returns(&mut self, supervisor: &Supervisor) -> Result<(), LabError> {
        for back in self.killer.returns(supervisor, &self.venues)? {
            self.toll.resync_us.push(back.resync.as_micros() as u64);
            self.toll.away_us.push(back.away.as_micros() as u64);
        }
        Ok(())
    }

    /// Waits until every venue is back, so that what they did since shows in the figures.
    ///
    /// # Errors
    /// As [`Schedule::tick`].
    pub fn finish(&mut self, supervisor: &mut Supervisor) -> Result<(), LabError> {
        while self.killer.awaits() {
            for death in supervisor.tick() {
                self.on_death(&death);
            }
            self.note_returns(supervisor)?;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    }
}
