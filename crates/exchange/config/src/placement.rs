//! Which venue executes which shards now, and the steps by which a shard moves while members trade.
//!
//! `pares.toml` says it first. A restart with another one voids what was not recorded, so a move while trading cannot go by a file that each node
//! reads when it likes: two recorders that judge by sets of venues without a common majority may believe different things. So a shard moves
//! in steps, each with a number, and the next is written only once those have followed for whom it matters (`pares_roles::lanes`):
//!
//! ```text
//!  settled(old) --> begun: new restore it --> joined: old and new execute it, and vote --> settled(new)
//!        ^----- taken back -----'                  '-- taken back: old and new exchanged
//! ```
//! The steps are a text, the file `lanes` in the system's directory; here is what it means. Who writes it is another matter.

use std::fmt::{self, Display};

use pares_types::{ShardId, VenueId, VenueSet, Voters};
use serde::{Deserialize, Serialize};

use crate::{ConfigError, ROLE_MAX, SystemConfig};

/// Which venues execute a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seats {
    /// These.
    Settled(VenueSet),
    /// The shard moves.
    Moving {
        /// Those that had it.
        before: VenueSet,
        /// Those that are to have it.
        after: VenueSet,
        /// How far.
        step: MoveStep,
    },
}

/// How far a move has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MoveStep {
    /// The new venues restore the shard and have no vote.
    Begun,
    /// They have.
    Joined,
}

impl Seats {
    const NONE: Self = Self::Settled(VenueSet::NONE);

    /// All that execute the shard, or restore it.
    #[must_use]
    #[inline]
    pub fn all(self) -> VenueSet {
        match self {
            Self::Settled(venues) => venues,
            Self::Moving { before, after, .. } => before.or(after),
        }
    }

    /// Those whose statements about it count.
    #[must_use]
    pub fn voters(self) -> Voters {
        match self {
            Self::Settled(venues) | Self::Moving { before: venues, step: MoveStep::Begun, .. } => {
                venues.into()
            }
            Self::Moving { before, after, step: MoveStep::Joined } => Voters { before, after },
        }
    }

    /// Those that it moves to.
    #[must_use]
    pub fn coming(self) -> VenueSet {
        match self {
            Self::Settled(_) => VenueSet::NONE,
            Self::Moving { before, after, .. } => after.without(before),
        }
    }

    /// Whether the venue restores the shard, and does not execute it yet: all that it would execute could be what only it vouches for, and a
    /// move that is taken back would leave that nowhere.
    #[must_use]
    pub fn is_restored_by(self, venue: VenueId) -> bool {
        matches!(self, Self::Moving { step: MoveStep::Begun, .. }) && self.coming().contains(venue)
    }

    /// The next step of its way to those venues, which may be back; the same if it is there. `None` if it is on its way to others.
    #[must_use]
    pub fn next(self, to: VenueSet) -> Option<Self> {
        use MoveStep::{Begun, Joined};
        Some(match self {
            Self::Settled(venues) if venues == to => self,
            Self::Settled(before) => Self::Moving { before, after: to, step: Begun },
            Self::Moving { before, after, step: Begun } if after == to => {
                Self::Moving { before, after, step: Joined }
            }
            Self::Moving { before, step: Begun, .. } if before == to => Self::Settled(before),
            Self::Moving { after, step: Joined, .. } if after == to => Self::Settled(after),
            Self::Moving { before, after, step: Joined } if before == to => {
                Self::Moving { before: after, after: before, step: Joined }
            }
            Self::Moving { .. } => return None,
        })
    }
}

impl Display for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled(venues) => write!(f, "{}", words(*venues)),
            Self::Moving { before, after, step: MoveStep::Begun } => {
                write!(f, "{}; {} restore it", words(*before), words(after.without(*before)))
            }
            Self::Moving { before, after, step: MoveStep::Joined } => {
                write!(f, "{} and {}", words(*before), words(*after))
            }
        }
    }
}

/// Venues as a list of numbers.
fn words(venues: VenueSet) -> String {
    numbers(venues).iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

fn numbers(venues: VenueSet) -> Vec<u16> {
    venues.iter().map(|venue| venue.0).collect()
}

/// Which venue executes which shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    number: u64,
    /// By shard id; nobody executes what is no shard.
    shards: Vec<Seats>,
}

impl Placement {
    /// As `pares.toml` says it, before any shard was moved.
    pub(crate) fn first(highest: ShardId) -> Self {
        Self { number: 0, shards: vec![Seats::NONE; usize::from(highest.0) + 1] }
    }

    pub(crate) fn settle(&mut self, shard: ShardId, venues: VenueSet) {
        self.shards[usize::from(shard.0)] = Seats::Settled(venues);
    }

    /// Its number: each step of a move has the next one.
    #[must_use]
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Who has that shard.
    #[must_use]
    #[inline]
    pub fn seats(&self, shard: ShardId) -> Seats {
        self.shards.get(usize::from(shard.0)).copied().unwrap_or(Seats::NONE)
    }

    /// The venues that execute a shard; none if the system has no such shard.
    #[must_use]
    #[inline]
    pub fn venues_of(&self, shard: ShardId) -> VenueSet {
        self.seats(shard).all()
    }

    /// Whether the venue executes the shard.
    #[must_use]
    pub fn executes(&self, venue: VenueId, shard: ShardId) -> bool {
        self.venues_of(shard).contains(venue)
    }

    /// The shards that a venue executes, in order.
    pub fn shards_of(&self, venue: VenueId) -> impl Iterator<Item = ShardId> {
        self.shards().filter(move |&shard| self.executes(venue, shard))
    }

    /// The shards that other venues execute and this one does not, in order.
    pub fn shards_without(&self, venue: VenueId) -> impl Iterator<Item = ShardId> {
        self.shards().filter(move |&shard| !self.executes(venue, shard))
    }

    /// Those that execute a shard of this venue, the venue itself among them.
    #[must_use]
    pub fn peers_of(&self, venue: VenueId) -> VenueSet {
        self.shards_of(venue).fold(VenueSet::NONE, |all, shard| all.or(self.venues_of(shard)))
    }

    /// The shards that are moving.
    pub fn moving(&self) -> impl Iterator<Item = ShardId> {
        self.shards().filter(|&shard| matches!(self.seats(shard), Seats::Moving { .. }))
    }

    fn shards(&self) -> impl Iterator<Item = ShardId> {
        let all = self.shards.iter().zip(0..=u16::MAX);
        all.filter(|(seats, _)| !seats.all().is_empty()).map(|(_, shard)| ShardId(shard))
    }

    /// The next one, in which that shard is there.
    ///
    /// # Errors
    /// If a venue would execute nothing.
    pub fn with(&self, shard: ShardId, seats: Seats, config: &SystemConfig) -> Result<Self, ConfigError> {
        let mut next = self.clone();
        next.number += 1;
        next.shards[usize::from(shard.0)] = seats;
        next.checked(config)
    }

    fn checked(self, config: &SystemConfig) -> Result<Self, ConfigError> {
        match config.venue_ids().find(|&venue| self.peers_of(venue).is_empty()) {
            Some(venue) => Err(ConfigError(format!("venue {venue} would execute nothing: leave it a shard"))),
            None => Ok(self),
        }
    }

    /// As [`Placement::read`] reads it.
    ///
    /// # Errors
    /// If the configuration has no valid lanes.
    pub fn text(&self, config: &SystemConfig) -> Result<String, ConfigError> {
        let configured = config.placement()?;
        let line = |shard: ShardId| {
            let (venues, to, step) = match self.seats(shard) {
                Seats::Settled(venues) => (venues, VenueSet::NONE, None),
                Seats::Moving { before, after, step } => (before, after, Some(step)),
            };
            let [configured, venues, to] = [configured.venues_of(shard), venues, to].map(numbers);
            Line { shard: shard.0, configured, venues, to, step }
        };
        let lines = Lines { number: self.number, shards: self.shards().map(line).collect() };
        let lines = toml::to_string(&lines).expect("numbers are always valid TOML");
        Ok(format!(
            "# Which venue executes which shards; `pares admin lanes` writes it. It rules over the `lanes` of pares.toml, \
             which said `configured`.\n# See docs/operations/lanes.md.\n\n{lines}"
        ))
    }

    /// What the text says, to a node of a system that runs, or with `starts` to one that is about to start: then shards that were not moved
    /// may have other lanes in `pares.toml` than before.
    ///
    /// # Errors
    /// If `pares.toml` was changed so that it contradicts the text, or this is no such text.
    pub fn read(text: &str, config: &SystemConfig, starts: bool) -> Result<Self, ConfigError> {
        let configured = config.placement()?;
        let lines: Lines = toml::from_str(text).map_err(|error| unreadable(&error))?;
        let mut placement = Self { number: lines.number, ..configured.clone() };
        for line in lines.shards {
            let (shard, was, seats) = line.read()?;
            let now = configured.venues_of(shard);
            if now.is_empty() {
                continue;
            }
            let is_carried_over = starts && (seats == Seats::Settled(was) || seats == Seats::Settled(now));
            placement.shards[usize::from(shard.0)] = match was == now {
                true => seats,
                false if is_carried_over => Seats::Settled(now),
                false => return Err(contradicted(shard, (was, now), seats, starts)),
            };
            let known = VenueSet::first(config.venues);
            if !placement.venues_of(shard).without(known).is_empty() {
                return Err(contradicted(shard, (was, now), seats, starts));
            }
        }
        placement.checked(config)
    }
}

fn unreadable(why: &dyn Display) -> ConfigError {
    ConfigError(format!(
        "the file `lanes` in the system's directory says nothing that this build understands ({why}): \
                         stop the system, remove it, and start it again by the `lanes` of pares.toml"
    ))
}

fn contradicted(shard: ShardId, (was, now): (VenueSet, VenueSet), seats: Seats, starts: bool) -> ConfigError {
    let (was, now) = (words(was), words(now));
    ConfigError(match starts {
        true => format!(
            "shard {shard}: the lanes of pares.toml were changed from venues {was} to {now}, but the shard was moved to {seats}: put {was} or \
             {seats} there, or remove the file `lanes` in the system's directory to start by pares.toml"
        ),
        false => format!(
            "shard {shard}: the lanes of pares.toml were changed from venues {was} to {now} since the system was started: put {was} back, and \
             move the shard with `pares admin lanes`; or stop the system, and start it again"
        ),
    })
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    number: u64,
    shards: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    shard: u16,
    configured: Vec<u16>,
    venues: Vec<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    to: Vec<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<MoveStep>,
}

impl Line {
    fn read(&self) -> Result<(ShardId, VenueSet, Seats), ConfigError> {
        let set = |venues: &[u16]| match venues {
            [] => Err(unreadable(&"no venues")),
            _ if venues.iter().any(|&venue| usize::from(venue) >= ROLE_MAX) => {
                Err(unreadable(&"a venue above 15"))
            }
            _ => Ok(venues.iter().copied().map(VenueId).collect::<VenueSet>()),
        };
        let venues = set(&self.venues)?;
        let seats = match self.step {
            None => Seats::Settled(venues),
            Some(step) => Seats::Moving { before: venues, after: set(&self.to)?, step },
        };
        Ok((ShardId(self.shard), set(&self.configured)?, seats))
    }
}

#[cfg(test)]
mod tests;
