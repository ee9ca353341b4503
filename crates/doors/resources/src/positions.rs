//! What a member bought and sold, counted from its streams.
//!
//! A position that a server keeps is lost with it, and one that two servers keep differs. The streams are the record: all who count them from their beginning to the same number
//! come to the same. So a count says how far it came, and of a stream whose beginning is not kept there is none. A follower tells it each message once, in order.

use std::collections::{BTreeMap, VecDeque};

use pares_types::{InstrumentId, OrderId, Reason, Reply, ShardId, Side};

/// Of so many orders that traded it is remembered on which side: trades that are declared void are named by them, and are recent.
const SIDES_MAX: usize = 65_536;

/// What a member has of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionHeld {
    /// Shares bought.
    pub bought: u128,
    /// Shares sold.
    pub sold: u128,
    /// Whether it is known: not if a trade was declared void of an order so old that its side is not remembered.
    pub is_unknown: bool,
}

/// How far a shard's stream is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCounted {
    /// The number that comes next.
    pub next: u64,
    /// Whether all of it is.
    pub is_live: bool,
    /// Why it cannot be.
    pub not_told: Option<Reason>,
}

/// All positions of a member.
#[derive(Clone, Debug, Default)]
pub struct MemberPositions {
    shards: BTreeMap<ShardId, StreamCounted>,
    held: BTreeMap<(ShardId, InstrumentId), PositionHeld>,
    sides: BTreeMap<OrderId, Side>,
    /// Of `sides`, the first to trade first.
    orders: VecDeque<OrderId>,
}

impl MemberPositions {
    /// From where each of these shards is to be told now: from the first number, or from where the count stands.
    pub fn go_on(&mut self, shards: impl IntoIterator<Item = ShardId>) -> Vec<(ShardId, u64)> {
        let from = |shard| {
            let next = self.shards.get(&shard).map_or(1, |counted| counted.next);
            self.shards.insert(shard, StreamCounted { next, is_live: false, not_told: None });
            (shard, next)
        };
        shards.into_iter().map(from).collect()
    }

    /// The next message of a shard's stream.
    pub fn on_message(&mut self, shard: ShardId, number: u64, reply: &Reply) {
        let Some(counted) = self.shards.get_mut(&shard) else { return };
        counted.next = number.saturating_add(1);
        match reply {
            Reply::Trade(trade) => {
                self.remember(trade.order, trade.side);
                let held = self.held.entry((shard, trade.instrument)).or_default();
                *held.of(trade.side) += u128::from(trade.quantity.0);
            }
            Reply::Busted(bust) => {
                let held = self.held.entry((shard, bust.instrument)).or_default();
                match self.sides.get(&bust.order) {
                    Some(side) => {
                        let of = held.of(*side);
                        *of = of.saturating_sub(bust.quantity.0.into());
                    }
                    None => held.is_unknown = true,
                }
            }
            _ => {}
        }
    }

    /// All of a shard's stream has arrived.
    pub fn on_live(&mut self, shard: ShardId) {
        if let Some(counted) = self.shards.get_mut(&shard) {
            counted.is_live = true;
        }
    }

    /// A shard's stream is not told on.
    pub fn on_not_told(&mut self, shard: ShardId, reason: Reason) {
        if let Some(counted) = self.shards.get_mut(&shard) {
            counted.not_told = Some(reason);
        }
    }

    /// Whether all shards are counted, as far as they can be.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shards.values().all(|counted| counted.is_live || counted.not_told.is_some())
    }

    /// How far each shard is counted.
    pub fn shards(&self) -> impl Iterator<Item = (ShardId, &StreamCounted)> {
        self.shards.iter().map(|(shard, counted)| (*shard, counted))
    }

    /// What the member has of each instrument that it traded, where the whole stream could be counted.
    pub fn held(&self) -> impl Iterator<Item = (ShardId, InstrumentId, PositionHeld)> {
        let is_told = |shard| self.shards.get(&shard).is_some_and(|counted| counted.not_told.is_none());
        let all = self.held.iter().map(|((shard, instrument), held)| (*shard, *instrument, *held));
        all.filter(move |(shard, ..)| is_told(*shard))
    }

    fn remember(&mut self, order: OrderId, side: Side) {
        if self.sides.insert(order, side).is_none() {
            self.orders.push_back(order);
        }
        if self.orders.len() > SIDES_MAX
            && let Some(oldest) = self.orders.pop_front()
        {
            self.sides.remove(&oldest);
        }
    }
}

impl PositionHeld {
    fn of(&mut self, side: Side) -> &mut u128 {
        match side {
            Side::Buy => &mut self.bought,
            Side::Sell => &mut self.sold,
        }
    }

    /// What was bought, less what was sold, as text.
    #[must_use]
    pub fn net_text(&self) -> String {
        match self.bought.checked_sub(self.sold) {
            Some(net) => net.to_string(),
            None => format!("-{}", self.sold - self.bought),
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_exercise::replies;
    use pares_types::{Position, Quantity, RequestId, Trade, TradeBusted};

    use super::*;

    const SHARD: ShardId = ShardId(3);

    fn order(number: u64) -> OrderId {
        OrderId(RequestId::from_bits(number).unwrap())
    }

    fn trade(number: u64, side: Side, quantity: u64) -> Reply {
        let (order, position, quantity) = (order(number), Position(number), Quantity(quantity));
        let about = Trade { order, shard: SHARD, instrument: InstrumentId(1), ..replies::trade(1, number) };
        Reply::Trade(Trade { position, side, quantity, ..about })
    }

    fn bust(number: u64, of: u64, quantity: u64) -> Reply {
        let (order, position, quantity) = (order(of), Position(number), Quantity(quantity));
        let about =
            TradeBusted { order, shard: SHARD, instrument: InstrumentId(1), ..replies::busted(1, number) };
        Reply::Busted(TradeBusted { position, traded_at: Position(of), quantity, ..about })
    }

    fn counted(told: &[(u64, Reply)]) -> MemberPositions {
        let mut positions = MemberPositions::default();
        assert_eq!(positions.go_on([SHARD]), [(SHARD, 1)]);
        told.iter().for_each(|(number, reply)| positions.on_message(SHARD, *number, reply));
        positions
    }

    #[test]
    fn position_is_bought_less_sold_without_void_trades() {
        let told = [(1, trade(1, Side::Buy, 10)), (2, trade(2, Side::Sell, 30)), (3, bust(3, 1, 10))];
        let mut positions = counted(&told);
        assert!(!positions.is_done());
        positions.on_live(SHARD);
        assert!(positions.is_done());
        let (_, _, held) = positions.held().next().unwrap();
        assert_eq!((held.bought, held.sold, held.net_text()), (0, 30, "-30".into()));
    }

    #[test]
    fn a_count_goes_on_where_it_stood() {
        let mut positions = counted(&[(1, trade(1, Side::Buy, 10))]);
        positions.on_live(SHARD);
        assert_eq!(positions.go_on([SHARD]), [(SHARD, 2)]);
        assert!(!positions.is_done(), "until it is told anew");
        positions.on_message(SHARD, 2, &trade(2, Side::Buy, 5));
        positions.on_live(SHARD);
        assert_eq!(positions.held().next().unwrap().2.bought, 15);
    }

    #[test]
    fn of_a_stream_whose_beginning_is_not_kept_there_is_no_position() {
        let mut positions = counted(&[]);
        positions.on_not_told(SHARD, Reason::NotKept);
        assert!(positions.is_done() && positions.held().next().is_none());
        let (_, counted) = positions.shards().next().unwrap();
        assert_eq!(counted.not_told, Some(Reason::NotKept));
    }

    #[test]
    fn void_trade_of_forgotten_order_makes_position_unknown() {
        let positions = counted(&[(1, bust(1, 9, 10))]);
        assert!(positions.held().next().unwrap().2.is_unknown);
    }
}
