//! Subscribers' connections to replayers: bytes come late, in order and in pieces, and connections break.

use pares_config::NodeId;

use super::{FeedAction, Heard, replayer_id};
use crate::Verdict;
use crate::queue::Action;
use crate::scenario::US;
use crate::world::World;

/// A subscriber's connection, by the connection's number.
pub(super) struct Call {
    subscriber: usize,
    replayer: NodeId,
    is_alive: bool,
    /// The replayer has closed it.
    is_closing: bool,
    /// When the last byte under way arrives, each way.
    to_replayer_ns: u64,
    to_subscriber_ns: u64,
}

impl World<'_> {
    /// A subscriber connects to a replayer and says who it is; `false` if that is not there.
    pub(super) fn call(&mut self, subscriber: usize, turn: u64, login: &[u8]) -> bool {
        let Some(feed) = &mut self.feed else { return false };
        let replayer = replayer_id((turn % feed.replayers as u64) as usize);
        if !self.is_up(replayer) {
            return false;
        }
        let life = self.life(replayer);
        let connection = self.machine.lock().feed_net.connect(replayer, life, None);
        let Some(feed) = &mut self.feed else { return false };
        let (to_replayer_ns, to_subscriber_ns) = (self.now_ns, self.now_ns);
        let call = Call {
            subscriber,
            replayer,
            is_alive: true,
            is_closing: false,
            to_replayer_ns,
            to_subscriber_ns,
        };
        feed.calls.push(call);
        feed.subscribers[subscriber].connection = Some(connection);
        feed.seen.calls += 1;
        let asks = String::from_utf8_lossy(login.get(3..).unwrap_or_default());
        self.trace.say(self.now_ns, &format!("subscriber {subscriber} calls {replayer}: {asks}"));
        self.schedule(replayer);
        self.send_on_call(subscriber, login);
        true
    }

    /// Bytes for the replayer, sometimes in two pieces.
    pub(super) fn send_on_call(&mut self, subscriber: usize, bytes: &[u8]) {
        let Some(feed) = &mut self.feed else { return };
        let Some(connection) = feed.subscribers[subscriber].connection else { return };
        let cut = if feed.random.chance(100) { feed.random.index(bytes.len()) } else { 0 };
        for piece in [&bytes[..cut], &bytes[cut..]].into_iter().filter(|piece| !piece.is_empty()) {
            let delay_ns = feed.random.between(10 * US, 80 * US);
            let call = &mut feed.calls[connection];
            call.to_replayer_ns = (self.now_ns + delay_ns).max(call.to_replayer_ns + 1);
            let (at_ns, server) = (call.to_replayer_ns, call.replayer);
            self.queue.push(at_ns, Action::ToServer { server, connection, bytes: piece.to_vec() });
        }
    }

    /// The subscriber closes its connection: what it sent before arrives first.
    pub(super) fn hang_up_call(&mut self, subscriber: usize) {
        let Some(feed) = &mut self.feed else { return };
        let Some(connection) = feed.subscribers[subscriber].connection.take() else { return };
        let call = &mut feed.calls[connection];
        call.is_alive = false;
        let at_ns = call.to_replayer_ns.max(self.now_ns) + 10 * US;
        let server = call.replayer;
        self.queue.push(at_ns, Action::HangUp { server, connection });
    }

    /// What replayers have written is on its way, and so is that they have closed.
    pub(in crate::world) fn send_to_subscribers(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let mut state = self.machine.lock();
        for (connection, bytes) in state.feed_net.take_sent(|_| true) {
            let delay_ns = feed.random.between(10 * US, 80 * US);
            let call = &mut feed.calls[connection];
            call.to_subscriber_ns = (self.now_ns + delay_ns).max(call.to_subscriber_ns + 1);
            let bytes = FeedAction::ToSubscriber { connection, bytes };
            self.queue.push(call.to_subscriber_ns, Action::Feed(bytes));
        }
        for (connection, call) in feed.calls.iter_mut().enumerate() {
            let is_closed = call.is_alive && state.feed_net.connection(connection).is_closed;
            if is_closed && !std::mem::replace(&mut call.is_closing, true) {
                let at_ns = call.to_subscriber_ns.max(self.now_ns) + 10 * US;
                self.queue.push(at_ns, Action::Feed(FeedAction::Broken { connection }));
            }
        }
    }

    pub(super) fn on_subscriber_bytes(&mut self, connection: usize, bytes: &[u8]) -> Verdict {
        let Some(feed) = &self.feed else { return Ok(()) };
        let Call { subscriber, is_alive, .. } = feed.calls[connection];
        match is_alive {
            true => self.tell_subscriber(subscriber, &Heard::Connection(bytes)),
            false => Ok(()),
        }
    }

    /// The subscriber learns that its connection is gone.
    pub(super) fn on_call_broken(&mut self, connection: usize) -> Verdict {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        let call = &mut feed.calls[connection];
        let (subscriber, was_alive) = (call.subscriber, std::mem::replace(&mut call.is_alive, false));
        let of = &mut feed.subscribers[subscriber];
        if !was_alive || of.connection != Some(connection) {
            return Ok(());
        }
        of.connection = None;
        self.tell_subscriber(subscriber, &Heard::Disconnected)
    }

    /// One of the connections breaks: what is under way is lost, and both ends learn of it in their time.
    pub(in crate::world) fn break_call(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let at = feed.random.index(feed.subscribers.len());
        let Some(connection) = feed.subscribers[at].connection else { return };
        let delay_ns = feed.random.between(10 * US, 500 * US);
        let call = &mut feed.calls[connection];
        call.is_closing = true;
        self.queue.push(self.now_ns + 10 * US, Action::HangUp { server: call.replayer, connection });
        self.queue.push(self.now_ns + delay_ns, Action::Feed(FeedAction::Broken { connection }));
    }

    /// A replayer is dead: its connections break, and requests that it has not read are lost.
    pub(in crate::world) fn drop_calls_of(&mut self, replayer: NodeId) {
        let mut state = self.machine.lock();
        state.feed_net.drop_all_of(replayer);
        state.requests.remove(&replayer);
        drop(state);
        self.send_to_subscribers();
    }
}
