//! How a site is, for people.

use pares_cluster::ClusterLog;

use super::Cycle;
use crate::application::Application;
use crate::report::{HeldMemory, SiteReport};
use crate::world::World;

impl<W: World, A: Application> Cycle<W, A> {
    /// How it is.
    #[must_use]
    pub(crate) fn report(&self) -> SiteReport {
        let configuration = self.site.configuration();
        let era = configuration.era;
        let id = self.site.id();
        let heard = self.site.statuses();
        SiteReport {
            site: format!("{}.{}", id.cluster.0, id.number),
            era: (era.takeovers, era.number, era.by.0),
            certifier: configuration.certifier.0,
            live: configuration.live.iter().map(|cluster| cluster.0).collect(),
            delegate: self.log.role().leads,
            certifies: self.site.certifies(),
            recalling: self.site.is_recalling(),
            delivered: self.site.delivered().0,
            stable: self.site.stable().0,
            stored: self.base.version().0,
            open: self.requests.open.len(),
            behind: self.site.is_behind(),
            held: HeldMemory::of(&self.site.held(), self.requests.held_bytes()),
            votes: self.votes(),
            voters: self.voters().iter().collect(),
            other_lists: self.other_lists(),
            apart: self.apart(),
            trouble: self.world.trouble(),
            differing: self.differing(),
            refused: self.turned_away.told(),
            heard: heard
                .map(|status| (status.site.cluster.0, status.era().number, status.delivered.0))
                .collect(),
            work: self.work,
        }
    }
}
