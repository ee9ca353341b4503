//! Requests from arrival to reply.
//!
//! ```text
//!   arrived --execute--> submitted --committed--> answered
//!      ^  ^                 |  \--aborted, at the certifier's site--> execute again
//!      |  |                 \--aborted, elsewhere--> forwarded to the certifier's site --> answered
//!      |  +--no word from there: forwarded again
//!      +--found done or refused by an earlier attempt: told when that is stable
//! ```
//! A request happens once because its reply is an item, written by the transaction itself: `(client, sequence mod 64)`. Two executions of one request, at
//! two sites or of two lives of one, write the same item and so conflict; and a site that executes it later finds the reply.
//! A client therefore may have 64 requests open, no more, and a site needs to remember nothing about it. A refusal is such a transaction too, with
//! nothing but the item: otherwise one site could refuse what another, which the client asked before, commits later.

use std::collections::{HashMap, VecDeque};

use pares_link::ClientId;
use pares_wice::codec::Coded;
use pares_wice::{Key, SiteId, TransactionId, Value};

use crate::protocol::{Code, OPEN_MAX};

/// Executions of one request at one site before it is given up.
pub(crate) const EXECUTIONS_MAX: u16 = 200;
/// Longest reply that is remembered for repeats; of a longer one a repeat learns only that it was done.
const REMEMBERED_BYTES_MAX: usize = 1 << 10;

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
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asker: Asker,
    pub(crate) body: Vec<u8>,
    /// Executions so far.
    pub(crate) executions: u16,
    /// What the execution that is submitted came to.
    pub(crate) answer: Answer,
    pub(crate) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be executed.
    Queued,
    /// Its transaction has no outcome.
    Submitted,
    /// The certifier's site has it; ticks since it was sent.
    Forwarded { ticks: u32 },
    /// Found done or refused, on a version that must be stable before that is told.
    Waiting,
}

/// All requests of a site.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) open: HashMap<TransactionId, Request>,
    /// To be executed, in order.
    pub(crate) queue: VecDeque<TransactionId>,
}

impl Requests {
    /// A request has come. The same again replaces who wants to know; but not by another site, which may ask because this one had asked it.
    pub(crate) fn arrived(&mut self, id: TransactionId, asker: Asker, body: Vec<u8>) {
        if let Some(request) = self.open.get_mut(&id) {
            if !matches!(asker, Asker::Site(_)) || matches!(request.asker, Asker::Site(_)) {
                request.asker = asker;
            }
            return;
        }
        let answer = Answer { code: Code::Done, body: Vec::new() };
        self.open.insert(id, Request { asker, body, executions: 0, answer, state: State::Queued });
        self.queue.push_back(id);
    }

    /// Execute it again.
    pub(crate) fn again(&mut self, id: TransactionId) {
        if let Some(request) = self.open.get_mut(&id) {
            request.state = State::Queued;
            self.queue.push_back(id);
        }
    }

    /// A tick has passed: the forwarded requests that have waited for `patience` of them.
    pub(crate) fn overdue(&mut self, patience: u32) -> Vec<TransactionId> {
        let mut overdue = Vec::new();
        for (&id, request) in &mut self.open {
            if let State::Forwarded { ticks } = &mut request.state {
                *ticks += 1;
                if *ticks >= patience {
                    *ticks = 0;
                    overdue.push(id);
                }
            }
        }
        overdue.sort_unstable();
        overdue
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
    let mut bytes = Vec::with_capacity(9 + answer.body.len());
    (id.sequence, answer.code as u8).encode(&mut bytes);
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
    match <(u64, u8)>::decode(&mut bytes) {
        Ok((sequence, code)) if sequence == id.sequence => {
            let code = if code == Code::Refused as u8 { Code::Refused } else { Code::Done };
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
        requests.arrived(id(1), site, Vec::new());
        requests.arrived(id(1), client, Vec::new());
        requests.arrived(id(1), site, Vec::new());
        assert_eq!(requests.open[&id(1)].asker, client);
        assert_eq!(requests.queue.len(), 1);
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
