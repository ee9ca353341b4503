//! Two gateways, their logs, their clients and the exchange behind them, moved by hand.

use pares_book::{Instrument, Listing};
use pares_register::Register;
use pares_types::{
    ClientOrderId, ClientRequest, Command, GatewayId, InstrumentId, MemberId, NewOrder, NewTerms, Price,
    Quantity, Reason, Reply, Request, ShardId, Side, Symbol, Timestamp,
};

use super::exchange::{Record, Shard};
use crate::{DayTimes, Gateway, GatewayConfig, GatewaySink, LookUp, Pace, Place, SessionId};

/// Bytes of a record in a gateway's log.
pub(super) const RECORD: u64 = 64;
pub(super) const GATEWAYS: usize = 2;
pub(super) const SHARDS: usize = 2;

/// Instruments 1 and 3 trade in shard 0, instrument 2 in shard 1.
pub(super) fn instruments() -> [(Instrument, ShardId); 3] {
    [(1, "ONE", 0), (2, "TWO", 1), (3, "THREE", 0)].map(|(id, symbol, shard)| {
        let symbol = Symbol::new(symbol).expect("it is short");
        (Instrument::listed(InstrumentId(id), symbol), ShardId(shard))
    })
}

pub(super) fn config(gate: usize) -> GatewayConfig {
    let id = GatewayId(gate as u16 + 1);
    GatewayConfig {
        id,
        gateways: 2,
        sign_on_required: false,
        member_sessions_max: 100,
        session_in_flight_max: 100,
        session_pace: Pace::FREE,
        patience_ns: 0,
        wait_target_ns: 0,
        in_flight_max: 100,
        names_max: 1_000,
    }
}

/// What a gateway did.
#[derive(Default)]
pub(super) struct Sink {
    pub(super) log: Vec<Request>,
    pub(super) replies: Vec<(SessionId, Reply)>,
    pub(super) again: Vec<(SessionId, Place)>,
    pub(super) look_ups: Vec<LookUp>,
    /// Sessions to be left unread, and for how long.
    pub(super) later: Vec<(SessionId, u64)>,
    /// Sessions that were signed off, and why.
    pub(super) gone: Vec<(SessionId, Reason)>,
    /// Requests the log still takes.
    pub(super) room: usize,
}

impl GatewaySink for Sink {
    fn journal(&mut self, request: &Request) -> Result<u64, Reason> {
        self.room = self.room.checked_sub(1).ok_or(Reason::StorageUnavailable)?;
        self.log.push(*request);
        Ok((self.log.len() as u64 - 1) * RECORD)
    }

    /// How many requests came before.
    fn draw(&mut self) -> u64 {
        self.log.len() as u64
    }

    fn reply(&mut self, session: SessionId, reply: Reply) {
        self.replies.push((session, reply));
    }

    fn answer_again(&mut self, session: SessionId, place: Place, _: ClientOrderId) {
        self.again.push((session, place));
    }

    fn look_up(&mut self, look_up: LookUp) {
        self.look_ups.push(look_up);
    }

    fn disconnect(&mut self, session: SessionId, reason: Reason) {
        self.gone.push((session, reason));
    }

    fn read_later(&mut self, session: SessionId, pause_ns: u64) {
        self.later.push((session, pause_ns));
    }
}

/// One gateway with its log and what it has read of the others.
pub(super) struct Gate {
    pub(super) gateway: Gateway,
    pub(super) sink: Sink,
    followed: [usize; SHARDS],
    peer_read: usize,
}

/// Everything.
pub(super) struct World {
    pub(super) gates: [Gate; GATEWAYS],
    pub(super) shards: [Shard; SHARDS],
    /// Per gateway and shard, how much of the log the venues have read.
    venue_read: [[usize; SHARDS]; GATEWAYS],
    pub(super) now: u64,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(config)
    }

    pub(super) fn with(config: impl Fn(usize) -> GatewayConfig) -> Self {
        let gate = |gate| Gate {
            gateway: Gateway::new(config(gate), instruments()).with_hash_seed(gate as u64),
            sink: Sink { room: usize::MAX, ..Sink::default() },
            followed: [0; SHARDS],
            peer_read: 0,
        };
        Self {
            gates: [0, 1].map(gate),
            shards: Default::default(),
            venue_read: [[0; SHARDS]; GATEWAYS],
            now: 1_000,
        }
    }

    pub(super) fn sign_on(&mut self, gate: usize, session: u64, member: u32) {
        assert_eq!(self.try_sign_on(gate, session, member, false), Ok(()));
    }

    /// The same, perhaps with a notice of each journalled request, and perhaps refused.
    pub(super) fn try_sign_on(
        &mut self,
        gate: usize,
        session: u64,
        member: u32,
        journalled: bool,
    ) -> Result<(), Reason> {
        let who = (MemberId(member), 0);
        self.gates[gate].gateway.on_sign_on(SessionId(session), who, journalled, &mut Sink::default())
    }

    pub(super) fn ask(&mut self, gate: usize, session: u64, request: ClientRequest) {
        let Gate { gateway, sink, .. } = &mut self.gates[gate];
        gateway.on_request(Timestamp(self.now), SessionId(session), request, sink);
        self.look_up(gate);
        self.read_again(gate);
    }

    pub(super) fn start_clock(&mut self, gate: usize, every_ns: u64, timed: &[ShardId]) {
        let bare = Gateway::new(config(gate), []);
        let gateway = std::mem::replace(&mut self.gates[gate].gateway, bare);
        self.gates[gate].gateway = gateway.with_clock(every_ns, timed.iter().copied());
    }

    pub(super) fn start_days(&mut self, gate: usize, times: DayTimes) {
        let bare = Gateway::new(config(gate), []);
        let gateway = std::mem::replace(&mut self.gates[gate].gateway, bare);
        self.gates[gate].gateway = gateway.with_days(times);
    }

    pub(super) fn on_time(&mut self, gate: usize, now: u64) {
        let Gate { gateway, sink, .. } = &mut self.gates[gate];
        gateway.on_time(Timestamp(now), sink);
    }

    /// What the edge does for `look_up`: all that the gateway takes for committed is on disk.
    fn look_up(&mut self, gate: usize) {
        let Gate { gateway, sink, followed, .. } = &mut self.gates[gate];
        for look_up in std::mem::take(&mut sink.look_ups) {
            let shards = self.shards.iter().zip(&*followed);
            let records = shards.flat_map(|(shard, &followed)| &shard.committed[..followed]);
            let name = (look_up.member, look_up.client_order_id);
            let own = records.filter(|one| {
                (one.request.member, one.request.client_order_id) == name && !one.is_duplicate()
            });
            let found: Vec<_> = own.map(Record::found).collect();
            gateway.on_looked_up(Timestamp(self.now), &look_up, &found, sink);
        }
    }

    /// What the edge does for `answer_again`.
    fn read_again(&mut self, gate: usize) {
        let Gate { gateway, sink, .. } = &mut self.gates[gate];
        for (session, place) in sink.again.drain(..) {
            let Record { position, request, outcome, events } =
                &self.shards[usize::from(place.recorder.0)].committed[place.offset as usize];
            let answer = gateway.replay_answer(*position, request, outcome, events.len());
            sink.replies.push((session, Reply::Answer(answer)));
        }
    }

    /// The venues take the shard's next request from the gateway's log. Whether there was one.
    pub(super) fn commit(&mut self, gate: usize, shard: usize) -> bool {
        let read = &mut self.venue_read[gate][shard];
        let unread = self.gates[gate].sink.log.iter().enumerate().skip(*read);
        let next =
            unread.map(|(at, request)| (at, *request)).find(|(_, next)| usize::from(next.shard.0) == shard);
        let Some((at, request)) = next else { return false };
        *read = at + 1;
        self.shards[shard].commit(request);
        true
    }

    /// The venues cannot read the shard's next request in the gateway's log, and pass it over.
    pub(super) fn lose(&mut self, gate: usize, shard: usize) {
        let read = &mut self.venue_read[gate][shard];
        let unread = self.gates[gate].sink.log.iter().enumerate().skip(*read);
        let next = unread.map(|(at, next)| (at, next.shard)).find(|(_, of)| usize::from(of.0) == shard);
        *read = next.expect("there is one").0 + 1;
    }

    /// The gateway reads the next committed record of the shard. Whether there was one.
    pub(super) fn follow(&mut self, gate: usize, shard: usize) -> bool {
        let Gate { gateway, sink, followed, .. } = &mut self.gates[gate];
        let Some(record) = self.shards[shard].committed.get(followed[shard]) else { return false };
        followed[shard] += 1;
        let Record { position, request, outcome, events } = record;
        gateway.on_committed(*position, request, outcome, events, record.place(), sink);
        self.look_up(gate);
        true
    }

    /// The gateway reads the next request of the other's log. Whether there was one.
    pub(super) fn read_peer(&mut self, gate: usize) -> bool {
        let Some(request) = self.gates[1 - gate].sink.log.get(self.gates[gate].peer_read).copied() else {
            return false;
        };
        self.gates[gate].peer_read += 1;
        self.gates[gate].gateway.on_peer_request(&request);
        true
    }

    /// Everything journalled is committed and read by both gateways.
    pub(super) fn settle(&mut self) {
        for gate in 0..GATEWAYS {
            while self.read_peer(gate) {}
            (0..SHARDS).for_each(|shard| while self.commit(gate, shard) {});
        }
        for gate in 0..GATEWAYS {
            (0..SHARDS).for_each(|shard| while self.follow(gate, shard) {});
        }
    }

    /// The gateway dies and comes back; its clients are gone, the logs are not.
    pub(super) fn restart(&mut self, gate: usize, config: GatewayConfig) {
        self.restart_from(gate, config, [0; SHARDS]);
    }

    /// The same, from checkpoints of the shards that were taken after so many records of each, modulo how many there are; 0 for none.
    pub(super) fn restart_from(&mut self, gate: usize, config: GatewayConfig, taken: [usize; SHARDS]) {
        let taken: Vec<_> =
            taken.iter().zip(&self.shards).map(|(at, shard)| at % (shard.committed.len() + 1)).collect();
        let Gate { gateway, sink, followed, peer_read } = &mut self.gates[gate];
        *gateway = Gateway::new(config, instruments()).with_hash_seed(self.now);
        for (id, shard) in (0..).zip(&self.shards) {
            let taken = taken[usize::from(id)];
            if let Some(view) = taken.checked_sub(1).and_then(|last| shard.views.get(last)) {
                let own = instruments().into_iter().filter(|(_, shard)| shard.0 == id);
                let listings: Vec<_> = own.map(|(one, _)| Listing::first(one)).collect();
                gateway.recover_shard(ShardId(id), view, Register::new(None), &listings);
            }
        }
        for ((shard, followed), taken) in self.shards.iter().zip(followed).zip(taken) {
            for record in &shard.committed[taken..] {
                let Record { position, request, outcome, events } = record;
                gateway.recover_committed(*position, request, outcome, events, record.place());
            }
            *followed = shard.committed.len();
        }
        for (index, request) in sink.log.iter().enumerate() {
            gateway.recover_own(request, index as u64 * RECORD);
        }
        *peer_read = 0;
    }

    /// The replies of a gateway since the last call.
    pub(super) fn replies(&mut self, gate: usize) -> Vec<(u64, Reply)> {
        self.gates[gate].sink.replies.drain(..).map(|(session, reply)| (session.0, reply)).collect()
    }
}

pub(super) fn enter(name: u64, instrument: u32, side: Side, quantity: u64, price: i64) -> ClientRequest {
    let order = NewOrder::limit(side, Price(price), Quantity(quantity));
    ClientRequest::Enter { client_order_id: ClientOrderId(name), instrument: InstrumentId(instrument), order }
}

pub(super) fn amend(name: u64, target: u64, quantity: u64, price: i64) -> ClientRequest {
    let (client_order_id, target) = (ClientOrderId(name), ClientOrderId(target));
    ClientRequest::Amend { client_order_id, target, terms: NewTerms::new(Price(price), Quantity(quantity)) }
}

pub(super) fn reduce(name: u64, target: u64, quantity: u64) -> ClientRequest {
    let (client_order_id, target) = (ClientOrderId(name), ClientOrderId(target));
    ClientRequest::Amend { client_order_id, target, terms: NewTerms::reduction(Quantity(quantity)) }
}

pub(super) fn cancel(name: u64, target: u64) -> ClientRequest {
    ClientRequest::Cancel { client_order_id: ClientOrderId(name), target: ClientOrderId(target) }
}

pub(super) fn mass_cancel(name: u64, instrument: u32) -> ClientRequest {
    let (client_order_id, instrument) = (ClientOrderId(name), InstrumentId(instrument));
    ClientRequest::MassCancel { client_order_id, instrument, side: None }
}

pub(super) fn exchange(name: u64, instrument: u32, command: Command) -> ClientRequest {
    let (client_order_id, instrument) = (ClientOrderId(name), InstrumentId(instrument));
    ClientRequest::Exchange { client_order_id, instrument, command }
}
