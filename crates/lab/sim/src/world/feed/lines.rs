//! The lines and the way to replayers by UDP: datagrams are lost, doubled, late and out of order, and any process can send one.

use std::net::SocketAddr;

use pares_config::NodeId;
use pares_feed::mold::{Header, Packet};
use pares_feed::publication::Session;
use pares_flow::Random;
use zerocopy::IntoBytes;

use super::{FeedAction, Heard, replayer_id};
use crate::Verdict;
use crate::queue::Action;
use crate::scenario::{MS, US};
use crate::world::World;

/// The port of the first subscriber.
const PORT: u16 = 40_000;
/// Datagrams that come twice, of 1,000.
const DOUBLED_PERMILLE: u64 = 30;
/// Datagrams that come late, of 1,000.
const LATE_PERMILLE: u64 = 50;

/// When the copies of a datagram arrive that was sent now: none if it is lost.
fn arrivals(random: &mut Random, lost_permille: u64, now_ns: u64) -> Vec<u64> {
    let copies = if random.chance(DOUBLED_PERMILLE) { 2 } else { 1 };
    let mut arrivals = Vec::new();
    for _ in 0..copies {
        let most = if random.chance(LATE_PERMILLE) { 6 * MS } else { 400 * US };
        let delay_ns = random.between(10 * US, most);
        if !random.chance(lost_permille) {
            arrivals.push(now_ns + delay_ns);
        }
    }
    arrivals
}

fn address(subscriber: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], PORT + u16::try_from(subscriber).expect("few subscribers")))
}

fn header(session: Session, sequence: u64, count: u16) -> Vec<u8> {
    Header { session: session.0, sequence: sequence.into(), count: count.into() }.as_bytes().to_vec()
}

impl World<'_> {
    /// A publisher sent a packet: it must be true, and goes to all who listen.
    pub(in crate::world) fn on_line(&mut self, packet: &[u8]) -> Verdict {
        self.check_packet(packet, super::RECORD)?;
        let shard = Packet::read(packet).ok().and_then(|packet| packet.session.shard());
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.seen.packets += 1;
        for (to, subscriber) in feed.subscribers.iter().enumerate() {
            if !subscriber.listens() || Some(subscriber.shard()) != shard {
                continue;
            }
            for at_ns in arrivals(&mut feed.random, feed.lost_permille, self.now_ns) {
                let packet = FeedAction::Packet { to, bytes: packet.to_vec(), is_forged: false };
                self.queue.push(at_ns, Action::Feed(packet));
            }
        }
        Ok(())
    }

    pub(in crate::world) fn on_answer(&mut self, to: SocketAddr, packet: &[u8]) -> Verdict {
        self.check_packet(packet, super::AGAIN)?;
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.seen.answers += 1;
        let to = usize::from(to.port() - PORT);
        for at_ns in arrivals(&mut feed.random, feed.lost_permille, self.now_ns) {
            let packet = FeedAction::Packet { to, bytes: packet.to_vec(), is_forged: false };
            self.queue.push(at_ns, Action::Feed(packet));
        }
        Ok(())
    }

    pub(super) fn on_packet(&mut self, to: usize, bytes: &[u8], is_forged: bool) -> Verdict {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        if !is_forged && let Ok(packet) = Packet::read(bytes) {
            feed.subscribers[to].note_told(packet.session, packet.next());
        }
        self.tell_subscriber(to, &Heard::Packet(bytes))
    }

    pub(super) fn send_request(&mut self, from: usize, turn: u64, packet: &[u8]) {
        let Some(feed) = &mut self.feed else { return };
        let replayer = replayer_id((turn % feed.replayers as u64) as usize);
        for at_ns in arrivals(&mut feed.random, feed.lost_permille, self.now_ns) {
            let request = FeedAction::Request { replayer, from, bytes: packet.to_vec() };
            self.queue.push(at_ns, Action::Feed(request));
        }
    }

    /// A request reaches a replayer, if that is there.
    pub(super) fn on_request(&mut self, replayer: NodeId, from: usize, bytes: Vec<u8>) {
        if self.is_up(replayer) {
            self.machine.lock().requests.entry(replayer).or_default().push_back((address(from), bytes));
            self.schedule(replayer);
        }
    }

    /// A stranger sends a packet that no publisher sent, or a request that no subscriber would.
    pub(in crate::world) fn forge(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let to = feed.random.index(feed.subscribers.len());
        if !feed.subscribers[to].listens() {
            return;
        }
        let shard = feed.subscribers[to].shard();
        let last = feed.reference.last(shard).map(|(session, told)| (session, told.next()));
        let other = Session::of(super::shard_id(usize::from(shard.0) + 9), pares_types::BusinessDay(1));
        let later = Session::of(shard, pares_types::BusinessDay(0xff_fff0));
        let many = feed.random.between(1, 1 << 20);
        let bytes = match (feed.random.below(6), last) {
            (0, Some((session, next))) => header(session, next + many, 0),
            (1, Some((session, next))) => header(session, next, 3),
            (2, _) => header(later, many, 0),
            (3, _) => header(other, many, 0),
            _ => (0..feed.random.below(60)).map(|_| feed.random.next_u64() as u8).collect(),
        };
        feed.seen.forged += 1;
        let note = [to as u64, bytes.len() as u64];
        let replayer = replayer_id(feed.random.index(feed.replayers));
        let request = FeedAction::Request { replayer, from: to, bytes: bytes.clone() };
        self.queue.push(self.now_ns, Action::Feed(request));
        let packet = FeedAction::Packet { to, bytes, is_forged: true };
        self.queue.push(self.now_ns, Action::Feed(packet));
        self.note("subscriber {} is sent {} forged bytes", &note);
    }
}
