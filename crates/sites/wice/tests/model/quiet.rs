//! Progress (L1), as a bounded check: from a state, with everything under way lost, nobody failing any more and an
//! operator who declares lost what is lost, all is settled within some rounds of ticks.

use pares_wice::{ClusterSet, Command, SiteId};

use crate::world::{Phase, State, World};

const ROUNDS: usize = 25;
/// Rounds that the operator waits for something to come of a decision.
const PATIENCE: usize = 6;

impl World {
    /// Whether all clients have an answer and all clusters the same history, in the end. Nothing wrong may happen on the way.
    pub fn settles(&self, mut state: State) -> bool {
        for round in 0..ROUNDS {
            self.lead(&mut state);
            self.run(&mut state);
            if self.is_settled(&state) {
                return state.wrong.is_empty();
            }
            if round % PATIENCE == 0 {
                self.operate(&mut state);
                self.renew(&mut state);
            }
            for id in self.ids().into_iter() {
                if state.site(id).is_some() {
                    self.tick(&mut state, id);
                }
            }
        }
        false
    }

    /// The same, to look at what comes of it.
    pub fn go_on(&self, state: &mut State) {
        for _ in 0..PATIENCE {
            self.lead(state);
            self.run(state);
            for id in self.ids().into_iter().filter(|id| state.site(*id).is_some()).collect::<Vec<_>>() {
                self.tick(state, id);
            }
        }
    }

    /// Each cluster that is left has a delegate, and knows it.
    fn lead(&self, state: &mut State) {
        for cluster in 0..self.sites.len() {
            if state.clusters[cluster].lost {
                continue;
            }
            let ids = || (0..self.sites[cluster]).map(|number| SiteId::new(cluster as u8, number));
            if ids().all(|id| state.site(id).is_none()) {
                self.restart(state, SiteId::new(cluster as u8, 0), true);
            }
            if state.clusters[cluster].leader.is_none() {
                let id = ids().find(|id| state.site(*id).is_some()).expect("one is up");
                let kept = state.clusters[cluster].log.len() - state.clusters[cluster].committed;
                self.elect(state, id, kept);
            }
            for id in ids() {
                let is_leader = state.clusters[cluster].leader == Some(id.number);
                if state.member(id).leads && !is_leader {
                    self.depose(state, id);
                }
            }
        }
    }

    /// Everything that happens by itself, in a fixed order, until nothing does.
    fn run(&self, state: &mut State) {
        for script in 0..self.scripts.len() {
            if let Phase::Executing(snapshot) = state.clients[script].phase
                && state.site(state.clients[script].at).is_some()
            {
                self.submit(state, script, snapshot);
            }
        }
        for _ in 0..100 {
            self.deliver_some(state);
            let mut quiet = state.post.is_empty();
            for cluster in 0..self.sites.len() {
                while state.leader(cluster).is_some()
                    && state.clusters[cluster].committed < state.clusters[cluster].log.len()
                {
                    self.commit(state, cluster);
                    quiet = false;
                }
            }
            for id in self.ids() {
                let behind = state.member(id).applied < state.clusters[usize::from(id.cluster.0)].committed;
                if behind && state.site(id).is_some() {
                    self.catch_up_later(state, id);
                    quiet = false;
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn operate(&self, state: &mut State) {
        let lost = (0..self.sites.len()).filter(|&cluster| state.clusters[cluster].lost);
        let lost: ClusterSet = lost.map(|cluster| pares_wice::ClusterId(cluster as u8)).collect();
        for cluster in 0..self.sites.len() {
            let Some(site) = state.leader(cluster).and_then(|leader| state.site(leader)) else { continue };
            let live = site.configuration().live;
            let gone: ClusterSet = lost.iter().filter(|&cluster| live.contains(cluster)).collect();
            if gone != ClusterSet::default() && self.command(state, cluster, Command::DeclareLost(gone)) {
                return;
            }
        }
    }

    /// Who waits for promises that no cluster gives is brought back by the newest history: its era becomes the higher one.
    fn renew(&self, state: &mut State) {
        let leader = |cluster: usize| state.site(state.leader(cluster)?);
        let waits = |site: &pares_wice::Site| site.base().promised != site.configuration().era;
        let clusters = 0..self.sites.len();
        if !clusters.clone().filter_map(leader).any(waits) {
            return;
        }
        let certifies = clusters.filter(|&cluster| leader(cluster).is_some_and(pares_wice::Site::certifies));
        let newest = certifies.max_by_key(|&cluster| leader(cluster).map(|site| site.configuration().era));
        if let Some(cluster) = newest {
            self.command(state, cluster, Command::Renew);
        }
    }

    fn is_settled(&self, state: &State) -> bool {
        let open = |client: &crate::world::Client| {
            matches!(client.phase, Phase::Waiting | Phase::Executing(_)) && state.site(client.at).is_some()
        };
        let left: Vec<_> = state.clusters.iter().filter(|cluster| !cluster.lost).collect();
        !state.clients.iter().any(open)
            && (state.split || left.iter().all(|cluster| cluster.history == left[0].history))
    }
}
