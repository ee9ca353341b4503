//! A publisher of one shard's feed: what it sends (docs/protocols/market-data.md, *Sending*).
//!
//! A primary that dies takes with it what it had numbered and no receiver had heard. Here every publisher sends the same messages under the same
//! numbers, so that there is nothing to take over: another one's packet is as good.
//!
//! ```text
//!               keeps, sends nothing            sends
//!   start ---> [   catching up     ] -----> [  live  ] --quiet--> heartbeats
//!                                              | end
//!                                              v
//!                                           end of session, told until the next begins
//! ```

use crate::mold::Packing;
use crate::publication::Session;
use crate::store::SessionStanding;

/// After so long without a packet comes a heartbeat, on lines and from either end of a connection, nanoseconds.
pub const HEARTBEAT_NS: u64 = 1_000_000_000;

/// Where a publisher's packets go.
pub trait Line {
    /// To all who listen.
    fn send(&mut self, packet: &[u8]);
}

/// A publisher of one shard. The messages are kept elsewhere, in a [`SessionStore`](crate::store::SessionStore): each is put there, and then told to the publisher.
#[derive(Debug, Default)]
pub struct Publisher {
    /// The session that is on, or was last.
    standing: Option<SessionStanding>,
    /// What waits to be sent, of the session that is on.
    packing: Option<Packing>,
    /// Whether it sends what it receives.
    is_live: bool,
    /// When the last packet was sent.
    sent_ns: u64,
}

impl Publisher {
    /// It has caught up with the record: from now on it sends what it receives, from the next message on. That is of the session that
    /// stands so, which an earlier life kept; `None`: of the latest one that began here, if any.
    pub fn go_live(&mut self, standing: Option<SessionStanding>) {
        self.is_live = true;
        (self.standing, self.packing) = (standing.or(self.standing), None);
    }

    /// Whether it sends what it receives.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// A session begins: what follows is numbered from 1.
    pub fn begin(&mut self, session: Session, now_ns: u64, line: &mut impl Line) {
        self.flush(now_ns, line);
        (self.standing, self.packing) = (Some(SessionStanding { session, next: 1, over: false }), None);
    }

    /// The next message of the session, which is in the store by now; it goes to `line` if the publisher is live.
    ///
    /// # Panics
    /// If it is not the next one of the session that is on: numbers would be wrong from here on.
    pub fn message(
        &mut self,
        session: Session,
        number: u64,
        bytes: &[u8],
        now_ns: u64,
        line: &mut impl Line,
    ) {
        let standing = self.standing.as_mut().expect("a session has begun");
        assert!(*standing == SessionStanding { session, next: number, over: false }, "a gap in the session");
        standing.next += 1;
        if !self.is_live {
            return;
        }
        let packing = self.packing.get_or_insert_with(|| Packing::new(session, number));
        if !packing.push(bytes) {
            line.send(packing.take());
            self.sent_ns = now_ns;
            assert!(packing.push(bytes), "an empty packet has room");
        }
    }

    /// The session is over.
    ///
    /// # Panics
    /// If none is on.
    pub fn end(&mut self, now_ns: u64, line: &mut impl Line) {
        self.flush(now_ns, line);
        let standing = self.standing.as_mut().expect("a session has begun");
        standing.over = true;
        if self.is_live {
            line.send(Packing::new(standing.session, standing.next).end());
            self.sent_ns = now_ns;
        }
    }

    /// Sends what is there: there is nothing more to put beside it now.
    pub fn flush(&mut self, now_ns: u64, line: &mut impl Line) {
        if let Some(packing) = self.packing.as_mut().filter(|packing| !packing.is_empty()) {
            line.send(packing.take());
            self.sent_ns = now_ns;
        }
    }

    /// When [`Publisher::on_time`] has something to do, nanoseconds; `None` if never. It repeats an end until the next session begins: a
    /// receiver that joins late would otherwise hear nothing, and take silence for a loss.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        let beats = self.is_live && self.standing.is_some();
        beats.then(|| self.sent_ns.saturating_add(HEARTBEAT_NS))
    }

    /// Tells those who listen that it is there, and how far it is, if it was quiet for long.
    pub fn on_time(&mut self, now_ns: u64, line: &mut impl Line) {
        if self.deadline_ns().is_none_or(|at| now_ns < at) {
            return;
        }
        let Some(standing) = self.standing else { return };
        let mut packing = Packing::new(standing.session, standing.next);
        line.send(if standing.over { packing.end() } else { packing.take() });
        self.sent_ns = now_ns;
    }
}
