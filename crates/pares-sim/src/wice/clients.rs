//! Clients: one request at a time, repeated until it is known to be done, at one site or another.

use pares_wice::{Body, Outcome, SiteId, Transaction, TransactionId, Value, Version};

use super::Defect;
use super::bank::Request;
use super::check::Checker;
use super::world::{CLIENT_PATIENCE_US, Event, Verdict, World};

/// A client, and its one request at a time.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) site: SiteId,
    pub(super) sequence: u64,
    pub(super) attempt: u32,
    pub(super) request: Option<Request>,
    /// Counts what it does, so that what was meant for an earlier state is known.
    pub(super) turn: u64,
}

impl World {
    pub(super) fn outcome(&mut self, site: SiteId, id: TransactionId, outcome: Outcome) -> Verdict {
        self.note(|| format!("{site} tells {id}: {outcome:?}"));
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        let (client, attempt) = (node.waiting.remove(&id), node.submitted.remove(&id));
        match outcome {
            Outcome::Committed { version, .. } => {
                self.answer(site, id, version)?;
                if let Some(client) = client {
                    self.done(client, id);
                }
            }
            Outcome::Aborted(_) => {
                self.summary.aborted += 1;
                self.checker.on_abort(id, attempt.expect("what has an outcome was submitted"));
                let Some(client) = client else { return Ok(()) };
                let waits = self.clients[client].sequence == id.sequence && self.clients[client].site == site;
                if waits {
                    let after = self.random.between(100, 30_000);
                    self.turn(client, after);
                }
            }
        }
        Ok(())
    }

    /// Somebody is told: then all living clusters have it. A cluster that was admitted and has not heard so is not among those that could
    /// go on without the others, and may still lack what was answered before.
    fn answer(&mut self, site: SiteId, id: TransactionId, version: Version) -> Verdict {
        let node = &self.nodes[&site];
        let live = node.site.as_ref().expect("it told an outcome").configuration().live;
        let began = node.delivered.iter().rposition(|entry| matches!(entry.body, Body::Configure(_)));
        // Whoever has not heard yet that a cluster was declared lost had counted on it, and rightly so at that time.
        let newest =
            self.nodes.values().filter_map(|node| node.site.as_ref()).map(|site| site.configuration());
        let newest = newest.max_by_key(|configuration| configuration.era).expect("somebody told it");
        for cluster in live.iter().filter(|&cluster| newest.live.contains(cluster)) {
            let members = || self.nodes.values().filter(|node| node.id.cluster == cluster);
            let knows = began
                .is_none_or(|at| members().any(|member| member.delivered.get(at) == node.delivered.get(at)));
            if knows
                && !members().any(|member| Checker::holds(&member.delivered, id, version))
                && !self.clusters[usize::from(cluster.0)].holds(id, version)
            {
                return Err(format!("{id} was answered at version {version}, which {cluster} does not have"));
            }
        }
        self.checker.on_answer(id, version);
        Ok(())
    }

    fn done(&mut self, client: usize, id: TransactionId) {
        let state = &mut self.clients[client];
        if state.request.is_some() && state.sequence == id.sequence {
            state.request = None;
            self.summary.committed += 1;
            let after = self.random.between(1_000, 60_000);
            self.turn(client, after);
        }
    }

    fn turn(&mut self, client: usize, after_us: u64) {
        self.clients[client].turn += 1;
        let turn = self.clients[client].turn;
        self.schedule(after_us, Event::Act { client, turn });
    }

    /// A client executes its request, the next one or the same again.
    pub(super) fn act(&mut self, client: usize, turn: u64) -> Verdict {
        if self.clients[client].turn != turn {
            return Ok(());
        }
        if self.clients[client].request.is_none() {
            if self.faults.over {
                return Ok(());
            }
            let state = &mut self.clients[client];
            state.sequence += 1;
            state.request = Some(Request::draw(client as u64, state.sequence, &mut self.random));
        }
        self.turn(client, CLIENT_PATIENCE_US);
        let at = self.clients[client].site;
        let impatient = self.nodes[&at].waiting.values().any(|&waits| waits == client);
        if self.nodes[&at].site.is_none() || impatient {
            let sites: Vec<SiteId> = self.nodes.keys().copied().collect();
            self.clients[client].site = sites[self.random.index(sites.len())];
        }
        self.execute(client)
    }

    fn execute(&mut self, client: usize) -> Verdict {
        let state = &mut self.clients[client];
        state.attempt += 1;
        let (site, attempt, request) = (state.site, state.attempt, state.request.expect("it has one"));
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        let Some(rules) = node.site.as_ref().filter(|rules| !rules.is_recalling()) else { return Ok(()) };
        let snapshot = rules.snapshot();
        let id = TransactionId { client: request.client, sequence: request.sequence };
        let done = Request::done_key(request.client);
        let sequence = |value: Option<Value>| value.and_then(|value| value.as_counter()).unwrap_or(0);
        if sequence(node.read(&done, snapshot.version)) >= i128::from(request.sequence) {
            // Committed by an earlier attempt; said once that is stable.
            if sequence(node.read(&done, rules.stable())) >= i128::from(request.sequence) {
                self.done(client, id);
            } else {
                self.turn(client, 50_000);
            }
            return Ok(());
        }
        let executed = request.execute(|key| node.read(key, snapshot.version));
        node.waiting.insert(id, client);
        let writes = executed.writes.clone();
        let mut claimed = snapshot;
        if self.plan.defect == Some(Defect::ClaimsLaterSnapshot) {
            claimed.version = Version(snapshot.version.0 + 1);
        }
        let transaction =
            Transaction { id, attempt, snapshot: claimed.version, writes, ..Transaction::default() };
        let life = node.life;
        self.checker.executed(id, attempt, snapshot.version, executed);
        let after = if self.random.chance(200) { self.random.between(1_000, 60_000) } else { 0 };
        self.schedule(after, Event::Submit { site, life, transaction, snapshot: claimed });
        Ok(())
    }
}
