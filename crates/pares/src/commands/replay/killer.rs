//! Kills the leading venue after every so many events, and never the last one that can go on.
//!
//! ```text
//!            events % N == 0, all venues back            death seen, restarted, resynchronised
//!  [all back] ------------------------------> [one down] ------------------------------------> [all back]
//!                                                  |
//!                                                  +-- the next kill comes due first: the flow is held
//! ```
//! At full speed N events pass faster than a process starts. Killing the survivor would prove nothing
//! about a race, and skipping the kill would make the figure a matter of luck; so the flow is held until
//! both race again, and goes on for a moment before the kill, which thus always meets commands in flight
//! (a kill whose moment would lie beyond the end of the day is left out).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pares_node::supervisor::Death;
use pares_node::{Role, Supervisor};
use pares_types::VenueId;
use rustix::process::Signal;

use crate::error::CommandError;
use crate::venues::Venues;

/// How long a killed venue may take to be back.
const PATIENCE: Duration = Duration::from_secs(60);

/// A killed venue that is not back yet.
struct Down {
    since: Instant,
    death_seen: bool,
}

/// Kills venues, and waits for them.
pub struct Killer {
    every: Option<u64>,
    /// The next kill by the plan, and when it may come at the earliest; events.
    planned: u64,
    due: u64,
    /// The flow waits for a venue to come back.
    held: bool,
    /// Events for which the flow goes on after being held.
    run_up: u64,
    venues: Venues,
    down: BTreeMap<VenueId, Down>,
    /// What the killing gave.
    pub toll: Toll,
}

/// What the killing gave.
#[derive(Clone, Debug, Default)]
pub struct Toll {
    /// Venues killed.
    pub kills: u64,
    /// How long each needed to resynchronise, from the start of its process, microseconds.
    pub resync_us: Vec<u64>,
    /// How long each was away, from the kill, microseconds.
    pub away_us: Vec<u64>,
    /// Nodes that died without being killed, in words.
    pub deaths: Vec<String>,
}

impl Killer {
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
            down: BTreeMap::new(),
            toll: Toll::default(),
        }
    }

    /// The event after which no command may be sent before [`Killer::tick`] was called again.
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
    pub fn tick(&mut self, supervisor: &mut Supervisor, events: u64) -> Result<(), CommandError> {
        for death in supervisor.tick()? {
            self.on_death(&death);
        }
        self.note_returns(supervisor)?;
        if events < self.due {
            return Ok(());
        }
        let all_back = self.down.is_empty() && self.venues.all_back(supervisor);
        match (all_back, std::mem::replace(&mut self.held, !all_back)) {
            (false, _) => {}
            (true, true) => self.due = events + self.run_up,
            (true, false) => self.kill(supervisor, events)?,
        }
        Ok(())
    }

    fn kill(&mut self, supervisor: &mut Supervisor, events: u64) -> Result<(), CommandError> {
        let leader = self.venues.leading();
        supervisor.signal(Role::Venue(leader), Signal::KILL)?;
        self.down.insert(leader, Down { since: Instant::now(), death_seen: false });
        self.toll.kills += 1;
        self.planned = self.planned.saturating_add(self.every.unwrap_or(u64::MAX));
        self.due = self.planned.max(events);
        Ok(())
    }

    fn on_death(&mut self, death: &Death) {
        let killed = match death.role {
            Role::Venue(id) => self.down.get_mut(&id).filter(|down| !down.death_seen),
            _ => None,
        };
        match killed {
            Some(down) => down.death_seen = true,
            None => {
                let complaint = death.complaint.as_deref().unwrap_or("it said nothing");
                self.toll.deaths.push(format!("{} ended ({}): {complaint}", death.role, death.how));
            }
        }
    }

    /// Until its death is seen, a killed venue looks like one that is up.
    fn note_returns(&mut self, supervisor: &Supervisor) -> Result<(), CommandError> {
        let back = |(id, down): (&VenueId, &Down)| {
            (down.death_seen && self.venues.is_back(supervisor, *id)).then_some(*id)
        };
        let back: Vec<VenueId> = self.down.iter().filter_map(back).collect();
        for id in back {
            let down = self.down.remove(&id).expect("just found");
            self.toll.resync_us.push(self.venues.state(id).resync_us);
            self.toll.away_us.push(u64::try_from(down.since.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        match self.down.iter().find(|(_, down)| down.since.elapsed() > PATIENCE) {
            Some((id, _)) => Err(CommandError::Failed(self.not_back(*id))),
            None => Ok(()),
        }
    }

    fn not_back(&self, id: VenueId) -> String {
        let last = self.toll.deaths.last().map(|death| format!("; {death}")).unwrap_or_default();
        format!("venue-{id} was killed and did not come back within a minute{last}")
    }

    /// Waits until every venue is back, so that what they did since shows in the figures.
    ///
    /// # Errors
    /// As [`Killer::tick`].
    pub fn finish(&mut self, supervisor: &mut Supervisor) -> Result<(), CommandError> {
        while !self.down.is_empty() {
            for death in supervisor.tick()? {
                self.on_death(&death);
            }
            self.note_returns(supervisor)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
