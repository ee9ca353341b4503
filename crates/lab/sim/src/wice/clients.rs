//! Clients: one request at a time, repeated until it is known to be done, at one site or another. Meanwhile they read, anywhere.

use pares_link::ClientId;
use pares_site::protocol::{Ask, Between, Code, Horizon, Reply};
use pares_wice::{ClusterId, Era, SiteId, TransactionId, Version};

use super::bank::{self, Request};
use super::check::Committed;
use super::keeper;
use super::sites::{Event, Sites};
use super::wires::NEAR_US;
use super::{Broken, Defect, Verdict, must};

/// A client that has heard nothing for so long tries another site.
const PATIENCE_US: u64 = 700_000;
/// What is asked for all money.
pub(super) const READ: u64 = u64::MAX;
pub(super) const OPERATOR: ClientId = ClientId(u64::MAX);

/// A client, and its one request at a time.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) site: SiteId,
    pub(super) sequence: u64,
    pub(super) request: Option<Request>,
    pub(super) asked: u32,
    /// Counts what it does, so that what was meant for an earlier state is known.
    pub(super) turn: u64,
    /// How far it has seen, as sites have told it.
    pub(super) seen: Horizon,
    /// The same, as the checker knows: now, and when it asked for its request first.
    pub(super) floor: Version,
    pub(super) floor_of_request: Version,
}

impl Sites {
    fn turn_of(&mut self, client: usize, after_us: u64) {
        self.clients[client].turn += 1;
        let turn = self.clients[client].turn;
        self.schedule(after_us, Event::Act { client, turn });
    }

    /// A client asks for its request, the next one or the same again.
    pub(super) fn act(&mut self, client: usize, turn: u64) {
        if self.clients[client].turn != turn {
            return;
        }
        let again = self.clients[client].request.is_some();
        if !again && self.faults.over {
            return;
        }
        if !again {
            let state = &mut self.clients[client];
            state.sequence += 1;
            let id = TransactionId { client: client as u64, sequence: state.sequence };
            (state.request, state.asked) =
                (Some(Request::draw(id, self.plan.serialisable, &mut self.random)), 0);
            state.floor_of_request = state.floor;
        }
        let is_gone = !self.list.contains(&self.clients[client].site);
        if !again || is_gone || self.random.chance(700) {
            self.clients[client].site = self.list[self.random.index(self.list.len())];
        }
        if !self.departed.is_empty() && !self.faults.over && self.random.chance(150) {
            self.clients[client].site = self.departed[self.random.index(self.departed.len())];
        }
        let state = &self.clients[client];
        let (site, request) = (state.site, state.request.expect("it has one"));
        let accepts = self.nodes[&site].accepts();
        let patience = if accepts { PATIENCE_US } else { self.random.between(5_000, 50_000) };
        self.turn_of(client, patience);
        if accepts {
            self.ask(client, site, request);
        }
        if self.random.chance(300) {
            self.read_somewhere(client);
        }
    }

    /// What a client says that it has seen.
    fn seen(&self, client: usize) -> Horizon {
        match self.plan.defect {
            Some(Defect::ForgetsSessions) => Horizon::default(),
            _ => self.clients[client].seen,
        }
    }

    fn read_somewhere(&mut self, client: usize) {
        let sites: Vec<SiteId> = self.nodes.keys().copied().collect();
        let site = sites[self.random.index(sites.len())];
        let wants_latest = self.random.chance(300);
        let (mut floor, seen) = (self.clients[client].floor, self.seen(client));
        if wants_latest {
            floor = floor.max(self.checker.highest());
        }
        let asks_latest = wants_latest && self.plan.defect != Some(Defect::ReadsLatestAtOnce);
        let ask = if asks_latest { Ask::Latest } else { Ask::Read };
        let connection = self.ask_site(client, site, ask(READ, seen, Vec::new()).to_bytes());
        self.looks.insert(connection, floor);
    }

    fn ask(&mut self, client: usize, site: SiteId, request: Request) {
        let ask = Ask::Execute(request.id, self.seen(client), request.to_bytes()).to_bytes();
        if self.random.chance(50) {
            // Nonsense first; then the same twice, on two connections.
            let nonsense = vec![self.random.index(256) as u8 & 0xf0, 1, 2];
            self.ask_site(client, site, nonsense);
            self.clients[client].asked += 1;
            self.ask_site(client, site, ask.clone());
        }
        self.clients[client].asked += 1;
        self.ask_site(client, site, ask);
    }

    pub(super) fn ask_site(&mut self, client: usize, site: SiteId, bytes: Vec<u8>) -> ClientId {
        self.connections += 1;
        let connection = ClientId(self.connections << 16 | client as u64);
        let after = self.random.between(NEAR_US.0, NEAR_US.1);
        let life = self.nodes[&site].life;
        self.schedule(after, Event::Ask { site, life, connection, bytes });
        connection
    }

    /// A site answers.
    pub(super) fn replied(&mut self, site: SiteId, connection: ClientId, bytes: &[u8]) -> Verdict {
        if self.keeper.as_ref().is_some_and(|keeper| keeper.listens_to(connection)) {
            return self.kept(site, connection, bytes);
        }
        let Reply { to, code, horizon, body } = Reply::from_bytes(bytes).expect("a site sends replies");
        if keeper::is_a_keepers(connection) {
            return Ok(()); // of a question that it has given up
        }
        if connection == OPERATOR {
            self.operator_told = Some(code);
            return Ok(());
        }
        if self.fronts.is_some() {
            return self.front_told(site, connection, (code, horizon), &body);
        }
        let client = (connection.0 & 0xffff) as usize;
        let floor = self.looks.remove(&connection);
        if to == READ {
            return match (code, floor) {
                (Code::Done, Some(floor)) => self.looked(site, client, (floor, horizon), &body),
                _ => Ok(()),
            };
        }
        let waits = self.clients[client].request.is_some() && self.clients[client].sequence == to;
        match code {
            Code::Done | Code::Refused => {
                let Some(number) = bank::number(&body) else {
                    let body = String::from_utf8_lossy(&body).into_owned();
                    return Err((Broken::Lost, format!("{site} answers {client}/{to} {body:?}")));
                };
                self.note(|| format!("{site} tells {client}/{to}: {code:?}, execution {number}"));
                let version = self.answer(site, number)?;
                if waits {
                    self.told(site, client, number, (version, horizon))?;
                }
            }
            // Every client may ask everything here.
            Code::Denied => {}
            _ if waits => self.told_no(client, code),
            _ => {}
        }
        Ok(())
    }

    /// A client's request was not done, or it is not known: it asks again, or gives it up.
    fn told_no(&mut self, client: usize, code: Code) {
        if code != Code::Unknown && self.clients[client].asked == 1 {
            self.deny(client);
        }
        let after = self.random.between(1_000, 30_000);
        self.turn_of(client, after);
    }

    /// A client is shown a state: which version is that, and is it not older than it must be?
    fn looked(&mut self, site: SiteId, client: usize, least: (Version, Horizon), body: &[u8]) -> Verdict {
        let (floor, horizon) = least;
        let (total, digest) = bank::looked(body).expect("a read is answered so");
        let Some((first, last)) = self.checker.versions_of(digest) else {
            // Its store has erred, and it will find that.
            let errs = self.plan.defect == Some(Defect::StoresWrongValues);
            let what = || format!("{site} shows {client} what no version is");
            return if errs { Ok(()) } else { Err((Broken::Misread, what())) };
        };
        self.checker.on_total(site, total)?;
        must(last >= floor, Broken::WentBack, || {
            format!("{site} shows {client} version {last}, and not version {floor}")
        })?;
        let client = &mut self.clients[client];
        (client.floor, client.seen) = (client.floor.max(first), client.seen.and(horizon));
        Ok(())
    }

    /// A client receives the answer to its request, which was executed on what it had seen then.
    fn told(&mut self, site: SiteId, client: usize, number: usize, of: (Version, Horizon)) -> Verdict {
        let (version, horizon) = of;
        let snapshot = self.ledger.open().executions[number].snapshot;
        let state = &mut self.clients[client];
        let floor = state.floor_of_request;
        must(snapshot >= floor, Broken::WentBack, || {
            format!("{site} answers with execution {number} on {snapshot}, and its client had seen {floor}")
        })?;
        (state.floor, state.seen) = (state.floor.max(version), state.seen.and(horizon));
        state.request = None;
        self.summary.committed += 1;
        let after = self.random.between(1_000, 60_000);
        self.turn_of(client, after);
        Ok(())
    }

    /// No site but the one that says no knows of the request: it will never be done.
    fn deny(&mut self, client: usize) {
        if let Some(request) = self.clients[client].request.take() {
            self.note(|| format!("{client} gives up {}", request.id));
            self.checker.on_denied(request.id);
        }
    }

    /// A site tells another what became of a request: the promise is its own, and is not the other's, which may know a later era.
    pub(super) fn passes_on(&mut self, site: SiteId, bytes: &[u8]) -> Verdict {
        match Between::from_bytes(bytes) {
            Ok(Between::Forwarded(_, Code::Done | Code::Refused, _, body)) => {
                bank::number(body).map_or(Ok(()), |number| self.answer(site, number).map(drop))
            }
            _ => Ok(()),
        }
    }

    fn version_of(&self, number: usize) -> Option<Version> {
        let all = self.committed.iter().chain(&self.retired);
        all.filter_map(|committed| committed.executions.get(&number)).min().copied()
    }

    /// A cluster's log is gone.
    pub(super) fn retire(&mut self, cluster: ClusterId) {
        self.retired.push(std::mem::take(&mut self.committed[usize::from(cluster.0)]));
    }

    /// Whether an execution lies in the past that a cluster has taken over from others.
    fn has_adopted(&self, committed: &Committed, number: usize) -> bool {
        let version = self.version_of(number);
        version.is_some_and(|version| committed.adopted.is_some_and(|adopted| version <= adopted))
    }

    /// The first answer about an execution: then all live clusters have it. A cluster that was admitted and has not heard so is not among those that could
    /// continue without the others, and may still lack what was answered before. Its version.
    pub(super) fn answer(&mut self, site: SiteId, number: usize) -> Result<Version, (Broken, String)> {
        let version = self.version_of(number).unwrap_or_default();
        if self.checker.is_answered(number) {
            return Ok(version);
        }
        let told = self.nodes[&site].rules().expect("it has just answered").configuration();
        // A site that has not heard yet that a cluster was declared lost had counted on it, and rightly so at that time.
        let newest = self.configurations().max_by_key(|configuration| configuration.era).unwrap_or(told);
        for cluster in told.live.iter().filter(|&cluster| newest.live.contains(cluster)) {
            let committed = &self.committed[usize::from(cluster.0)];
            let knows = told.era == Era::default() || committed.eras.contains(&told.era);
            must(
                !knows || committed.executions.contains_key(&number) || self.has_adopted(committed, number),
                Broken::Lost,
                || format!("{site} answered execution {number}, which {cluster} does not have"),
            )?;
        }
        self.checker.on_answer(number, version);
        Ok(version)
    }
}
