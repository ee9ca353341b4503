//! Watching the venues of a running system, to find the one that leads.

use pares_node::{Layout, NodeId, Supervisor, SystemConfig};
use pares_os::CountersReader;
use pares_types::VenueId;

/// What one venue says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueState {
    /// Positions executed, over all shards.
    pub position: u64,
    /// Positions its own proposals won since it started.
    pub won: u64,
    /// How long it took to resynchronise when it last started, microseconds; 0 while it still does.
    pub resync_us: u64,
    /// How often a step ended because the window had moved on.
    pub too_far_behind: u64,
}

/// The venues of a system.
pub struct Venues {
    layout: Layout,
    ids: Vec<VenueId>,
    won_before: Vec<u64>,
}

impl Venues {
    /// The venues of the system in `layout`.
    #[must_use]
    pub fn new(layout: &Layout, config: &SystemConfig) -> Self {
        let ids: Vec<_> = config.venue_ids().collect();
        Self { layout: layout.clone(), won_before: vec![0; ids.len()], ids }
    }

    /// What a venue says of itself; the default if it has not started yet.
    #[must_use]
    pub fn state(&self, id: VenueId) -> VenueState {
        let Ok(counters) = CountersReader::open(&self.layout.counters(&NodeId::Venue(id).to_string())) else {
            return VenueState::default();
        };
        let get = |name: &str| counters.get(name).unwrap_or_default();
        let positions = counters.iter().filter(|(name, _)| name.starts_with("position-"));
        VenueState {
            position: positions.map(|(_, position)| position).sum(),
            won: get("won"),
            resync_us: get("resync_us"),
            too_far_behind: get("too_far_behind"),
        }
    }

    /// All venues' states.
    #[must_use]
    pub fn states(&self) -> Vec<VenueState> {
        self.ids.iter().map(|&id| self.state(id)).collect()
    }

    /// The venue that leads: the one that won most positions since this was last asked.
    pub fn leading(&mut self) -> VenueId {
        let won: Vec<u64> = self.states().iter().map(|state| state.won).collect();
        let lately = won.iter().zip(&self.won_before).map(|(now, before)| now.saturating_sub(*before));
        let (index, _) = lately.enumerate().max_by_key(|&(_, won)| won).expect("a system has a venue");
        self.won_before = won;
        self.ids[index]
    }

    /// Whether a venue is up and has caught up.
    #[must_use]
    pub fn is_back(&self, supervisor: &Supervisor, id: VenueId) -> bool {
        supervisor.is_up(NodeId::Venue(id)) && self.state(id).resync_us > 0
    }

    /// Whether all are.
    #[must_use]
    pub fn all_back(&self, supervisor: &Supervisor) -> bool {
        self.ids.iter().all(|&id| self.is_back(supervisor, id))
    }
}
