//! Guarded orders: cancelled when the session that entered them has ended (decision 22).
//!
//! The obvious gateway keeps a list of the sessions that want it, and dies with the list. Here an order's own name says that it is
//! guarded and by which session, and its id through which gateway it came. So whatever ends a session, a gateway finds what to
//! cancel: of a connection that ended, because it just had it; of one that ended with the gateway itself, among the orders that
//! live as it starts again. It then asks every shard to cancel what was entered until then, and keeps asking until each has. To ask twice is
//! harmless: what is entered later is not meant.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_types::{ClientOrderId, ClientRequest, Command, Guarded, MemberId, Reason, Timestamp};

use crate::intake::Asking;
use crate::{Gateway, GatewaySink, SessionId};

/// What ended sessions left, as long as it is not cancelled.
pub(crate) struct Guards {
    /// What the shard at that place is to be asked.
    due: VecDeque<(usize, Guarded)>,
    /// What each shard was asked, by the sequence of the request.
    asked: Box<[BTreeMap<u64, Guarded>]>,
    /// When which session's timer runs out.
    timers: BTreeSet<(u64, SessionId)>,
}

impl Guards {
    pub(crate) fn new(shards: usize) -> Self {
        Self { due: VecDeque::new(), asked: vec![BTreeMap::new(); shards].into(), timers: BTreeSet::new() }
    }

    fn end(&mut self, guarded: Guarded) {
        self.due.extend((0..self.asked.len()).map(|shard| (shard, guarded)));
    }

    /// Whether a shard has to be asked.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// This gateway's request of that sequence is committed in the shard, so none before it will be any more.
    #[inline]
    pub(crate) fn on_own_committed(&mut self, shard: usize, sequence: u64, reason: Reason) {
        while let Some(first) = self.asked[shard].first_entry().filter(|first| *first.key() <= sequence) {
            let is_done = *first.key() == sequence && reason != Reason::Unfinished;
            let guarded = first.remove();
            if !is_done {
                self.due.push_back((shard, guarded));
            }
        }
    }
}

impl Gateway {
    /// The session is gone. What it asked stays in flight; what it guarded is cancelled by [`Gateway::on_time`]. Where sign-on is open
    /// several connections may be one session, which ends with the last of them.
    pub fn on_disconnect(&mut self, session: SessionId) {
        self.set_timer(session, None);
        let Some((member, number)) = self.sessions.disconnect(session) else { return };
        let same = self.sessions.of_session((member, number)).next();
        match same {
            Some(same) => self.sessions.guard(same),
            None => self.end_guard(member, number),
        }
    }

    /// All sessions that it ever had are gone: it has died since, and has been told all that it knew.
    pub fn recover_guards(&mut self) {
        for (member, session) in self.names.guards(self.config.id) {
            self.end_guard(member, session);
        }
    }

    /// Unless it asks again before `due_ns`, by the clock of [`Gateway::on_turn`], what the session guards is cancelled then. `None`: it is not.
    pub fn on_cancel_after(
        &mut self,
        now: Timestamp,
        session: SessionId,
        due_ns: Option<u64>,
        sink: &mut impl GatewaySink,
    ) {
        if self.sessions.is_signed_on(session) {
            self.set_timer(session, due_ns);
        } else {
            self.reject(now, session, ClientOrderId(0), Reason::NotSignedOn, sink);
        }
    }

    fn set_timer(&mut self, session: SessionId, due_ns: Option<u64>) {
        if let Some(before) = self.sessions.set_timer(session, due_ns) {
            self.guards.timers.remove(&(before, session));
        }
        self.guards.timers.extend(due_ns.map(|due_ns| (due_ns, session)));
    }

    /// Looks whose timer has run out: to be called after what came in was taken in.
    pub fn run_out_timers(&mut self, now_ns: u64) {
        while let Some(&(_, session)) = self.guards.timers.first().filter(|(due_ns, _)| *due_ns <= now_ns) {
            self.set_timer(session, None);
            if let Some((member, number)) = self.sessions.release(session) {
                self.end_guard(member, number);
            }
        }
    }

    /// When the next timer runs out, by the clock of [`Gateway::on_turn`].
    #[must_use]
    pub fn timer_due_ns(&self) -> Option<u64> {
        self.guards.timers.first().map(|(due_ns, _)| *due_ns)
    }

    /// Whether the request enters an order that is to be cancelled when the session ends. No other session's name says so.
    pub(crate) fn check_guard(&self, asking: &Asking, request: &ClientRequest) -> Result<bool, Reason> {
        let ClientRequest::Enter { client_order_id, .. } = request else { return Ok(false) };
        let Some(session) = client_order_id.guard() else { return Ok(false) };
        let asker = self.sessions.asker(asking.session).ok_or(Reason::NotSignedOn)?;
        if asker.number == session { Ok(true) } else { Err(Reason::OtherSeries) }
    }

    fn end_guard(&mut self, member: MemberId, session: u16) {
        self.guards.end(Guarded { member, session, last: self.last_request() });
    }

    /// Asks the shards to cancel what ended sessions left. What the log does not take stays due.
    pub(crate) fn cancel_guarded(&mut self, now: Timestamp, sink: &mut impl GatewaySink) {
        while let Some(&(shard, guarded)) = self.guards.due.front() {
            if self.journal_unasked(now, shard, Command::CancelGuarded(guarded), sink).is_err() {
                return;
            }
            self.guards.due.pop_front();
            self.guards.asked[shard].insert(self.sequence_last, guarded);
        }
    }
}
