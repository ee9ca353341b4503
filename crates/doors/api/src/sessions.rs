//! All sessions of this server, by what their tokens are known by; and those that are signing on.
//!
//! Of a token only its digest is kept: who reads this memory can use none, and how long a search takes says nothing of any.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pares_http::places::{Places, TakenPlace};
use pares_table::{Attempts, Origin};
use pares_wire::Transcript;
use ring::digest::{SHA256, digest};

use crate::session::Session;
use crate::wire::Wire;

/// A gateway waits so long for a proof.
const PROOF_WITHIN: Duration = Duration::from_secs(10);
/// Sign-ons that wait for their proof. While there is no room the network that has most makes room: for another network at once, and for as busy a one when its oldest has had a second.
pub(crate) const STRANGERS_MAX: usize = 512;
const STRANGERS_GRACE: Duration = Duration::from_secs(1);
/// Hex digits of a token.
pub(crate) const TOKEN_CHARS: usize = 64;

type Digest = [u8; 32];

/// A sign-on that waits for its proof.
pub(crate) struct Pending {
    pub(crate) wire: Wire,
    pub(crate) transcript: Transcript,
    begun: Instant,
    pub(crate) of: Origin,
}

/// The place of a session, or of one that may become one.
pub(crate) type SessionPlace = TakenPlace<()>;

/// All of them.
pub(crate) struct Sessions {
    places: Arc<Places<()>>,
    by_token: RwLock<BTreeMap<Digest, (Arc<Session>, SessionPlace)>>,
    pending: Mutex<BTreeMap<Digest, Pending>>,
    /// Wrong proofs, and those that are not answered yet. The gateway counts by address, and knows this server's alone.
    wrong: Mutex<Attempts<Origin>>,
    begun: Instant,
}

fn digest_of(word: &str) -> Digest {
    digest(&SHA256, word.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// A word that cannot be guessed.
fn word() -> String {
    pares_keys::to_hex(&pares_keys::random())
}

/// Room for one more of that network, and which one makes it, if there is none yet.
fn room(pending: &BTreeMap<Digest, Pending>, now: Instant, of: Origin) -> Option<Option<Digest>> {
    if pending.len() < STRANGERS_MAX {
        return Some(None);
    }
    let mut counts = BTreeMap::from([(of, 0_usize)]);
    pending.values().for_each(|one| *counts.entry(one.of).or_default() += 1);
    let most = counts.values().copied().max()?;
    let (oldest, one) =
        pending.iter().filter(|(_, one)| counts[&one.of] == most).min_by_key(|(_, one)| one.begun)?;
    let has_more = counts[&of] + 1 < most;
    let had_its_time = now.saturating_duration_since(one.begun) >= STRANGERS_GRACE;
    (has_more || had_its_time).then_some(Some(*oldest))
}

impl Sessions {
    /// None, and `most` at a time.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            places: Places::new(most, most),
            by_token: RwLock::default(),
            pending: Mutex::default(),
            wrong: Mutex::default(),
            begun: Instant::now(),
        }
    }

    /// The session of a token.
    pub(crate) fn find(&self, token: &str) -> Option<Arc<Session>> {
        if token.len() != TOKEN_CHARS {
            return None;
        }
        let by_token = self.by_token.read().unwrap_or_else(PoisonError::into_inner);
        let (session, _) = by_token.get(&digest_of(token))?;
        Some(Arc::clone(session)).filter(|session| !session.has_ended())
    }

    /// Room for a session, if there is any. Who signs on takes it before the exchange is asked, and so has it afterwards.
    pub(crate) fn place(&self) -> Option<SessionPlace> {
        self.places.place(())
    }

    /// Gives a session a token.
    pub(crate) fn add(&self, session: Arc<Session>, place: SessionPlace) -> String {
        let token = word();
        let mut by_token = self.by_token.write().unwrap_or_else(PoisonError::into_inner);
        by_token.insert(digest_of(&token), (session, place));
        token
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<Digest, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrong(&self) -> MutexGuard<'_, Attempts<Origin>> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since it began.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether a proof of that network is passed on to a gateway; of this machine every one is.
    pub(crate) fn may_prove(&self, of: Origin, now_ns: u64) -> bool {
        of.is_none() || self.wrong().may_try(of, now_ns)
    }

    /// The same as one is passed on. It counts as wrong until its answer is there: many at once are as many attempts.
    pub(crate) fn try_proof(&self, of: Origin, now_ns: u64) -> bool {
        let mut wrong = self.wrong();
        let may = of.is_none() || wrong.may_try(of, now_ns);
        if may && of.is_some() {
            wrong.count(of, now_ns);
        }
        may
    }

    /// A proof of that network was not wrong.
    pub(crate) fn was_not_wrong(&self, of: Origin, now_ns: u64) {
        self.wrong().forgive(of, now_ns);
    }

    /// Whether a sign-on of that network would be kept. Who is to be turned away is so before a gateway is called for him.
    pub(crate) fn has_room(&self, of: Origin) -> bool {
        room(&self.pending(), Instant::now(), of).is_some()
    }

    /// Keeps a sign-on of that network until its proof comes; gives the word to name it by, unless there is no room.
    pub(crate) fn keep(&self, of: Origin, wire: Wire, transcript: Transcript) -> Option<String> {
        self.keep_at(Instant::now(), of, wire, transcript)
    }

    pub(crate) fn keep_at(
        &self,
        now: Instant,
        of: Origin,
        wire: Wire,
        transcript: Transcript,
    ) -> Option<String> {
        let mut pending = self.pending();
        let oldest = room(&pending, now, of)?;
        oldest.into_iter().for_each(|oldest| drop(pending.remove(&oldest)));
        let id = word();
        pending.insert(digest_of(&id), Pending { wire, transcript, begun: now, of });
        Some(id)
    }

    /// The sign-on of that name. It is tried once.
    pub(crate) fn take(&self, id: &str) -> Option<Pending> {
        self.pending().remove(&digest_of(id))
    }

    /// Forgets what has ended, and ends what no client uses.
    pub(crate) fn sweep(&self, idle: Duration) {
        self.pending().retain(|_, pending| pending.begun.elapsed() < PROOF_WITHIN);
        let mut by_token = self.by_token.write().unwrap_or_else(PoisonError::into_inner);
        by_token.retain(|_, (session, _)| {
            if session.is_idle(idle) {
                session.end();
            }
            !session.has_ended()
        });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::Ipv6Addr;

    use pares_types::{GatewayId, MemberId};

    use super::*;

    pub(crate) const TRANSCRIPT: Transcript =
        Transcript { nonce: [0; 32], gateway: GatewayId(0), member: MemberId(7), session: 1, token: 0 };

    /// The network of one of its addresses.
    fn network(number: u128, address: usize) -> Origin {
        let address = Ipv6Addr::from(0x2001_0db8 << 96 | number << 64 | address as u128);
        pares_table::origin(address.into(), [10, 0, 0, 5].into())
    }

    #[test]
    fn sign_on_queue_evicts_from_largest_network() {
        let (sessions, begun) = (Sessions::new(1), Instant::now());
        let keep = |after_ms, of, address| {
            let (at, of) = (begun + Duration::from_millis(after_ms), network(of, address));
            sessions.keep_at(at, of, Wire::of_nobody(), TRANSCRIPT)
        };
        let few: Vec<_> = (0..100).filter_map(|address| keep(0, 1, address)).collect();
        let many: Vec<_> = (0..STRANGERS_MAX).filter_map(|address| keep(500, 2, address)).collect();
        assert_eq!((few.len(), many.len()), (100, STRANGERS_MAX - 100));
        assert_eq!(keep(1_499, 2, STRANGERS_MAX), None, "it has most, by however many addresses");
        let own = keep(1_499, 3, 0).unwrap();
        assert!(keep(1_500, 2, STRANGERS_MAX).is_some(), "its own oldest has had its time");
        let gone = |ids: &[String]| ids.iter().filter(|id| sessions.take(id).is_none()).count();
        assert_eq!((gone(&few), gone(&many)), (0, 2));
        assert!(sessions.take(&own).is_some() && sessions.take(&own).is_none(), "each is tried once");
    }

    #[test]
    fn as_many_networks_as_there_are_places_leave_each_one_its_time() {
        let (sessions, begun) = (Sessions::new(1), Instant::now());
        let (most, other) = (STRANGERS_MAX as u128, network(STRANGERS_MAX as u128, 0));
        let keep = |at, of| sessions.keep_at(at, network(of, 0), Wire::of_nobody(), TRANSCRIPT);
        (0..most).for_each(|of| drop(keep(begun, of).unwrap()));
        assert!(keep(begun, most).is_none() && !sessions.has_room(other));
        assert!(keep(begun + STRANGERS_GRACE, most).is_some());
    }

    #[test]
    fn wrong_proofs_keep_only_their_own_network_waiting() {
        let (sessions, here) = (Sessions::new(1), None);
        // None is answered yet.
        let tried = |of| [(); 11].map(|()| sessions.try_proof(of, 0));
        let ten = [[true; 10].as_slice(), &[false]].concat();
        assert_eq!((tried(network(1, 0)).to_vec(), tried(here)), (ten, [true; 11]));
        let may = || [network(1, 9), network(2, 0), here].map(|of| sessions.may_prove(of, 0));
        assert_eq!(may(), [false, true, true]);
        sessions.was_not_wrong(network(1, 0), 0);
        assert_eq!(may(), [true; 3]);
    }

    #[test]
    fn there_are_so_many_sessions_those_that_sign_on_included() {
        let sessions = Sessions::new(2);
        let places = [sessions.place(), sessions.place(), sessions.place()];
        assert_eq!(places.map(|place| place.is_some()), [true, true, false]);
        assert!(sessions.place().is_some(), "they are free again");
    }
}
