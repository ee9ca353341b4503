//! What goes wrong: delegates that change, sites that crash, clusters that are lost.

use pares_wice::site::{Base, Stored};
use pares_wice::{LogRole, Site, SiteId, Term};

use crate::shared::Shared;
use crate::world::{Cluster, Member, Phase, State, World, number};

impl World {
    pub fn take_office(&self, state: &mut State, id: SiteId) {
        let term = Term(state.clusters[number(id.cluster)].term);
        state.member_mut(id).leads = true;
        self.at(state, id, |site, _| site.role(LogRole { term, leads: true }));
    }

    pub fn elect(&self, state: &mut State, id: SiteId, kept: usize) {
        let cluster = &mut state.clusters[number(id.cluster)];
        cluster.log.truncate(cluster.committed + kept);
        cluster.committed = cluster.log.len();
        cluster.leader = Some(id.number);
        cluster.term += 1;
        let term = Term(cluster.term);
        self.at(state, id, |site, _| site.role(LogRole { term, leads: false }));
        self.catch_up_first(state, id);
        self.take_office(state, id);
    }

    pub fn depose(&self, state: &mut State, id: SiteId) {
        let term = Term(state.clusters[number(id.cluster)].term);
        state.member_mut(id).leads = false;
        self.at(state, id, |site, _| site.role(LogRole { term, leads: false }));
    }

    pub fn refuse(&self, state: &mut State, cluster: usize, last: bool) {
        if last {
            state.clusters[cluster].log.pop();
        }
        let leader = state.leader(cluster).expect("enabled with a leader");
        self.depose(state, leader);
        // In the same term it must not judge again; in the next it may, and has all that its log held.
        self.take_office(state, leader);
        let under_way = state.clusters[cluster].log.len() - state.clusters[cluster].committed;
        self.elect(state, leader, under_way);
    }

    pub fn crash(&self, state: &mut State, id: SiteId) {
        let site = state.member_mut(id).site.take().expect("enabled where the site is up");
        let era = site.era_at(site.stable()).expect("an era that is kept");
        state.member_mut(id).stored =
            Stored { version: site.stable(), position: site.position(), era, digest: 0 };
        state.member_mut(id).leads = false;
        state.post.retain(|(_, to, _), _| *to != id);
        for (client, script) in
            state.clients.iter_mut().zip(&self.scripts).filter(|(client, _)| client.at == id)
        {
            if matches!(client.phase, Phase::Executing(_) | Phase::Waiting) {
                let again = client.executions.len() as u32 <= script.retries;
                client.phase = if again { Phase::Idle } else { Phase::Done };
            }
        }
        let cluster = &mut state.clusters[number(id.cluster)];
        if cluster.leader == Some(id.number) {
            cluster.leader = None;
        }
    }

    pub fn restart(&self, state: &mut State, id: SiteId, with_store: bool) {
        let stored = if with_store { state.member(id).stored } else { Stored::default() };
        let first = Site::new(self.settings(id), self.certifier);
        let site = Site::restore(self.settings(id), first.base(), stored);
        let member = state.member_mut(id);
        (member.site, member.applied) = (Some(Shared::new(site)), 0);
        self.catch_up_later(state, id);
    }

    pub fn lose(&self, state: &mut State, cluster: usize) {
        for id in self.ids_of(cluster) {
            if state.site(id).is_some() {
                self.crash(state, id);
            }
        }
        state.clusters[cluster].lost = true;
    }

    /// A lost cluster begins again with empty disks. Nothing that it said before is under way any more: connections are new.
    pub fn come_back(&self, state: &mut State, cluster: usize) {
        let ids = || self.ids_of(cluster);
        let eras = state.sites().map(|site| site.configuration().era);
        let without_it = eras.max().expect("a cluster returns to others");
        state.post.retain(|(from, _, _), _| number(from.cluster) != cluster);
        let members = ids().map(|id| {
            let settings = self.settings(id);
            let base = Base::returning(&settings, without_it);
            Member::of(Site::restore(settings, base, Stored::default()))
        });
        state.clusters[cluster] = Cluster::of(members);
        for other in self.ids().into_iter().filter(|id| number(id.cluster) != cluster) {
            if state.site(other).is_some() {
                self.at(state, other, |site, _| ids().for_each(|id| site.connected(id)));
            }
        }
        self.take_office(state, SiteId::new(cluster as u8, 0));
    }
}
