//! An exchange as its protocol promises it: a name is executed once, each repeat gets the first answer, and what it reports has a number.

use std::collections::{BTreeMap, BTreeSet};

use pares_random::Random;
use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, ClientRequest, GatewayId, InstrumentId, NewOrder, OrderId,
    OrderKind, Position, Price, Quantity, Reason, Reply, RequestDigest, RequestId, Role, ShardId, Side,
    Status, TimeInForce, Trade, TradeBusted,
};

pub(crate) const SHARDS: u32 = 2;

/// The shard of an instrument.
pub(crate) fn shard_of(instrument: InstrumentId) -> u32 {
    instrument.0 % SHARDS
}

/// An order that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    instrument: InstrumentId,
    side: Side,
    limit: i64,
    pub(crate) left: u64,
}

/// What all of a name's trades come to, those that are void aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) shares: u64,
    pub(crate) value: u64,
}

#[derive(Default)]
pub(crate) struct Exchange {
    /// What the member receives, by shard; the first has number 1.
    pub(crate) streams: [Vec<Reply>; SHARDS as usize],
    pub(crate) live: BTreeMap<u64, Live>,
    pub(crate) done: BTreeMap<u64, Done>,
    answers: BTreeMap<u64, Answer>,
    trades: Vec<Trade>,
    position: u64,
    pub(crate) repeats: u64,
    pub(crate) voids: u64,
    pub(crate) plugs: u64,
    /// Names that nobody knows any more: what is not done under one never is.
    old: BTreeSet<u64>,
    /// Names that were too old before they were used.
    pub(crate) never: u64,
}

fn nobody() -> OrderId {
    OrderId(RequestId::new(GatewayId(1), 1))
}

impl Exchange {
    fn tell(&mut self, shard: u32, reply: Reply) {
        let stream = &mut self.streams[shard as usize];
        stream.push(reply.numbered(stream.len() as u64 + 1));
    }

    /// A request comes to a gateway: what its session receives besides the stream.
    pub(crate) fn take(&mut self, request: &ClientRequest, draw: &mut Random) -> Option<Reply> {
        let name = request.client_order_id();
        if draw.below(60) == 0 && self.old.insert(name.0) && !self.answers.contains_key(&name.0) {
            self.never += u64::from(matches!(request, ClientRequest::Enter { .. }));
        }
        if self.old.contains(&name.0) {
            return Some(Reply::Rejected { client_order_id: name, reason: Reason::TooOld });
        }
        if let Some(first) = self.answers.get(&name.0) {
            self.repeats += 1;
            return Some(Reply::Answer(Answer { repeat: true, number: 0, ..*first }));
        }
        match *request {
            ClientRequest::Enter { instrument, order, .. } => self.enter(name, instrument, &order, draw),
            ClientRequest::Cancel { target, .. } => self.cancel(name, target),
            _ => panic!("no router asks that"),
        }
    }

    fn enter(
        &mut self,
        name: ClientOrderId,
        instrument: InstrumentId,
        order: &NewOrder,
        draw: &mut Random,
    ) -> Option<Reply> {
        let is_plug = order.quantity.is_zero();
        match draw.below(20) {
            0 => return Some(Reply::Rejected { client_order_id: name, reason: Reason::Overloaded }),
            1 | 2 => return Some(Reply::Rejected { client_order_id: name, reason: Reason::PriceCollar }),
            3 if !is_plug => {
                self.answer(name, instrument, Status::Refused, Reason::OffTick);
                return None;
            }
            _ if is_plug => {
                self.plugs += 1;
                self.answer(name, instrument, Status::Refused, Reason::ZeroQuantity);
                return None;
            }
            _ => {}
        }
        let OrderKind::Limit { price } = order.kind else { panic!("no router asks that") };
        let live = Live { instrument, side: order.side, limit: price.0, left: order.quantity.0 };
        self.live.insert(name.0, live);
        self.position += 1;
        if draw.below(3) == 0 {
            self.trade(name.0, draw);
        }
        if order.time_in_force == TimeInForce::Ioc {
            self.remove(name.0, CancelCause::Remainder);
        }
        self.answer(name, instrument, Status::Resting, Reason::None);
        None
    }

    fn cancel(&mut self, name: ClientOrderId, target: ClientOrderId) -> Option<Reply> {
        let Some(live) = self.live.get(&target.0).copied() else {
            let reason = Reason::UnknownClientOrderId;
            return Some(Reply::Rejected { client_order_id: name, reason });
        };
        self.position += 1;
        self.remove(target.0, CancelCause::Requested);
        self.answer(name, live.instrument, Status::Cancelled, Reason::Requested);
        None
    }

    fn answer(&mut self, name: ClientOrderId, instrument: InstrumentId, status: Status, reason: Reason) {
        let answer = Answer {
            client_order_id: name,
            request: nobody().0,
            order: nobody(),
            shard: ShardId(shard_of(instrument) as u16),
            position: Position(self.position),
            instrument,
            status,
            reason,
            executed: Quantity(0),
            remaining: Quantity(0),
            events: 0,
            repeat: false,
            number: 0,
            asked: RequestDigest::UNKNOWN,
        };
        self.answers.insert(name.0, answer);
        self.tell(shard_of(instrument), Reply::Answer(answer));
    }

    /// Some of it trades, at its limit or better, at a price with parts of a cent.
    fn trade(&mut self, name: u64, draw: &mut Random) {
        let Some(live) = self.live.get_mut(&name) else { return };
        let quantity = 1 + draw.below(live.left);
        live.left -= quantity;
        let better = draw.below(700) as i64;
        let price = if live.side == Side::Buy { live.limit - better } else { live.limit + better };
        let (live, price) = (*live, price.max(1));
        if live.left == 0 {
            self.live.remove(&name);
        }
        let done = self.done.entry(name).or_default();
        *done = Done { shares: done.shares + quantity, value: done.value + quantity * price as u64 };
        let trade = Trade {
            client_order_id: ClientOrderId(name),
            order: nobody(),
            shard: ShardId(shard_of(live.instrument) as u16),
            position: Position(self.position),
            index: 0,
            instrument: live.instrument,
            side: live.side,
            role: Role::Resting,
            price: Price(price),
            quantity: Quantity(quantity),
            remaining: Quantity(live.left),
            number: 0,
        };
        self.trades.push(trade);
        self.tell(shard_of(live.instrument), Reply::Trade(trade));
    }

    fn remove(&mut self, name: u64, cause: CancelCause) {
        let Some(live) = self.live.remove(&name) else { return };
        let cancelled = Cancelled {
            client_order_id: ClientOrderId(name),
            order: nobody(),
            shard: ShardId(shard_of(live.instrument) as u16),
            position: Position(self.position),
            instrument: live.instrument,
            side: live.side,
            price: Price(live.limit),
            quantity: Quantity(live.left),
            cause,
            number: 0,
        };
        self.tell(shard_of(live.instrument), Reply::Cancelled(cancelled));
    }

    /// Another program signs on as the member, and trades.
    pub(crate) fn trade_of_another(&mut self, draw: &mut Random) {
        let name = 1 << 48 | 1 << 47;
        let (instrument, side) = (InstrumentId(1), Side::Buy);
        self.live.insert(name, Live { instrument, side, limit: 50_000, left: 10 });
        self.trade(name, draw);
        self.live.remove(&name);
        self.done.remove(&name);
    }

    /// Something happens that no customer asked for.
    pub(crate) fn happen(&mut self, draw: &mut Random) {
        self.position += 1;
        match draw.below(12) {
            0 if !self.trades.is_empty() => self.void(draw),
            1 => {
                let Some(name) = self.any(draw) else { return };
                self.remove(name, CancelCause::DayEnd);
            }
            _ => {
                let Some(name) = self.any(draw) else { return };
                self.trade(name, draw);
            }
        }
    }

    fn any(&self, draw: &mut Random) -> Option<u64> {
        let at = draw.below(self.live.len().max(1) as u64) as usize;
        self.live.keys().nth(at).copied()
    }

    fn void(&mut self, draw: &mut Random) {
        let at = draw.below(self.trades.len() as u64) as usize;
        let trade = self.trades.swap_remove(at);
        self.voids += 1;
        let done = self.done.get_mut(&trade.client_order_id.0).unwrap();
        done.shares -= trade.quantity.0;
        done.value -= trade.quantity.0 * trade.price.0 as u64;
        let bust = TradeBusted {
            client_order_id: trade.client_order_id,
            order: trade.order,
            shard: trade.shard,
            position: Position(self.position),
            traded_at: trade.position,
            index: trade.index,
            instrument: trade.instrument,
            price: trade.price,
            quantity: trade.quantity,
            number: 0,
        };
        self.tell(shard_of(trade.instrument), Reply::Busted(bust));
    }
}
