//! Requests from arrival to reply.
//!
//! ```text
//!   ahead of this site --has come there--> arrived; or, after a while: not here
//!
//!   arrived --execute--> submitted --committed--> answered
//!      ^  ^                 |  \--aborted, at the certifier's site--> execute again
//!      |  |                 \--aborted, elsewhere--> forwarded to the certifier's site --> answered
//!      |  +--no word from there: forwarded again
//!      +--found done or refused by an earlier attempt: told when that is stable
//! ```
//! A request happens once because its reply is an item, written by the transaction itself: `(client, sequence mod 64)`. Two executions of one request, at
//! two sites or of two lives of one, write the same item and so conflict; and a site that executes it later finds the reply.
//! A client therefore may have 64 requests open, no more, and a site needs to remember nothing about it. Who has waited for long receives "not known
//! yet", and asks again under the same number; the request stays, without an asker, until it has an outcome. A refusal is such a transaction too, with
//! nothing but the item: otherwise one site could refuse what another, which the client asked before, commits later.

use std::collections::{BTreeSet, HashMap, VecDeque};

use pares_link::ClientId;
use pares_wice::codec::Coded;
use pares_wice::{Key, SiteId, TransactionId, VALUE_BYTES_MAX, Value, Version};

use crate::protocol::{Code, OPEN_MAX};
use crate::setup::Bounds;

/// Executions of one request at one site before it is given up.
pub(crate) const EXECUTIONS_MAX: u16 = 200;
/// What a request costs in memory beside its body and its answer, bytes, about.
const REQUEST_HELD_BYTES: usize = 256;
/// Requests of other sites have as much room again as those of a site's own clients, so that neither take all of it.
const ROOM_FOR_SITES: usize = 2;
/// Of all places for requests, and for reads, one in so many is for those that wait for what this site does not have.
pub(crate) const AHEAD_SHARE: usize = 4;
/// Longest reply that is remembered for repeats; of a longer one a repeat learns only that it was done.
pub(crate) const REMEMBERED_BYTES_MAX: usize = 1 << 10;
const _: () =
    assert!(8 + 1 + REMEMBERED_BYTES_MAX <= VALUE_BYTES_MAX, "a remembered reply fits into an item");

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it was done.
    pub code: Code,
    /// The application's reply, or why there is none.
    pub body: Vec<u8>,
}

/// An answer to a request that was submitted in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Which.
    pub id: TransactionId,
    /// What it came to.
    pub answer: Answer,
}

/// Who wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    Client(ClientId),
    Site(SiteId),
    /// The driver of this process.
    Here,
    /// No asker any more: the client received "not known yet".
    Nobody,
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asker: Asker,
    pub(crate) body: Vec<u8>,
    /// It is executed on this version or later: its client has seen that.
    pub(crate) least: Version,
    /// Executions so far.
    pub(crate) executions: u16,
    /// What the execution that is submitted came to.
    pub(crate) answer: Answer,
    pub(crate) state: State,
    /// How often it was sent to a certifier's site. Another one than the last, or the same in another life, may still do it.
    pub(crate) forwards: u32,
    /// Rules' ticks since an asker that has received nothing asked for it.
    waited_ticks: u32,
}

impl Request {
    fn held_bytes(&self) -> usize {
        REQUEST_HELD_BYTES + self.body.len() + self.answer.body.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be executed.
    Queued,
    /// To be executed when this site has come to what its client has seen.
    Ahead,
    /// Its transaction has no outcome.
    Submitted,
    /// The certifier's site has it; ticks since it was sent.
    Forwarded { ticks: u32 },
    /// Found done or refused, on a version that must be stable before that is answered.
    Waiting,
}

/// All requests of a site.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) open: HashMap<TransactionId, Request>,
    /// To be executed, in order.
    pub(crate) queue: VecDeque<TransactionId>,
    /// To be executed when this site has come to these versions.
    ahead: BTreeSet<(Version, TransactionId)>,
    /// How many of them each client has.
    of_client: HashMap<u64, usize>,
    /// What all of them take.
    bytes: usize,
}

/// Requests for which something is to be done because time has passed; in order.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// Forwarded, and nothing was heard.
    pub(crate) forwards: Vec<TransactionId>,
    /// Who asked has waited long enough.
    pub(crate) unanswered: Vec<TransactionId>,
    /// The same, and this site has not come to what it waits for.
    pub(crate) ahead: Vec<TransactionId>,
}

impl Requests {
    /// A request has come. The same again replaces who wants to know; but not by another site, which may ask because this one had asked it.
    pub(crate) fn arrived(&mut self, id: TransactionId, asker: Asker, least: Version, body: Vec<u8>) {
        if let Some(request) = self.open.get_mut(&id) {
            if !matches!(asker, Asker::Site(_)) || matches!(request.asker, Asker::Site(_) | Asker::Nobody) {
                (request.asker, request.waited_ticks) = (asker, 0);
            }
            return;
        }
        let (answer, state) = (Answer { code: Code::Done, body: Vec::new() }, State::Queued);
        let request =
            Request { asker, body, least, executions: 0, answer, state, forwards: 0, waited_ticks: 0 };
        self.bytes += request.held_bytes();
        *self.of_client.entry(id.client).or_default() += 1;
        self.open.insert(id, request);
        self.queue.push_back(id);
        assert!(self.of_client.len() <= self.open.len(), "a client is counted for what it has open");
        assert!(self.bytes >= REQUEST_HELD_BYTES * self.open.len(), "every open request counts its bytes");
    }

    /// The version on which a request is to be executed, or a later one.
    pub(crate) fn least_of(&self, id: TransactionId) -> Version {
        self.open.get(&id).map_or(Version(0), |request| request.least)
    }

    /// A request is not to be executed on what this site has now.
    pub(crate) fn wait(&mut self, id: TransactionId) {
        if let Some(request) = self.open.get_mut(&id) {
            request.state = State::Ahead;
            self.ahead.insert((request.least, id));
            assert!(self.ahead.len() <= self.open.len(), "what waits for a version is open");
        }
    }

    /// This site has come to a version: what waited for that is to be executed.
    pub(crate) fn come_to(&mut self, version: Version) {
        while let Some((least, id)) = self.ahead.first().copied()
            && least <= version
        {
            self.ahead.pop_first();
            assert!(self.open.contains_key(&id), "what waits for a version has no answer yet");
            self.again(id);
        }
    }

    /// Whether no more can wait for what this site does not have: so who says to have seen what nobody has takes a share of its places, for a while.
    pub(crate) fn has_enough_ahead(&self, bounds: &Bounds) -> bool {
        self.ahead.len() >= (bounds.open_requests_max / AHEAD_SHARE).max(1)
    }

    /// What all of them take in memory, bytes, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// How many of them a client has.
    pub(crate) fn of_client(&self, client: u64) -> usize {
        self.of_client.get(&client).copied().unwrap_or(0)
    }

    /// Whether there is no room for another of a client's own, of so many bytes.
    pub(crate) fn is_full(&self, body_bytes: usize, bounds: &Bounds) -> bool {
        self.exceeds(body_bytes, bounds, 1)
    }

    /// The same for one of another site.
    pub(crate) fn is_full_for_sites(&self, body_bytes: usize, bounds: &Bounds) -> bool {
        self.exceeds(body_bytes, bounds, ROOM_FOR_SITES)
    }

    fn exceeds(&self, body_bytes: usize, bounds: &Bounds, times: usize) -> bool {
        let bytes = self.bytes + REQUEST_HELD_BYTES + body_bytes;
        self.open.len() >= times * bounds.open_requests_max || bytes > times * bounds.open_bytes_max
    }

    /// An execution came to this, and is submitted.
    pub(crate) fn executed(&mut self, id: TransactionId, answer: Answer) {
        if let Some(request) = self.open.get_mut(&id) {
            assert!(request.held_bytes() <= self.bytes, "what a request holds is counted among all");
            self.bytes -= request.held_bytes();
            (request.answer, request.state) = (answer, State::Submitted);
            self.bytes += request.held_bytes();
        }
    }

    /// A request has its answer.
    pub(crate) fn remove(&mut self, id: TransactionId) -> Option<Request> {
        let request = self.open.remove(&id)?;
        assert!(request.held_bytes() <= self.bytes, "what a request holds is counted among all");
        assert!(self.of_client.contains_key(&id.client), "a request that is open counts for its client");
        self.ahead.remove(&(request.least, id));
        self.bytes -= request.held_bytes();
        if let Some(own) = self.of_client.get_mut(&id.client) {
            *own -= 1;
            if *own == 0 {
                self.of_client.remove(&id.client);
            }
        }
        assert!(!self.open.is_empty() || self.bytes == 0, "without requests nothing is held");
        assert!(self.ahead.len() <= self.open.len(), "a request that has its answer waits for no version");
        Some(request)
    }

    /// Execute it again.
    pub(crate) fn again(&mut self, id: TransactionId) {
        if let Some(request) = self.open.get_mut(&id) {
            request.state = State::Queued;
            self.queue.push_back(id);
        }
    }

    /// A tick has passed: what is due, after so many ticks of patience with a certifier's site, and of a client's.
    pub(crate) fn tick(&mut self, forward_patience: u32, patience: u32) -> Due {
        let mut due = Due::default();
        for (&id, request) in &mut self.open {
            request.waited_ticks = request.waited_ticks.saturating_add(1);
            if request.state == State::Ahead {
                due.ahead.extend((request.waited_ticks >= patience).then_some(id));
                continue;
            }
            if request.waited_ticks >= patience && matches!(request.asker, Asker::Client(_)) {
                due.unanswered.push(id);
            }
            if let State::Forwarded { ticks } = &mut request.state {
                *ticks += 1;
                if *ticks >= forward_patience {
                    *ticks = 0;
                    due.forwards.push(id);
                }
            }
        }
        due.forwards.sort_unstable();
        due.unanswered.sort_unstable();
        due.ahead.sort_unstable();
        due
    }
}

/// The item that says what became of a request.
pub(crate) fn reply_key(id: TransactionId) -> Key {
    let mut name = b"\0reply/".to_vec();
    name.extend_from_slice(&id.client.to_be_bytes());
    name.extend_from_slice(&(id.sequence % OPEN_MAX).to_be_bytes());
    Key::new(name)
}

/// Its value: the request's sequence and the answer.
pub(crate) fn reply_value(id: TransactionId, answer: &Answer) -> Value {
    let is_final = matches!(answer.code, Code::Done | Code::Refused);
    assert!(is_final, "what is remembered of a request was done or refused");
    let mut bytes = Vec::with_capacity(9 + answer.body.len());
    (id.sequence, answer.code).encode(&mut bytes);
    if answer.body.len() <= REMEMBERED_BYTES_MAX {
        bytes.extend_from_slice(&answer.body);
    }
    Value::new(bytes)
}

/// What the item says of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remembered {
    /// Nothing: it has been neither done nor refused.
    Nothing,
    /// It was done or refused, with this reply.
    Answered(Answer),
    /// Later ones were: the client must have had its answer.
    TooOld,
}

pub(crate) fn remembered(id: TransactionId, value: Option<&Value>) -> Remembered {
    let Some(mut bytes) = value.map(Value::as_bytes) else { return Remembered::Nothing };
    match <(u64, Code)>::decode(&mut bytes) {
        Ok((sequence, code)) if sequence == id.sequence => {
            Remembered::Answered(Answer { code, body: bytes.to_vec() })
        }
        Ok((sequence, _)) if sequence > id.sequence => Remembered::TooOld,
        _ => Remembered::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn id(sequence: u64) -> TransactionId {
        TransactionId { client: 5, sequence }
    }

    #[test]
    fn a_client_that_asks_is_told_though_another_site_asks_too() {
        let mut requests = Requests::default();
        let (site, client) = (Asker::Site(SiteId::new(0, 1)), Asker::Client(ClientId(7)));
        requests.arrived(id(1), site, Version(0), Vec::new());
        requests.arrived(id(1), client, Version(0), Vec::new());
        requests.arrived(id(1), site, Version(0), Vec::new());
        assert_eq!(requests.open[&id(1)].asker, client);
        assert_eq!(requests.queue.len(), 1);
    }

    #[test]
    fn what_requests_take_is_counted_until_they_are_answered() {
        let bounds = Bounds { open_requests_max: 2, open_bytes_max: 3_000, ..Bounds::default() };
        let mut requests = Requests::default();
        requests.arrived(id(1), Asker::Here, Version(0), vec![0; 1_000]);
        assert!(!requests.is_full(1_000, &bounds) && requests.is_full(2_000, &bounds));
        requests.executed(id(1), Answer { code: Code::Done, body: vec![0; 1_000] });
        assert!(requests.is_full(1_000, &bounds), "answers count");
        assert!(!requests.is_full_for_sites(1_000, &bounds));
        requests.arrived(id(2), Asker::Here, Version(0), Vec::new());
        assert!(requests.is_full(0, &bounds) && requests.of_client(5) == 2);
        assert!(requests.remove(id(1)).is_some() && requests.remove(id(2)).is_some());
        assert_eq!((requests.held_bytes(), requests.of_client(5)), (0, 0));
    }

    #[test]
    fn unknown_outcome_is_reported_once_and_askable_again() {
        let mut requests = Requests::default();
        let client = Asker::Client(ClientId(7));
        requests.arrived(id(1), client, Version(0), Vec::new());
        assert!(requests.tick(9, 2).unanswered.is_empty());
        assert_eq!(requests.tick(9, 2).unanswered, [id(1)]);
        requests.open.get_mut(&id(1)).unwrap().asker = Asker::Nobody;
        assert!(requests.tick(9, 2).unanswered.is_empty());
        requests.arrived(id(1), client, Version(0), Vec::new());
        assert!(requests.tick(9, 2).unanswered.is_empty());
        assert_eq!(requests.tick(9, 2).unanswered, [id(1)]);
    }

    #[test]
    fn waiter_for_version_executes_on_arrival_or_timeout() {
        let bounds = Bounds { open_requests_max: 8, ..Bounds::default() };
        let mut requests = Requests::default();
        for (sequence, least) in [(1, 7), (2, u64::MAX)] {
            requests.arrived(id(sequence), Asker::Here, Version(least), Vec::new());
            assert!(!requests.has_enough_ahead(&bounds));
            assert_eq!(requests.queue.pop_front(), Some(id(sequence)));
            requests.wait(id(sequence));
        }
        assert!(requests.has_enough_ahead(&bounds), "a quarter of eight");
        requests.come_to(Version(6));
        assert!(requests.queue.is_empty());
        requests.come_to(Version(7));
        assert_eq!(requests.queue, [id(1)]);
        assert!(requests.tick(9, 2).ahead.is_empty());
        assert_eq!(requests.tick(9, 2).ahead, [id(2)]);
        assert!(requests.remove(id(2)).is_some() && requests.ahead.is_empty());
    }

    #[test]
    fn a_reply_is_remembered_until_the_client_has_sent_64_more() {
        for code in [Code::Done, Code::Refused] {
            let answer = Answer { code, body: b"ok".to_vec() };
            let value = reply_value(id(3), &answer);
            assert_eq!(remembered(id(3), Some(&value)), Remembered::Answered(answer.clone()));
            assert_eq!(remembered(id(67), Some(&value)), Remembered::Nothing);
            assert_eq!(remembered(id(3), Some(&reply_value(id(67), &answer))), Remembered::TooOld);
        }
        assert_eq!(reply_key(id(3)), reply_key(id(67)));
        assert_ne!(reply_key(id(3)), reply_key(id(4)));
    }
}
