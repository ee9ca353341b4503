//! The roles by name, and how each runs as a process.

use std::fmt;
use std::str::FromStr;

use pares_shm::scheduling::{self, Background};
use pares_shm::{BellKind, Bells};
use pares_types::{GatewayId, RecorderId, VenueId};

use crate::config::{Layout, SystemConfig, bells};
use crate::gateway::{self, GatewayNode};
use crate::recorder::RecorderNode;
use crate::{NodeError, crash, device, duty, epoch, venue, wrong};

/// One node of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A history recorder.
    Recorder(RecorderId),
    /// An execution venue.
    Venue(VenueId),
    /// A gateway.
    Gateway(GatewayId),
}

impl Role {
    /// All nodes of a system, in the order in which they are best started: who is read from first.
    #[must_use]
    pub fn all(config: &SystemConfig) -> Vec<Self> {
        let recorders = config.recorder_ids().map(Self::Recorder);
        let venues = config.venue_ids().map(Self::Venue);
        recorders.chain(venues).chain(config.gateway_ids().map(Self::Gateway)).collect()
    }

    /// Its bell.
    #[must_use]
    pub fn bell(self) -> usize {
        match self {
            Self::Gateway(id) => bells::gateway(id),
            Self::Venue(id) => bells::venue(id),
            Self::Recorder(id) => bells::recorder(id),
        }
    }

    /// The log it writes.
    #[must_use]
    pub fn log(self, layout: &Layout) -> std::path::PathBuf {
        match self {
            Self::Gateway(id) => layout.gateway_log(id),
            Self::Venue(id) => layout.venue_log(id),
            Self::Recorder(id) => layout.recorder_log(id),
        }
    }

    fn is_configured(self, config: &SystemConfig) -> bool {
        Self::all(config).contains(&self)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorder(id) => write!(f, "recorder-{id}"),
            Self::Venue(id) => write!(f, "venue-{id}"),
            Self::Gateway(id) => write!(f, "gateway-{id}"),
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let wrong = || format!("`{name}` is no node; nodes are named like gateway-0, venue-1, recorder-0");
        let (role, id) = name.split_once('-').ok_or_else(wrong)?;
        let id = id.parse().map_err(|_| wrong())?;
        match role {
            "recorder" => Ok(Self::Recorder(RecorderId(id))),
            "venue" => Ok(Self::Venue(VenueId(id))),
            "gateway" => Ok(Self::Gateway(GatewayId(id))),
            _ => Err(wrong()),
        }
    }
}

/// Runs a node in this process until it is told to stop or its parent is gone.
///
/// # Errors
/// Whatever keeps it from starting or going on.
pub fn run(role: Role, layout: &Layout) -> Result<(), NodeError> {
    crash::arm_from_environment(role)?;
    device::arm_from_environment(role)?;
    wrong::arm_from_environment(role)?;
    let config = SystemConfig::load(&layout.config())?;
    if !role.is_configured(&config) {
        return Err(NodeError::Config(format!("{role} is not part of {}", layout.config().display())));
    }
    let stop = duty::stop_on_signals()?;
    if let Role::Venue(id) = role {
        let of = layout.clone();
        return venue::run(id, &config, layout, &stop, move || announce(role, &of));
    }
    let kind = if matches!(role, Role::Gateway(_)) { gateway::BELL } else { BellKind::Futex };
    let mut bell = Bells::create(&layout.run())?
        .listen(role.bell(), kind)
        .map_err(NodeError::io("listening to the bell"))?;
    // Reading through what there is keeps a processor busy, which those who trade meanwhile need more.
    let background = Background::enter(venue::BACKGROUND);
    match role {
        Role::Recorder(id) => {
            let mut node = RecorderNode::open(id, &config, layout, epoch::current(&config, layout)?)?;
            drop(background);
            scheduling::short_slices();
            announce(role, layout)?;
            duty::run(&mut node, &mut bell, &stop)
        }
        Role::Venue(_) => unreachable!("venues run above"),
        Role::Gateway(id) => {
            let mut node = GatewayNode::open(id, &config, layout, &bell)?;
            drop(background);
            scheduling::short_slices();
            announce(role, layout)?;
            duty::run(&mut node, &mut bell, &stop)
        }
    }
}

/// Says that the node is up: its process id, in `run/NODE.pid`.
fn announce(role: Role, layout: &Layout) -> Result<(), NodeError> {
    let path = layout.pid(role);
    // Renamed into place: whoever reads it finds the old or the new, never half of one.
    let unfinished = path.with_extension("pid.new");
    std::fs::write(&unfinished, std::process::id().to_string())
        .and_then(|()| std::fs::rename(&unfinished, &path))
        .map_err(NodeError::io("announcing the node"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_named_as_they_print() {
        for role in Role::all(&SystemConfig::default()) {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert!("venus-1".parse::<Role>().is_err());
    }
}
