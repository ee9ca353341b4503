//! Random clients, commits, stops and restarts, against what a client may expect.

use std::collections::{BTreeMap, BTreeSet};

use pares_types::{
    Answer, ClientOrderId, ClientRequest, Command, MemberId, Quantity, Reply, ShardId, Side, Status,
};
use proptest::prelude::*;

use super::exchange::Record;
use super::world::{GATEWAYS, SHARDS, World, amend, cancel, config, enter, instruments, mass_cancel};
use crate::SessionId;

const NAMES: u64 = 11;
const MEMBERS: u32 = 2;

#[derive(Clone, Debug)]
enum Operation {
    SignOn { gate: usize, member: u32 },
    Disconnect { gate: usize, nth: usize },
    Ask { gate: usize, nth: usize, name: u64 },
    Commit { gate: usize, shard: usize },
    Follow { gate: usize, shard: usize },
    ReadPeer { gate: usize },
    Restart { gate: usize, taken: [usize; SHARDS] },
    Room { gate: usize, room: usize },
    Tick { gate: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let gate = 0..GATEWAYS;
    prop_oneof![
        2 => (gate.clone(), 1..=MEMBERS).prop_map(|(gate, member)| SignOn { gate, member }),
        1 => (gate.clone(), 0..9usize).prop_map(|(gate, nth)| Disconnect { gate, nth }),
        9 => (gate.clone(), 0..9usize, 1..=NAMES).prop_map(|(gate, nth, name)| Ask { gate, nth, name }),
        6 => (gate.clone(), 0..SHARDS).prop_map(|(gate, shard)| Commit { gate, shard }),
        6 => (gate.clone(), 0..SHARDS).prop_map(|(gate, shard)| Follow { gate, shard }),
        4 => gate.clone().prop_map(|gate| ReadPeer { gate }),
        1 => (gate.clone(), [0..40usize, 0..40]).prop_map(|(gate, taken)| Restart { gate, taken }),
        2 => gate.clone().prop_map(|gate| Tick { gate }),
        1 => (gate, prop_oneof![0..2usize, Just(usize::MAX)]).prop_map(|(gate, room)| Room { gate, room }),
    ]
}

/// A name always means the same request, as it should.
fn request(name: u64) -> ClientRequest {
    match name {
        1 => enter(1, 1, Side::Buy, 10, 100),
        2 => enter(2, 2, Side::Sell, 10, 100),
        3 => enter(3, 1, Side::Sell, 5, 100),
        4 => enter(4, 3, Side::Buy, 7, 90),
        5 => cancel(5, 1),
        6 => amend(6, 2, 20, 110),
        7 => mass_cancel(7, 1),
        8 => amend(8, 2, 4, 110),
        9 => amend(9, 2, 12, 110),
        _ => mass_cancel(name, 0),
    }
}

type Name = (MemberId, ClientOrderId);

/// What one gateway's clients know and expect.
#[derive(Default)]
struct Clients {
    /// Signed on, oldest first.
    sessions: Vec<(u64, u32)>,
    /// Who is to be told of a name's answer.
    waiting: BTreeMap<Name, u64>,
    /// Names that nobody here waits for but that may be answered unasked, once: taken in before a restart.
    unasked: BTreeSet<Name>,
}

struct Model {
    world: World,
    clients: [Clients; GATEWAYS],
    session_last: u64,
}

impl Model {
    fn step(&mut self, operation: &Operation) {
        match *operation {
            Operation::SignOn { gate, member } => {
                self.session_last += 1;
                self.world.sign_on(gate, self.session_last, member);
                self.clients[gate].sessions.push((self.session_last, member));
            }
            Operation::Disconnect { gate, nth } => {
                if nth < self.clients[gate].sessions.len() {
                    let (session, _) = self.clients[gate].sessions.remove(nth);
                    self.world.gates[gate].gateway.on_disconnect(SessionId(session));
                }
            }
            Operation::Ask { gate, nth, name } => self.ask(gate, nth, name),
            Operation::Commit { gate, shard } => {
                self.world.commit(gate, shard);
            }
            Operation::Follow { gate, shard } => {
                self.world.follow(gate, shard);
            }
            Operation::ReadPeer { gate } => {
                self.world.read_peer(gate);
            }
            Operation::Restart { gate, taken } => {
                self.world.now += 1;
                self.world.restart_from(gate, config(gate), taken);
                self.world.start_clock(gate, 1, &[ShardId(0)]);
                let log = self.world.gates[gate].sink.log.iter();
                let named = log.filter(|request| !matches!(request.command, Command::Time { .. }));
                let unasked = named.map(|request| (request.member, request.client_order_id)).collect();
                self.clients[gate] = Clients { unasked, ..Clients::default() };
            }
            Operation::Tick { gate } => {
                self.world.now += 1;
                self.world.on_time(gate, self.world.now);
            }
            Operation::Room { gate, room } => self.world.gates[gate].sink.room = room,
        }
        for gate in 0..GATEWAYS {
            self.check_replies(gate);
            self.check_nets(gate);
        }
    }

    fn ask(&mut self, gate: usize, nth: usize, name: u64) {
        let Some(&(session, member)) = self.clients[gate].sessions.get(nth) else { return };
        let name_of = (MemberId(member), ClientOrderId(name));
        let before = self.clients[gate].waiting.insert(name_of, session);
        self.world.ask(gate, session, request(name));
        let rejected = self.world.gates[gate].sink.replies.iter();
        if rejected.clone().any(|(_, reply)| matches!(reply, Reply::Rejected { .. })) {
            self.world.gates[gate].sink.replies.clear();
            match before {
                Some(before) => self.clients[gate].waiting.insert(name_of, before),
                None => self.clients[gate].waiting.remove(&name_of),
            };
            // A mass cancel may have been taken in in part.
            self.clients[gate].unasked.insert(name_of);
        }
    }

    /// Every answer is the first one, and goes to those that wait for it.
    fn check_replies(&mut self, gate: usize) {
        for (session, reply) in self.world.replies(gate) {
            let clients = &mut self.clients[gate];
            let &(_, member) =
                clients.sessions.iter().find(|(id, _)| *id == session).expect("told while there");
            let Reply::Answer(answer) = reply else { continue };
            let name = (MemberId(member), answer.client_order_id);
            let newest = clients.sessions.iter().rev().find(|(_, other)| *other == member).unwrap().0;
            match clients.waiting.remove(&name) {
                Some(asker) if clients.sessions.iter().any(|(id, _)| *id == asker) => {
                    assert_eq!(session, asker)
                }
                Some(_) => assert_eq!(session, newest),
                None => assert!(session == newest && clients.unasked.remove(&name), "answered unasked"),
            }
            let first = first_answer(&self.world, name).expect("answered only once committed");
            assert_eq!(answer.content(), first.content());
        }
    }

    fn finish(&mut self) {
        self.world.settle();
        for gate in 0..GATEWAYS {
            self.check_replies(gate);
            let Clients { sessions, waiting, .. } = &self.clients[gate];
            let alive = |session: &u64| sessions.iter().any(|(id, _)| id == session);
            assert!(!waiting.values().any(alive), "somebody waits for ever: {waiting:?}");
            assert_eq!(self.world.gates[gate].gateway.in_flight(), 0);
            assert!(self.world.gates[gate].gateway.names() <= MEMBERS as usize * NAMES as usize);
            self.check_open(gate);
            let log = &self.world.gates[gate].sink.log;
            assert!(log.windows(2).all(|pair| pair[0].id < pair[1].id && pair[0].stamp < pair[1].stamp));
        }
    }

    /// What members bought and sold is what the shards say, as far as they are followed.
    fn check_nets(&self, gate: usize) {
        let gateway = &self.world.gates[gate].gateway;
        for (shard, state) in gateway.shards.iter().zip(&self.world.shards) {
            let Some(last) = shard.next.and_then(|next| next.0.checked_sub(1)) else { continue };
            assert_eq!(shard.positions.written(), state.views[last as usize].positions);
        }
    }

    /// What members' orders may still trade is what the shards say.
    fn check_open(&self, gate: usize) {
        let names = &self.world.gates[gate].gateway.names;
        let orders =
            || self.world.shards.iter().filter_map(|shard| shard.views.last()).flat_map(|view| &view.orders);
        for (instrument, _) in instruments() {
            for (member, side) in
                (1..=MEMBERS).flat_map(|id| [Side::Buy, Side::Sell].map(|side| (MemberId(id), side)))
            {
                let of = orders()
                    .filter(|one| (one.member, one.instrument, one.side) == (member, instrument.id, side));
                let open: u128 = of.map(|order| u128::from(order.remaining.0)).sum();
                assert_eq!(names.open(member, instrument.id, side), open);
            }
        }
        assert!(orders().next().is_some() || names.is_at_rest());
    }
}

fn first_answer(world: &World, name: Name) -> Option<Answer> {
    let all = world.shards.iter().flat_map(|shard| &shard.committed);
    let mut own = all.filter(|record| (record.request.member, record.request.client_order_id) == name);
    let first: Vec<&Record> = own.by_ref().filter(|record| !record.is_duplicate()).collect();
    let fan_out = name.1.0 >= 10;
    if fan_out && first.len() < SHARDS {
        return None;
    }
    let Record { position, request, outcome, events } = first.first()?;
    let mut answer = pares_stream::answer(*position, request, outcome, events.len());
    if fan_out {
        assert_eq!(outcome.status, Status::MassCancelled);
        answer.executed = Quantity(first.iter().map(|record| record.outcome.executed.0).sum());
    }
    Some(answer)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_asking_is_answered_once_with_the_first_answer(
        operations in prop::collection::vec(operation(), 1..250),
    ) {
        let mut model =
            Model { world: World::new(), clients: Default::default(), session_last: 0 };
        (0..GATEWAYS).for_each(|gate| model.world.start_clock(gate, 1, &[ShardId(0)]));
        operations.iter().for_each(|operation| model.step(operation));
        model.finish();
    }
}
