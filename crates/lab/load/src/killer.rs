//! Kills venues, and sees when each is back in the race.
//!
//! ```text
//!  [there] -- SIGKILL --> [dying] -- its death is seen --> [dead] -- started again, caught up --> [there]
//! ```
//! Until its death is seen, a venue that was killed looks like one that is up and has caught up long ago.

use std::time::{Duration, Instant};

use pares_node::supervisor::Death;
use pares_node::{NodeId, Supervisor};
use pares_types::VenueId;
use rustix::process::Signal;

use crate::{LabError, Venues};

/// How long a killed venue may take to be back, unless told.
const PATIENCE: Duration = Duration::from_secs(60);

/// A venue that was killed and is not back.
struct Absence {
    venue: VenueId,
    killed: Instant,
    dead: bool,
}

/// A venue that is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// Which.
    pub venue: VenueId,
    /// From the kill until it had caught up, as seen from here.
    pub away: Duration,
    /// From the start of its new process until it had caught up, as it says itself.
    pub resync: Duration,
}

/// Kills venues, and waits for them.
pub struct Killer {
    patience: Duration,
    absent: Vec<Absence>,
}

impl Default for Killer {
    fn default() -> Self {
        Self::new(PATIENCE)
    }
}

impl Killer {
    /// One that waits so long for each.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self { patience, absent: Vec::new() }
    }

    /// Kills a venue with SIGKILL.
    ///
    /// # Errors
    /// If it is not running.
    pub fn kill(&mut self, supervisor: &mut Supervisor, venue: VenueId) -> Result<(), LabError> {
        supervisor.signal(NodeId::Venue(venue), Signal::KILL)?;
        self.absent.push(Absence { venue, killed: Instant::now(), dead: false });
        Ok(())
    }

    /// Takes note of a death. Says whether it is that of a venue that was killed.
    pub fn on_death(&mut self, death: &Death) -> bool {
        let killed = |absence: &&mut Absence| death.node == NodeId::Venue(absence.venue) && !absence.dead;
        self.absent.iter_mut().find(killed).map(|absence| absence.dead = true).is_some()
    }

    /// The venues that have come back since this was last asked.
    ///
    /// # Errors
    /// If one has not for too long.
    pub fn returns(&mut self, supervisor: &Supervisor, venues: &Venues) -> Result<Vec<Return>, LabError> {
        let back = |absence: &mut Absence| absence.dead && venues.is_back(supervisor, absence.venue);
        let returned = self.absent.extract_if(.., back).map(|absence| Return {
            venue: absence.venue,
            away: absence.killed.elapsed(),
            resync: Duration::from_micros(venues.state(absence.venue).resync_us),
        });
        let returned = returned.collect();
        match self.absent.iter().find(|absence| absence.killed.elapsed() > self.patience) {
            None => Ok(returned),
            Some(Absence { venue, .. }) => Err(LabError::Failed(format!(
                "venue-{venue} was killed and did not come back within {} s; see its log in {}",
                self.patience.as_secs(),
                supervisor.layout().complaints(NodeId::Venue(*venue)).display()
            ))),
        }
    }

    /// Whether a killed venue is awaited.
    #[must_use]
    pub fn awaits(&self) -> bool {
        !self.absent.is_empty()
    }

    /// Whether the death of that venue is awaited.
    #[must_use]
    pub fn awaits_death_of(&self, venue: VenueId) -> bool {
        self.absent.iter().any(|absence| absence.venue == venue && !absence.dead)
    }
}
