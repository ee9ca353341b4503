//! How a site is, for people.

use pares_cluster::ClusterLog;

use super::Cycle;
use crate::application::Application;
use crate::config::number_of;
use crate::place::filling::Filling;
use crate::report::{HeldMemory, LinkFigures, SiteReport};
use crate::world::{Connections, World};

impl<W: World, A: Application> Cycle<W, A> {
    /// How it is.
    #[must_use]
    pub(crate) fn report(&self) -> SiteReport {
        let heard = self.site.statuses();
        SiteReport {
            speaks: self.links.speaks(),
            all_speak: self.all_speak(),
            open: self.requests.open.len(),
            behind: self.site.is_behind(),
            held: HeldMemory::of(&self.site.held(), self.requests.held_bytes()),
            votes: self.votes(),
            voters: self.voters().iter().collect(),
            other_lists: self.other_lists(),
            apart: self.apart(),
            trouble: self.world.trouble(),
            differing: self.differing(),
            refused: self.turned_away.told(self.world.now()),
            heard: heard
                .map(|status| (status.site.cluster.0, status.era().number, status.delivered.0))
                .collect(),
            is_filling: self.filling.is_some(),
            fills_failed: self.filling.as_ref().map_or(0, Filling::failed_times),
            links: self.link_figures(),
            work: self.work,
            told: self.told,
            ..self.progress()
        }
    }

    /// Which site it is, and how far.
    fn progress(&self) -> SiteReport {
        let configuration = self.site.configuration();
        let era = configuration.era;
        let id = self.site.id();
        SiteReport {
            site: format!("{}.{}", id.cluster.0, id.number),
            era: (era.takeovers, era.number, era.by.0),
            certifier: configuration.certifier.0,
            live: configuration.live.iter().map(|cluster| cluster.0).collect(),
            term: self.log.role().term,
            delegate: self.log.role().leads,
            certifies: self.site.certifies(),
            recalling: self.site.is_recalling(),
            delivered: self.site.delivered().0,
            stable: self.site.stable().0,
            stored: self.base.version().0,
            ..SiteReport::default()
        }
    }

    fn link_figures(&self) -> LinkFigures {
        let backlogs = self.others(false).into_iter().map(|site| self.links.backlog(number_of(site)));
        let backlogs: Vec<usize> = backlogs.flatten().collect();
        let live = self.site.configuration().live;
        let heard = self.site.statuses().filter(|status| live.contains(status.site.cluster));
        let least = heard.map(|status| status.delivered).min();
        let lag = least.map_or(0, |least| self.site.delivered().0.saturating_sub(least.0));
        LinkFigures { connected: backlogs.len(), backlog: backlogs.iter().sum(), lag }
    }
}
