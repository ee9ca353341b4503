//! Clients: one request at a time, repeated until it is known to be done, at one site or another.

use pares_link::ClientId;
use pares_site::protocol::{Ask, Between, Code, Reply};
use pares_wice::{Era, SiteId, TransactionId};

use super::bank::{self, Request};
use super::check::Committed;
use super::sites::{Event, NEAR_US, Sites};
use super::{Broken, Verdict};

/// A client that has heard nothing for so long tries another site.
const PATIENCE_US: u64 = 700_000;
/// What is asked for all money.
const READ: u64 = u64::MAX;
/// The operator's connection.
pub(super) const OPERATOR: ClientId = ClientId(u64::MAX);

/// A client, and its one request at a time.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) site: SiteId,
    pub(super) sequence: u64,
    pub(super) request: Option<Request>,
    /// How often it was asked for.
    pub(super) asked: u32,
    /// Counts what it does, so that what was meant for an earlier state is known.
    pub(super) turn: u64,
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
            (state.request, state.asked) = (Some(Request::draw(id, &mut self.random)), 0);
        }
        let is_gone = !self.list.contains(&self.clients[client].site);
        if !again || is_gone || self.random.chance(700) {
            self.clients[client].site = self.list[self.random.index(self.list.len())];
        }
        let state = &self.clients[client];
        let (site, request) = (state.site, state.request.expect("it has one"));
        let accepts = self.nodes[&site].accepts();
        let patience = if accepts { PATIENCE_US } else { self.random.between(5_000, 50_000) };
        self.turn_of(client, patience);
        if accepts {
            self.ask(client, site, request);
        }
    }

    fn ask(&mut self, client: usize, site: SiteId, request: Request) {
        let ask = Ask::Execute(request.id, request.to_bytes()).to_bytes();
        if self.random.chance(50) {
            // Nonsense first; or a read; or the same twice, on two connections.
            let nonsense = vec![self.random.index(256) as u8 & 0xf0, 1, 2];
            self.ask_site(client, site, nonsense);
            self.ask_site(client, site, Ask::Read(READ, Vec::new()).to_bytes());
            self.clients[client].asked += 1;
            self.ask_site(client, site, ask.clone());
        }
        self.clients[client].asked += 1;
        self.ask_site(client, site, ask);
    }

    fn ask_site(&mut self, client: usize, site: SiteId, bytes: Vec<u8>) {
        self.connections += 1;
        let connection = ClientId(self.connections << 16 | client as u64);
        let after = self.random.between(NEAR_US.0, NEAR_US.1);
        let life = self.nodes[&site].life;
        self.schedule(after, Event::Ask { site, life, connection, bytes });
    }

    /// A site answers.
    pub(super) fn replied(&mut self, site: SiteId, connection: ClientId, bytes: &[u8]) -> Verdict {
        let Reply { to, code, body } = Reply::from_bytes(bytes).expect("a site sends replies");
        if connection == OPERATOR {
            self.operator_told = Some(code);
            return Ok(());
        }
        let client = (connection.0 & 0xffff) as usize;
        if to == READ {
            let total = core::str::from_utf8(&body).ok().and_then(|total| total.parse().ok());
            return total.map_or(Ok(()), |total| self.checker.on_total(site, total));
        }
        let waits = self.clients[client].request.is_some() && self.clients[client].sequence == to;
        match code {
            Code::Done | Code::Refused => {
                let Some(number) = bank::number(&body) else {
                    let body = String::from_utf8_lossy(&body).into_owned();
                    return Err((Broken::Lost, format!("{site} answers {client}/{to} {body:?}")));
                };
                self.note(|| format!("{site} tells {client}/{to}: {code:?}, execution {number}"));
                self.answer(site, number)?;
                if waits {
                    self.clients[client].request = None;
                    self.summary.committed += 1;
                    let after = self.random.between(1_000, 60_000);
                    self.turn_of(client, after);
                }
            }
            // Every client may ask everything here.
            Code::Denied => {}
            _ if waits => {
                if code != Code::Unknown && self.clients[client].asked == 1 {
                    self.deny(client);
                }
                let after = self.random.between(1_000, 30_000);
                self.turn_of(client, after);
            }
            _ => {}
        }
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
            Ok(Between::Forwarded(_, Code::Done | Code::Refused, body)) => {
                bank::number(body).map_or(Ok(()), |number| self.answer(site, number))
            }
            _ => Ok(()),
        }
    }

    /// Whether an execution lies in the past that a cluster has taken over from others.
    fn has_adopted(&self, committed: &Committed, number: usize) -> bool {
        let of_others = self.committed.iter().filter_map(|other| other.executions.get(&number));
        let version = of_others.min();
        version.is_some_and(|version| committed.adopted.is_some_and(|adopted| *version <= adopted))
    }

    /// Somebody is told for the first time: then all living clusters have it. A cluster that was admitted and has not heard so is not among those that could
    /// go on without the others, and may still lack what was answered before.
    fn answer(&mut self, site: SiteId, number: usize) -> Verdict {
        if self.checker.is_answered(number) {
            return Ok(());
        }
        let told = self.nodes[&site].rules().expect("it has just answered").configuration();
        // A site that has not heard yet that a cluster was declared lost had counted on it, and rightly so at that time.
        let newest = self.configurations().max_by_key(|configuration| configuration.era).unwrap_or(told);
        for cluster in told.live.iter().filter(|&cluster| newest.live.contains(cluster)) {
            let committed = &self.committed[usize::from(cluster.0)];
            let knows = told.era == Era::default() || committed.eras.contains(&told.era);
            if knows && !committed.executions.contains_key(&number) && !self.has_adopted(committed, number) {
                let what = format!("{site} answered execution {number}, which {cluster} does not have");
                return Err((Broken::Lost, what));
            }
        }
        self.checker.on_answer(number);
        Ok(())
    }
}
