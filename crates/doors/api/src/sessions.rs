//! All sessions of this server, by what their tokens are known by; and those that are signing on.
//!
//! Of a token only its digest is kept: who reads this memory can use none, and how long a search takes says nothing of any.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pares_wire::Transcript;
use ring::digest::{SHA256, digest};

use crate::session::Session;
use crate::wire::Wire;

/// A gateway waits so long for a proof.
const PROOF_WITHIN: Duration = Duration::from_secs(10);
/// Hex digits of a token.
pub(crate) const TOKEN_CHARS: usize = 64;

type Digest = [u8; 32];

/// A sign-on that waits for its proof.
pub(crate) struct Pending {
    pub(crate) wire: Wire,
    pub(crate) transcript: Transcript,
    begun: Instant,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Sessions {
    by_token: RwLock<BTreeMap<Digest, Arc<Session>>>,
    pending: Mutex<BTreeMap<Digest, Pending>>,
}

fn digest_of(word: &str) -> Digest {
    digest(&SHA256, word.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// A word that nobody guesses.
fn word() -> String {
    pares_keys::to_hex(&pares_keys::random())
}

impl Sessions {
    /// The session of a token.
    pub(crate) fn find(&self, token: &str) -> Option<Arc<Session>> {
        if token.len() != TOKEN_CHARS {
            return None;
        }
        let by_token = self.by_token.read().unwrap_or_else(PoisonError::into_inner);
        by_token.get(&digest_of(token)).filter(|session| !session.has_ended()).cloned()
    }

    /// Gives a session a token.
    pub(crate) fn add(&self, session: Arc<Session>) -> String {
        let token = word();
        let mut by_token = self.by_token.write().unwrap_or_else(PoisonError::into_inner);
        by_token.insert(digest_of(&token), session);
        token
    }

    /// How many there are, those included that are signing on.
    pub(crate) fn len(&self) -> usize {
        let signed_on = self.by_token.read().unwrap_or_else(PoisonError::into_inner).len();
        signed_on + self.pending().len()
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<Digest, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a sign-on until its proof comes; gives the word to name it by.
    pub(crate) fn keep(&self, wire: Wire, transcript: Transcript) -> String {
        let id = word();
        self.pending().insert(digest_of(&id), Pending { wire, transcript, begun: Instant::now() });
        id
    }

    /// The sign-on of that name. It is tried once.
    pub(crate) fn take(&self, id: &str) -> Option<Pending> {
        self.pending().remove(&digest_of(id))
    }

    /// Forgets what has ended, and ends what nobody uses.
    pub(crate) fn sweep(&self, idle: Duration) {
        self.pending().retain(|_, pending| pending.begun.elapsed() < PROOF_WITHIN);
        let mut by_token = self.by_token.write().unwrap_or_else(PoisonError::into_inner);
        by_token.retain(|_, session| {
            if session.is_idle(idle) {
                session.end();
            }
            !session.has_ended()
        });
    }
}
