//! The messages of sessions in memory: for tests, and for programs that keep no log.

use crate::publication::{FeedSink, Session};
use crate::store::{SESSIONS_KEPT, SessionStanding, SessionStore, StoreError, find};

/// The session that is on and the one before, in memory. What it receives as a [`FeedSink`] it keeps.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Oldest first, as `standing`.
    messages: Vec<Messages>,
    standing: Vec<SessionStanding>,
}

/// The messages of a session so far, by number from 1.
#[derive(Clone, Debug, Default)]
struct Messages {
    bytes: Vec<u8>,
    /// Where each message ends in `bytes`.
    ends: Vec<usize>,
}

impl Messages {
    /// The message of that number, if it was sent.
    fn message(&self, number: u64) -> Option<&[u8]> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

impl Kept {
    /// The session that is on, or was last.
    #[must_use]
    pub fn current(&self) -> Option<SessionStanding> {
        self.standing.last().copied()
    }
}

impl FeedSink for Kept {
    fn begin(&mut self, session: Session) {
        if self.standing.len() >= SESSIONS_KEPT {
            self.standing.remove(0);
            self.messages.remove(0);
        }
        self.standing.push(SessionStanding { session, next: 1, over: false });
        self.messages.push(Messages::default());
    }

    fn message(&mut self, bytes: &[u8]) {
        let messages = self.messages.last_mut().expect("a session has begun");
        messages.bytes.extend_from_slice(bytes);
        messages.ends.push(messages.bytes.len());
        let standing = self.standing.last_mut().expect("a session has begun");
        assert!(!standing.over, "nothing follows the end of a session");
        standing.next += 1;
    }

    fn end(&mut self) {
        self.standing.last_mut().expect("a session has begun").over = true;
    }
}

impl SessionStore for Kept {
    fn standing(&self) -> &[SessionStanding] {
        &self.standing
    }

    fn read(
        &mut self,
        session: Session,
        from: u64,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let next = find(&self.standing, session).ok_or(StoreError::NotKept)?.next;
        let messages = self.standing.iter().zip(&self.messages).find(|(one, _)| one.session == session);
        let (_, messages) = messages.ok_or(StoreError::NotKept)?;
        (from..next).map_while(|number| messages.message(number)).all(take);
        Ok(())
    }
}
