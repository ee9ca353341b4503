//! A session as a replayer tells it again: from its beginning for a program that wants all of a day, or from what is missing on.

use crate::calling::{Purpose, Said};
use crate::publication::Session;
use crate::receiver::Receiver;
use crate::subscription::{FeedListener, Subscription, hand_out};

impl Subscription {
    /// What came on lines while the snapshot did may be more than could wait for it: the rest is replayed, faster than by asking.
    pub(super) fn catch_up(&mut self, now_ns: u64) {
        let Some(receiver) = self.receiver.as_ref().filter(|receiver| receiver.is_missing()) else { return };
        if self.of.lines {
            self.start(Purpose::Replay(receiver.session(), receiver.next()), now_ns);
        }
    }

    /// Whether the replay is at its end for one who has lines: nothing is missing any more, or the replayer has no more.
    fn has_caught_up(&self, said: Said<'_>) -> bool {
        let Some(receiver) = &self.receiver else { return true };
        // A replayer has said that a later session is on, so this one comes to its end; that a packet has says nothing.
        let comes_to_end = self.recovery.head.is_some_and(|(latest, _)| latest > receiver.session());
        let is_needed = comes_to_end || (receiver.is_missing() && said != Said::Heartbeat);
        self.of.lines && !is_needed
    }

    pub(super) fn on_replay(
        &mut self,
        said: Said<'_>,
        (session, from): (Session, u64),
        now_ns: u64,
        each: &mut impl FeedListener,
    ) -> bool {
        let Self { receiver: Some(receiver), books, .. } = self else { return self.refuse(said, now_ns) };
        if receiver.session() != session {
            return self.refuse(said, now_ns);
        }
        match said {
            Said::Accepted(accepted, first) if (accepted, first) == (session, from) => {
                receiver.on_told(first, now_ns);
                (self.recovery.asked_ns, self.recovery.pause_ns) = (None, 0);
            }
            Said::Message(number, bytes) => {
                let hand_out = |first, messages: &[&[u8]]| hand_out(books, first, messages, each);
                receiver.on_message(number, bytes, now_ns, hand_out);
            }
            Said::Heartbeat => receiver.on_told(receiver.next(), now_ns),
            Said::EndOfSession => receiver.on_end(now_ns),
            _ => return self.replay_refused(said, session, now_ns, each),
        }
        self.goes_on(said, now_ns)
    }

    /// Whether the replay does, by what was just taken in. It hangs up if not.
    fn goes_on(&mut self, said: Said<'_>, now_ns: u64) -> bool {
        let has_ended = said == Said::EndOfSession;
        let goes_on = !has_ended && !self.has_caught_up(said);
        if !goes_on {
            self.hang_up();
        }
        if has_ended {
            self.recovery.pause(now_ns);
        }
        goes_on
    }

    /// A replayer does not send the rest of a session. If another one is on, no replayer keeps it: the program continues with that one.
    fn replay_refused(
        &mut self,
        said: Said<'_>,
        session: Session,
        now_ns: u64,
        each: &mut impl FeedListener,
    ) -> bool {
        let is_rejected = matches!(said, Said::Rejected(_));
        let is_first = !self.of.lines && self.receiver.as_ref().is_some_and(|ours| ours.next() == 1);
        if is_first && is_rejected && self.recovery.note_beheaded(session) >= self.of.replayers {
            // No replayer has its beginning any more: of this session a snapshot will do.
            self.receiver = Some(Receiver::searching(session));
        }
        let later = self.recovery.head.filter(|(latest, _)| is_rejected && *latest > session);
        if let Some((latest, head)) = later {
            self.begin(latest, head == 1, each);
        }
        self.refuse(said, now_ns)
    }
}
