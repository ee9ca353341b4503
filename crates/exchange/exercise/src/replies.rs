//! What a gateway may tell a member: one message of each kind, of which a test says what matters to it
//! (`Answer { status: Status::Filled, ..answer(1, 5) }`), and any reply, drawn.
//!
//! A message about `order` is about request `order` of gateway 1, entered under the name `order` to buy 100 of instrument 17 at 1.5;
//! its `number` in the stream comes of position 100 more.

use pares_random::Random;
use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, GatewayId, InstrumentId, InstrumentStatus, OrderChange,
    OrderId, OrderNews, OrderState, OrderStatus, Phase, Position, Price, Quantity, Reason, Reply,
    RequestDigest, RequestId, Role, ShardId, Side, Status, Symbol, Trade, TradeBusted,
};

/// The shard of all of them.
pub const SHARD: ShardId = ShardId(0);
/// The instrument.
pub const ACME: InstrumentId = InstrumentId(17);
/// The price: 1.5.
pub const PRICE: Price = Price(15_000);

/// The order of that number.
#[must_use]
pub fn order_id(order: u64) -> OrderId {
    OrderId(RequestId::new(GatewayId(1), order))
}

/// It rests with all of its shares.
#[must_use]
pub fn answer(order: u64, number: u64) -> Answer {
    Answer {
        client_order_id: ClientOrderId(order),
        request: order_id(order).0,
        order: order_id(order),
        shard: SHARD,
        position: Position(number.saturating_add(100)),
        instrument: ACME,
        status: Status::Resting,
        reason: Reason::None,
        executed: Quantity(0),
        remaining: Quantity(100),
        events: 0,
        repeat: false,
        number,
        asked: RequestDigest::UNKNOWN,
    }
}

/// It rested, and 40 shares of it traded.
#[must_use]
pub fn trade(order: u64, number: u64) -> Trade {
    Trade {
        client_order_id: ClientOrderId(order),
        order: order_id(order),
        shard: SHARD,
        position: Position(number.saturating_add(100)),
        index: 0,
        instrument: ACME,
        side: Side::Buy,
        role: Role::Resting,
        price: PRICE,
        quantity: Quantity(40),
        remaining: Quantity(60),
        number,
    }
}

/// All of it was cancelled, as requested.
#[must_use]
pub fn cancelled(order: u64, number: u64) -> Cancelled {
    Cancelled {
        client_order_id: ClientOrderId(order),
        order: order_id(order),
        shard: SHARD,
        position: Position(number.saturating_add(100)),
        instrument: ACME,
        side: Side::Buy,
        price: PRICE,
        quantity: Quantity(100),
        cause: CancelCause::Requested,
        number,
    }
}

/// It shows 10 new shares of 60.
#[must_use]
pub fn news(order: u64, number: u64) -> OrderNews {
    OrderNews {
        client_order_id: ClientOrderId(order),
        order: order_id(order),
        shard: SHARD,
        position: Position(number.saturating_add(100)),
        instrument: ACME,
        side: Side::Buy,
        change: OrderChange::Refilled,
        price: PRICE,
        remaining: Quantity(60),
        shown: Quantity(10),
        number,
    }
}

/// Its trade of 40 shares at position 101 is void.
#[must_use]
pub fn busted(order: u64, number: u64) -> TradeBusted {
    TradeBusted {
        client_order_id: ClientOrderId(order),
        order: order_id(order),
        shard: SHARD,
        position: Position(number.saturating_add(100)),
        traded_at: Position(101),
        index: 0,
        instrument: ACME,
        price: PRICE,
        quantity: Quantity(40),
        number,
    }
}

/// It works, with all of its shares.
#[must_use]
pub fn order_status(order: u64) -> OrderStatus {
    OrderStatus {
        client_order_id: ClientOrderId(order),
        order: order_id(order),
        instrument: ACME,
        shard: SHARD,
        next: Position(100),
        state: OrderState::Working,
        remaining: Quantity(100),
        side: Some(Side::Buy),
        executed: Quantity(0),
    }
}

/// An instrument that trades, at any price from 1 unit to 1,000,000.
///
/// # Panics
/// If the symbol is none.
#[must_use]
pub fn instrument_status(symbol: &str, instrument: InstrumentId) -> InstrumentStatus {
    InstrumentStatus {
        instrument,
        symbol: Symbol::new(symbol).expect("a symbol"),
        shard: SHARD,
        next: Position(0),
        phase: Phase::Continuous,
        quarantined: false,
        last: None,
        reference: None,
        lot: Quantity(1),
        quantity_max: Quantity(1_000),
        value_max: 0,
        price_min: Price(1),
        price_max: Price(1_000_000),
        orders_max: 1_000,
        static_band: 0,
        dynamic_band: 0,
        call_ns: 0,
        tick_rows: 0,
    }
}

/// Mostly small, sometimes as large as can be.
pub fn amount(random: &mut Random) -> u64 {
    if random.one_in(16) { u64::MAX - random.below(3) } else { random.below(12) }
}

/// Any reply about one of the orders 1 to 6 under that name, right or not.
pub fn any_reply(random: &mut Random, client_order_id: ClientOrderId, number: u64) -> Reply {
    let of = 1 + random.below(6);
    let (order, shard) = (order_id(of), random.pick(&[SHARD, SHARD, SHARD, ShardId(9)]));
    let (position, instrument) =
        (Position(amount(random)), random.pick(&[ACME, ACME, InstrumentId(0), InstrumentId(3)]));
    let (quantity, remaining) = (Quantity(amount(random)), Quantity(amount(random)));
    let (side, price) = (random.pick(&[Side::Buy, Side::Sell]), Price(amount(random).cast_signed()));
    match random.below(8) {
        0..3 => Reply::Answer(Answer {
            client_order_id,
            request: random.pick(&[order.0, order_id(1 + client_order_id.0 % 6).0]),
            shard,
            position,
            instrument,
            status: random.pick(&Status::ALL),
            reason: random.pick(&Reason::ALL),
            executed: quantity,
            remaining,
            repeat: random.one_in(3),
            ..answer(of, number)
        }),
        3 => {
            let (index, role) = (random.below(3) as u16, random.pick(&[Role::Resting, Role::Incoming]));
            let about = Trade { client_order_id, shard, position, instrument, ..trade(of, number) };
            Reply::Trade(Trade { index, side, role, price, quantity, remaining, ..about })
        }
        4 => {
            let about = Cancelled { client_order_id, shard, position, instrument, ..cancelled(of, number) };
            Reply::Cancelled(Cancelled {
                side,
                price,
                quantity,
                cause: random.pick(&CancelCause::ALL),
                ..about
            })
        }
        5 => {
            let (change, shown) = (random.pick(&OrderChange::ALL), Quantity(amount(random)));
            let about = OrderNews { client_order_id, shard, position, instrument, ..news(of, number) };
            Reply::News(OrderNews { side, change, price, remaining, shown, ..about })
        }
        6 => {
            let traded_at = Position(amount(random));
            let about = TradeBusted { client_order_id, shard, position, instrument, ..busted(of, number) };
            Reply::Busted(TradeBusted { traded_at, price, quantity, ..about })
        }
        _ => Reply::Rejected { client_order_id, reason: random.pick(&Reason::ALL) },
    }
}
