//! Messages sent again on request (docs/protocols/market-data.md, *Asking again*).
//!
//! A server that answers each request at once lets any client keep it busy, and addresses of datagrams can be forged. So answers have a rate for each
//! address, one for each network and one for all, and what is not answered is silence and a count.

use std::ops::Range;

use zerocopy::FromBytes;

use crate::mold::{Header, Packing};
use crate::pace::{Pace, Rate, Rates};
use crate::publication::Session;
use crate::store::{SessionStanding, SessionStore, StoreError, find};

/// One who asks gets 2,000 packets a second, 200 at once.
const EACH: Rate = Rate { every_ns: 500_000, at_once: 200 };
/// All of one network get half of what all get.
const NETWORK: Rate = Rate { every_ns: 100_000, at_once: 1_000 };
/// All who ask together get 20,000 a second.
const ALL: Rate = Rate { every_ns: 50_000, at_once: 2_000 };
/// Those who asked lately.
const ASKERS_MAX: usize = 1_024;

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resent {
    /// Answered with a packet.
    pub answered: u64,
    /// No requests.
    pub malformed: u64,
    /// Of a session that is not kept.
    pub strange: u64,
    /// For messages that are not sent yet, or were never.
    pub not_there: u64,
    /// Not answered, since too many came.
    pub too_many: u64,
    /// Not answered, since the messages could not be read.
    pub unreadable: u64,
}

/// Answers requests for messages. `N` is the network of one who asks, `A` the address.
#[derive(Debug)]
pub struct Resending<N, A> {
    pace: Pace<N, A>,
    /// What became of requests.
    pub resent: Resent,
}

impl<N: Copy + Ord, A: Copy + Ord> Default for Resending<N, A> {
    fn default() -> Self {
        let rates = Rates { address: EACH, network: NETWORK, all: ALL };
        Self { pace: Pace::new(rates, ASKERS_MAX), resent: Resent::default() }
    }
}

/// The session that a request concerns: a datagram that is a packet's header alone. `None` if it is no request.
#[must_use]
pub fn session_of(request: &[u8]) -> Option<Session> {
    Header::read_from_bytes(request).ok().map(|header| Session(header.session))
}

impl<N: Copy + Ord, A: Copy + Ord> Resending<N, A> {
    /// A receiver asks for messages again: a packet's header, with the session, the first number and how many. The answer has those that go into one
    /// packet. `store` is that of the session's shard, if there is such a shard.
    pub fn on_request(
        &mut self,
        asker: (N, A),
        request: &[u8],
        now_ns: u64,
        store: Option<&mut dyn SessionStore>,
    ) -> Option<Vec<u8>> {
        let mut packet = None;
        let counter = match wanted(store.as_ref().map_or(&[], |store| store.standing()), request) {
            Ok(_) if !self.pace.allows(asker, now_ns) => &mut self.resent.too_many,
            Ok((session, numbers)) => {
                packet = store.and_then(|store| packed(store, session, numbers).ok());
                let resent = &mut self.resent;
                if packet.is_some() { &mut resent.answered } else { &mut resent.unreadable }
            }
            Err(Refusal::Malformed) => &mut self.resent.malformed,
            Err(Refusal::Strange) => &mut self.resent.strange,
            Err(Refusal::NotThere) => &mut self.resent.not_there,
        };
        *counter += 1;
        packet
    }
}

/// The session and the numbers that a request asks for, the first of which is there.
fn wanted(standing: &[SessionStanding], request: &[u8]) -> Result<(Session, Range<u64>), Refusal> {
    let header = Header::read_from_bytes(request).map_err(|_| Refusal::Malformed)?;
    let session = Session(header.session);
    let standing = find(standing, session).ok_or(Refusal::Strange)?;
    let first = header.sequence.get();
    let end = first.saturating_add(header.count.get().into()).min(standing.next);
    if first == 0 || first >= end {
        return Err(Refusal::NotThere);
    }
    Ok((session, first..end))
}

/// As many of the messages as go into a packet.
fn packed(
    store: &mut dyn SessionStore,
    session: Session,
    numbers: Range<u64>,
) -> Result<Vec<u8>, StoreError> {
    let mut packing = Packing::new(session, numbers.start);
    let mut left = numbers.end - numbers.start;
    store.read(session, numbers.start, &mut |message| {
        let is_taken = left > 0 && packing.push(message);
        left -= u64::from(is_taken);
        is_taken
    })?;
    if packing.is_empty() { Err(StoreError::Unreadable) } else { Ok(packing.take().to_vec()) }
}

/// Why a request is not answered: as the protocol has it, with silence.
enum Refusal {
    Malformed,
    Strange,
    NotThere,
}
