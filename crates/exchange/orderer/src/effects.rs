//! What an orderer knows, and what the replicated log makes of it.

use std::collections::{BTreeMap, BTreeSet};

use pares_cluster::{MemberId, MemberRole, Sink};
use pares_types::{HostId, Position, Request, RequestId, ShardId};

use crate::entry;
use crate::impatience::Impatience;
use crate::message::OrdererMessage;
use crate::ordered::{Ordered, Placed};
use crate::orderer::OrdererConfig;
use crate::pending::Pending;

/// Between two words to others about what is recorded, or what this one lacks.
const WORD_NS: u64 = 5_000_000;
/// Between two words about all that is recorded.
const ALL_NS: u64 = 100_000_000;
/// Between two requests of a new life of a disk.
const ASK_NS: u64 = 20_000_000;

/// Where a cycle's effects go, in the order in which they happen.
pub trait OrderSink {
    /// A message for another host's orderer. May be lost.
    fn send(&mut self, to: HostId, message: Vec<u8>);
    /// A request has its position, at all hosts the same.
    fn ordered(&mut self, shard: ShardId, position: Position, id: RequestId, body: &[u8]);
}

/// What an orderer counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrdererCounts {
    /// Requests ordered.
    pub ordered: u64,
    /// Requests committed once more, and skipped.
    pub repeats: u64,
    /// Bodies skipped at all members because they are no requests, or of no gateway or shard of this system.
    pub strange: u64,
    /// Entries proposed.
    pub entries: u64,
    /// Messages that it did not understand.
    pub ignored: u64,
}

pub(crate) struct State {
    pub(crate) config: OrdererConfig,
    pub(crate) ordered: Ordered,
    /// Place and term of the last entry that is in `ordered`.
    pub(crate) applied: (u64, u64),
    pub(crate) pending: Pending,
    pub(crate) recorded: BTreeMap<ShardId, Position>,
    /// What the owner has said of that, and the others do not know yet.
    pub(crate) untold: BTreeSet<ShardId>,
    pub(crate) told_ns: u64,
    pub(crate) told_all_ns: u64,
    /// The replicated log does not have what comes next here any more: a copy of that place or later is needed.
    pub(crate) lacks: Option<u64>,
    pub(crate) asked_ns: u64,
    pub(crate) asked_in_ns: u64,
    pub(crate) leader: Option<u8>,
    pub(crate) impatience: Impatience,
    pub(crate) counts: OrdererCounts,
}

impl State {
    pub(crate) fn new(config: OrdererConfig, ordered: Ordered, applied: (u64, u64), now_ns: u64) -> Self {
        let impatience = Impatience::new(config.host.0, config.seed);
        Self {
            config,
            ordered,
            applied,
            pending: Pending::default(),
            recorded: BTreeMap::new(),
            untold: BTreeSet::new(),
            told_ns: now_ns,
            told_all_ns: now_ns,
            lacks: None,
            asked_ns: 0,
            asked_in_ns: 0,
            leader: None,
            impatience,
            counts: OrdererCounts::default(),
        }
    }

    /// Says what is newly recorded.
    pub(crate) fn tell(&mut self, now_ns: u64, out: &mut impl OrderSink) {
        if now_ns >= self.told_all_ns + ALL_NS {
            // Words get lost, and who begins again has received none.
            self.told_all_ns = now_ns;
            self.untold.extend(self.recorded.keys());
        }
        if self.untold.is_empty() || now_ns < self.told_ns + WORD_NS {
            return;
        }
        self.told_ns = now_ns;
        let marks = std::mem::take(&mut self.untold).into_iter();
        let marks = OrdererMessage::Recorded(marks.map(|shard| (shard, self.recorded_of(shard))).collect());
        self.send_all(&marks, out);
    }

    fn send_all(&self, message: &OrdererMessage, out: &mut impl OrderSink) {
        let others = (0..self.config.hosts).map(HostId).filter(|host| *host != self.config.host);
        others.for_each(|host| out.send(host, message.to_bytes()));
    }

    pub(crate) fn own(&self) -> MemberId {
        MemberId { number: self.config.host.0, incarnation: self.config.incarnation }
    }

    /// A new life of a disk asks: for a copy behind which its log begins, then for a vote.
    pub(crate) fn ask_in(&mut self, now_ns: u64, has_copy: bool, out: &mut impl OrderSink) {
        if now_ns < self.asked_in_ns + ASK_NS {
            return;
        }
        // Apart from `asked_ns`: of two that repeat at one pace the second would never be sent.
        self.asked_in_ns = now_ns;
        if has_copy {
            self.send_all(&OrdererMessage::AdmitMe { incarnation: self.config.incarnation }, out);
        } else {
            self.lacks = Some(0);
            self.send_all(&OrdererMessage::StateAsked { at_least: 0 }, out);
        }
    }

    pub(crate) fn recorded_of(&self, shard: ShardId) -> Position {
        self.recorded.get(&shard).copied().unwrap_or_default()
    }

    pub(crate) fn raise_recorded(&mut self, shard: ShardId, below: Position) -> bool {
        // What is not ordered here is recorded for nobody here.
        let Some(next) = self.ordered.next(shard) else { return false };
        let below = below.min(next);
        let is_news = below > self.recorded_of(shard);
        if is_news {
            self.recorded.insert(shard, below);
        }
        is_news
    }

    /// How many more positions of a shard may be ordered before some are recorded.
    pub(crate) fn room_in(&self, shard: ShardId) -> u64 {
        let recorded = self.recorded_of(shard);
        let next = self.ordered.next(shard).unwrap_or_default();
        let under_way = next.0.saturating_sub(recorded.0) + self.pending.proposed(shard);
        self.config.window.saturating_sub(under_way)
    }
}

/// What the replicated log says, on its way out.
pub(crate) struct Effects<'a, S> {
    pub(crate) state: &'a mut State,
    pub(crate) now_ns: u64,
    pub(crate) out: &'a mut S,
}

impl<S: OrderSink> Effects<'_, S> {
    pub(crate) fn on_entry(&mut self, entry: &[u8]) {
        for found in entry::requests(entry) {
            match found {
                Some((request, body)) => self.on_request(&request, body),
                None => self.state.counts.strange += 1,
            }
        }
    }

    fn on_request(&mut self, request: &Request, body: &[u8]) {
        let State { config, ordered, pending, impatience, counts, .. } = &mut *self.state;
        let (id, shard) = (request.id, request.shard);
        if id.gateway().0 >= config.gateways {
            counts.strange += 1;
            return;
        }
        match ordered.place(id, shard) {
            Placed::At(position) => {
                counts.ordered += 1;
                if let Some(taken_ns) = pending.on_ordered(id, shard) {
                    impatience.on_decided(self.now_ns, taken_ns);
                }
                self.out.ordered(shard, position, id, body);
            }
            Placed::Repeat => counts.repeats += 1,
            Placed::Unknown => counts.strange += 1,
        }
    }
}

impl<S: OrderSink> Sink for Effects<'_, S> {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        self.out.send(HostId(to), OrdererMessage::Log(&message).to_bytes());
    }

    fn committed(&mut self, index: u64, term: u64, payload: &[u8]) {
        assert!(index > self.state.applied.0, "entries are handed out once, in order");
        self.on_entry(payload);
        (self.state.applied, self.state.lacks) = ((index, term), None);
    }

    fn role(&mut self, role: MemberRole) {
        // Under another lead, what this member has proposed may be lost.
        self.state.pending.forget_proposed();
        // What this leader has, another may lack; and what one is asked for must not be taken when it comes late.
        (self.state.leader, self.state.lacks) = (role.delegate, None);
        if let Some(host) = role.delegate {
            self.state.impatience.on_lead(self.now_ns, role.term, host);
        }
    }

    fn lacks(&mut self, at_least: u64) {
        self.state.lacks = Some(at_least);
        let leader = self.state.leader.filter(|_| self.now_ns >= self.state.asked_ns + WORD_NS);
        if let Some(leader) = leader {
            self.state.asked_ns = self.now_ns;
            self.out.send(HostId(leader), OrdererMessage::StateAsked { at_least }.to_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_cluster::shared::Group;
    use pares_cluster::{Beginning, Incarnation, Members};

    use super::*;
    use crate::orderer::Orderer;

    const SHARD: ShardId = ShardId(0);

    #[derive(Default)]
    struct Sent(Vec<(HostId, Vec<u8>)>);

    impl OrderSink for Sent {
        fn send(&mut self, to: HostId, message: Vec<u8>) {
            self.0.push((to, message));
        }
        fn ordered(&mut self, _: ShardId, _: Position, _: RequestId, _: &[u8]) {}
    }

    fn config() -> OrdererConfig {
        OrdererConfig {
            host: HostId(0),
            incarnation: Incarnation(0),
            seed: 1,
            hosts: 2,
            gateways: 1,
            window: 16,
            pending_max: 16,
            tick_ns: 1_000,
        }
    }

    /// A copy that is asked for and comes when another leads would take back what was acknowledged since.
    #[test]
    fn copies_of_former_leaders_are_refused() {
        let log = Group::new(3).open(0, 0);
        let mut orderer = Orderer::new(log, config(), (Ordered::new([SHARD]), (0, 0)), 0);
        let beginning = Beginning { index: 9, term: 1, members: Members::first(3) };
        let copy = OrdererMessage::State { beginning, ordered: Ordered::new([SHARD]) }.to_bytes();
        let role = |term, host| MemberRole { term, delegate: Some(host), leads: false };
        let mut sent = Sent::default();
        let mut effects = Effects { state: &mut orderer.state, now_ns: WORD_NS, out: &mut sent };
        Sink::role(&mut effects, role(1, 1));
        Sink::lacks(&mut effects, 5);
        assert_eq!(sent.0, [(HostId(1), OrdererMessage::StateAsked { at_least: 5 }.to_bytes())]);
        let take = |orderer: &mut Orderer<_>, from| {
            orderer.receive(WORD_NS, (HostId(from), &copy), &mut Sent::default()).is_some()
        };
        assert!(!take(&mut orderer, 2), "nobody asked that one");
        assert!(take(&mut orderer, 1));
        Sink::role(&mut Effects { state: &mut orderer.state, now_ns: 0, out: &mut sent }, role(2, 2));
        assert!(!take(&mut orderer, 1), "it does not lead any more");
        assert!(!take(&mut orderer, 2), "nobody knows whether anything is missing");
    }

    /// Who begins again has received nothing, and nothing new may come.
    #[test]
    fn all_that_is_recorded_is_said_again_and_again() {
        let mut ordered = Ordered::new([SHARD]);
        (1..=3).for_each(|n| _ = ordered.place(RequestId::new(pares_types::GatewayId(0), n), SHARD));
        let mut state = State::new(config(), ordered, (0, 0), 0);
        assert!(state.raise_recorded(SHARD, Position(9)) && state.untold.insert(SHARD));
        assert_eq!(state.recorded_of(SHARD), Position(3), "no more is recorded than is ordered");
        let mut told = |now_ns| {
            let mut sent = Sent::default();
            state.tell(now_ns, &mut sent);
            sent.0
        };
        let word = OrdererMessage::Recorded(vec![(SHARD, Position(3))]).to_bytes();
        let words = [WORD_NS, 2 * WORD_NS, ALL_NS].map(&mut told);
        assert_eq!(words, [vec![(HostId(1), word.clone())], vec![], vec![(HostId(1), word)]]);
    }
}
