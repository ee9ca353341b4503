//! Bytes as requests to a small book: whatever the bytes are, they say something.
//!
//! Random records of the wire are refused at the first check, and a recorded flow cut and glued refuses its own
//! amends. So here a few bytes make a request, every byte has a meaning, and what they can name is near: prices of one
//! small range, the last orders entered, times a few seconds on. What is refused must be refused alike too, so now and
//! then a byte names what no book takes.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | bits 0 to 5: the command; 6 and 7: whether time advances, by one more byte |
//! | 1 | bits 0 and 1: the member; 2 and 3: how far its gateway's clock is behind; 4 and 5: 2 for a name that its session (6) guards; 4 to 7 all set: another member |
//! | 0 to 9 | the command's own |
//!
//! What is missing at the end is zero.

use pares_book::{Instrument, Symbol, TickRow, TickTable, Timetable, TimetableRow};
use pares_types::{
    Amendment, Band, BusinessDay, BustedTrade, ClientOrderId, Command, GatewayId, Guarded, InstrumentId,
    MemberId, NewOrder, OrderId, OrderKind, Peg, Phase, Position, Price, Quantity, Request, RequestId, Rule,
    SelfTrade, ShardId, Side, TieBreak, TimeInForce, Timestamp,
};

const SECOND: u64 = 1_000_000_000;

/// Bytes to be read, and zeros behind them.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: u8) -> u64 {
        u64::from(self.next() % bound)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.next()) % from.len()]
    }
}

/// Sixteen prices near each other, and the lot.
#[derive(Clone, Copy)]
struct Scale {
    lowest: i64,
    step: i64,
    lot: u64,
}

/// Instruments, and requests for them, as bytes say. Each byte string is a sequence of its own.
pub struct Requests<'a> {
    bytes: Bytes<'a>,
    instruments: Vec<Instrument>,
    scales: Vec<Scale>,
    /// Whether requests may concern instruments that are not there, and all of them.
    of_a_market: bool,
    sequence: u64,
    /// Nanoseconds; never goes back.
    clock: u64,
    entered: Vec<Entered>,
}

/// An order that was asked for, at the terms last asked for.
#[derive(Clone, Copy)]
struct Entered {
    order: OrderId,
    member: MemberId,
    instrument: InstrumentId,
    price: Price,
    total: Quantity,
}

impl<'a> Requests<'a> {
    /// Requests for one book.
    #[must_use]
    pub fn of_a_book(bytes: &'a [u8]) -> Self {
        Self::new(bytes, 1, false)
    }

    /// Requests for a market of one to three instruments, and for some that are not there.
    #[must_use]
    pub fn of_a_market(bytes: &'a [u8]) -> Self {
        let Some((count, rest)) = bytes.split_first() else { return Self::new(bytes, 1, true) };
        Self::new(rest, 1 + u32::from(count % 3), true)
    }

    fn new(bytes: &'a [u8], count: u32, of_a_market: bool) -> Self {
        let mut bytes = Bytes(bytes);
        let clock = bytes.pick(&[0, 40_000, 250_000, 300_000]) * SECOND;
        let (instruments, scales) = (1..=count).map(|id| instrument(&mut bytes, InstrumentId(id))).unzip();
        Self { bytes, instruments, scales, of_a_market, sequence: 0, clock, entered: Vec::new() }
    }

    /// The instruments that are there at first.
    #[must_use]
    pub fn instruments(&self) -> &[Instrument] {
        &self.instruments
    }
}

/// A few prices, orders and events a step; the scale to say its prices on.
fn instrument(bytes: &mut Bytes<'_>, id: InstrumentId) -> (Instrument, Scale) {
    let lot = bytes.pick(&[1, 10]);
    let table = [(90_000, 50), (100_400, 100), (100_800, 200)];
    let table = table.map(|(from, tick)| TickRow { from: Price(from), tick: Price(tick) });
    let (ticks, lowest, step, min, max) = bytes.pick(&[
        (TickTable::flat(Price(100)), 100_000, 100, 10_000, 1_000_000),
        (TickTable::flat(Price(100)), 100_000, 100, 100_000, 101_500),
        (TickTable::flat(Price(1)), 100_000, 1, 99_000, 110_000),
        (TickTable::from_rows(&table).expect("a legal table"), 100_000, 50, 90_000, 102_000),
        (TickTable::flat(Price(100)), -800, 100, -1_000, 1_000),
    ]);
    let limits = Instrument {
        ticks,
        lot: Quantity(lot),
        quantity_max: Quantity(100 * lot),
        value_max: bytes.pick(&[0, 0, 0, 4_000_000]),
        price_min: Price(min),
        price_max: Price(max),
        orders_max: bytes.pick(&[4, 8, 12, 30, 100]),
        step_max: bytes.pick(&[4_096, 1, 2, 3, 4, 5, 7, 12, 40]),
        static_band: band(bytes, &[0, 0, 20, 50, 80]),
        dynamic_band: band(bytes, &[0, 0, 10, 30, 60]),
        extension_ns: bytes.pick(&[1, 20, 60]) * SECOND,
        extensions_max: bytes.pick(&[0, 1, 2]),
        extends_for_market: bytes.below(2) == 0,
        auction_min: Quantity(bytes.pick(&[0, 0, 20, 50])),
        random_end_ns: bytes.pick(&[0, 0, 10, 40]) * SECOND,
        call_ns: bytes.pick(&[0, 1, 20, 60]) * SECOND,
        timetable: timetable(bytes),
        ..Instrument::listed(id, Symbol::new("FUZZ").expect("a legal name"))
    };
    (Instrument::new(limits).expect("consistent limits"), Scale { lowest, step, lot })
}

/// Some of the phases of a day, half a minute to an hour apart; often none.
/// In percent, in price, or both.
fn band(bytes: &mut Bytes<'_>, widths: &[u32]) -> Band {
    Band { width: bytes.pick(widths), least: Price(bytes.pick(&[0, 0, 0, 300, -1])).max(Price(0)) }
}

fn timetable(bytes: &mut Bytes<'_>) -> Timetable {
    let phases = [Phase::OpeningCall, Phase::Continuous, Phase::ClosingCall, Phase::PostClose, Phase::Closed];
    let chosen = bytes.next();
    if chosen < 128 {
        return Timetable::EMPTY;
    }
    let mut at_ns = 0;
    let mut rows = Vec::new();
    for (bit, phase) in phases.into_iter().enumerate() {
        at_ns += bytes.pick(&[30, 60, 300, 3_600]) * SECOND;
        if chosen >> bit & 1 == 1 {
            rows.push(TimetableRow { at_ns, phase });
        }
    }
    Timetable::from_rows(&rows).expect("rows in ascending order")
}

impl Iterator for Requests<'_> {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let (&kind, _) = self.bytes.0.split_first()?;
        self.sequence += 1;
        self.bytes.next();
        self.clock += SECOND
            * match kind >> 6 {
                2 => self.bytes.below(8),
                3 => self.bytes.pick(&[10, 20, 60, 300, 3_000]),
                _ => 0,
            };
        let who = self.bytes.next();
        let (command, instrument, owner) = self.command(kind & 63);
        let any = MemberId(1 + u32::from(who & 3));
        let request = Request {
            id: RequestId::new(GatewayId(1), self.sequence),
            stamp: Timestamp(self.clock.saturating_sub([0, 0, 1, 5][usize::from(who >> 2 & 3)] * SECOND)),
            member: if who >> 4 == 15 { any } else { owner.unwrap_or(any) },
            client_order_id: if who >> 4 & 3 == 2 {
                ClientOrderId::guarded(u16::from(who >> 6 & 1), self.sequence % 97)
            } else {
                ClientOrderId(self.sequence % 97)
            },
            instrument,
            shard: ShardId(0),
            command,
        };
        self.remember(&request);
        Some(request)
    }
}

const EXCHANGE: Option<MemberId> = Some(MemberId(0));

impl Requests<'_> {
    /// A command, its instrument, and who may ask for it; any member if `None`.
    fn command(&mut self, kind: u8) -> (Command, InstrumentId, Option<MemberId>) {
        match kind {
            0..=31 => {
                let instrument = self.instrument();
                (Command::Enter(self.order(self.scale(instrument))), instrument, None)
            }
            32..=40 => self.amend(),
            41..=45 => {
                let entered = self.target();
                (Command::Cancel { target: entered.order }, entered.instrument, Some(entered.member))
            }
            46 => {
                let entered = self.target();
                let session = self.bytes.below(2) as u16;
                let guarded = Guarded { member: entered.member, session, last: entered.order.0 };
                (Command::CancelGuarded(guarded), entered.instrument, EXCHANGE)
            }
            54 => {
                let day = BusinessDay(1 + self.bytes.below(4) as u32);
                let begins = self.bytes.below(2) == 0;
                let command = if begins { Command::BeginDay { day } } else { Command::EndDay { day } };
                (command, self.all_or_one(), EXCHANGE)
            }
            47..=53 => (
                Command::Time { draw: self.bytes.pick(&[0, 1 << 60, 1 << 63, u64::MAX]) },
                self.all_or_one(),
                EXCHANGE,
            ),
            55..=56 => (Command::SetPhase(self.phase()), self.instrument(), EXCHANGE),
            57..=58 => {
                let instrument = self.instrument();
                (Command::SetRule(self.rule(self.scale(instrument))), instrument, EXCHANGE)
            }
            59 => {
                let side = self.bytes.pick(&[None, Some(Side::Buy), Some(Side::Sell)]);
                (Command::MassCancel { side }, self.all_or_one(), None)
            }
            60 | 61 => {
                let member = MemberId(1 + self.bytes.below(4) as u32);
                // A blocked member makes a dull market.
                let command = match self.bytes.below(3) {
                    0 => Command::Block { member },
                    _ => Command::Unblock { member },
                };
                (command, self.all_or_one(), EXCHANGE)
            }
            62 => (self.bust(), self.instrument(), EXCHANGE),
            _ => {
                let name = Symbol::new("NEW").expect("a legal name");
                let command = self.bytes.pick(&[Command::AddInstrument(name), Command::RemoveInstrument]);
                (command, self.instrument(), EXCHANGE)
            }
        }
    }

    /// The next amend or cancel may name it.
    fn remember(&mut self, request: &Request) {
        match request.command {
            Command::Enter(order) => {
                let price = match order.kind {
                    OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => price,
                    OrderKind::Market => Price(0),
                };
                let (member, instrument) = (request.member, request.instrument);
                let total = order.quantity;
                self.entered.push(Entered { order: OrderId(request.id), member, instrument, price, total });
            }
            Command::Amend(Amendment { target, price, quantity, reduces, .. }) => {
                let amended = self.entered.iter_mut().rev().find(|entered| entered.order == target);
                if let Some(entered) = amended {
                    entered.price = if reduces { entered.price } else { price };
                    entered.total = if reduces { entered.total.min(quantity) } else { quantity };
                }
            }
            _ => {}
        }
    }

    fn instrument(&mut self) -> InstrumentId {
        if self.of_a_market { InstrumentId(self.bytes.pick(&[1, 1, 2, 2, 3, 4])) } else { InstrumentId(1) }
    }

    /// Of the whole shard, mostly.
    fn all_or_one(&mut self) -> InstrumentId {
        InstrumentId(if self.of_a_market { self.bytes.pick(&[0, 0, 0, 1, 2, 4]) } else { 1 })
    }

    fn scale(&self, instrument: InstrumentId) -> Scale {
        let at = instrument.0 as usize - 1;
        self.scales.get(at).copied().unwrap_or(Scale { lowest: 100_000, step: 100, lot: 1 })
    }

    /// One of the 32 last orders, there or not.
    fn target(&mut self) -> Entered {
        let back = usize::from(self.bytes.next() & 31);
        let none = Entered {
            order: OrderId(RequestId::new(GatewayId(7), 1)),
            member: MemberId(1),
            instrument: InstrumentId(1),
            price: Price(100_000),
            total: Quantity(10),
        };
        let Some(last) = self.entered.len().checked_sub(1) else { return none };
        self.entered[last - back % self.entered.len()]
    }

    fn price(&mut self, scale: Scale) -> Price {
        let byte = self.bytes.next();
        let on_scale = scale.lowest + scale.step * i64::from(byte & 15);
        match byte >> 4 {
            0..=13 => Price(on_scale),
            14 => Price(on_scale + scale.step / 2),
            _ => [Price(scale.lowest - 2_000), Price(scale.lowest + 2_000), Price(i64::MIN), Price(i64::MAX)]
                [usize::from(byte & 3)],
        }
    }

    fn quantity(&mut self, scale: Scale) -> Quantity {
        let byte = u64::from(self.bytes.next());
        Quantity(match byte {
            0..=223 => (1 + byte % 9) * scale.lot,
            224..=251 => (byte - 200) * scale.lot,
            252 => 0,
            253 => scale.lot + scale.lot / 2,
            254 => 101 * scale.lot,
            _ => u64::MAX,
        })
    }

    /// A few lots: a display or a minimum.
    fn lots(&mut self, scale: Scale) -> Quantity {
        Quantity(self.bytes.below(6) * scale.lot)
    }

    fn order(&mut self, scale: Scale) -> NewOrder {
        use SelfTrade::{Allow, CancelBoth, CancelIncoming, CancelResting, Decrement};
        let shape = self.bytes.next();
        let side = if shape & 1 == 0 { Side::Buy } else { Side::Sell };
        let mut order = NewOrder::limit(side, self.price(scale), self.quantity(scale));
        let wishes = self.bytes.next();
        let modes = [Allow, Allow, Allow, Allow, CancelResting, CancelIncoming, CancelBoth, Decrement];
        order.self_trade = modes[usize::from(wishes & 7)];
        self.shape(&mut order, shape >> 1 & 31, scale);
        if order.time_in_force == TimeInForce::Day {
            order.time_in_force = match wishes >> 3 & 7 {
                5 => TimeInForce::Gtc,
                6 | 7 => self.until(),
                _ => TimeInForce::Day,
            };
        }
        order
    }

    /// One wish; wishes that contradict each other in the last shape.
    fn shape(&mut self, order: &mut NewOrder, shape: u8, scale: Scale) {
        let OrderKind::Limit { price: limit } = order.kind else { unreachable!("shaped from a limit order") };
        match shape {
            0..=9 => {}
            10 => order.time_in_force = TimeInForce::Ioc,
            11 | 12 => order.time_in_force = TimeInForce::Fok,
            13 => (order.kind, order.time_in_force) = (OrderKind::Market, TimeInForce::Ioc),
            14 => order.kind = OrderKind::Market,
            15..=18 => order.display = self.lots(scale),
            19 | 20 => order.trigger = Some(self.price(scale)),
            21 => (order.kind, order.trigger) = (OrderKind::Market, Some(self.price(scale))),
            22 | 23 => order.kind = OrderKind::Pegged { to: Peg::Best, limit },
            24 | 25 => order.kind = OrderKind::Pegged { to: Peg::Mid, limit },
            26 => order.post_only = true,
            27 => order.minimum = self.lots(scale),
            28 => (order.minimum, order.time_in_force) = (self.lots(scale), TimeInForce::Ioc),
            29 => self.for_a_call(order, TimeInForce::AtOpen),
            30 => self.for_a_call(order, TimeInForce::AtClose),
            _ => {
                let wishes = self.bytes.next();
                order.post_only = wishes & 1 == 1;
                order.minimum = if wishes & 2 == 2 { self.lots(scale) } else { Quantity::ZERO };
                order.display = if wishes & 4 == 4 { self.lots(scale) } else { Quantity::ZERO };
                order.trigger = if wishes & 8 == 8 { Some(self.price(scale)) } else { None };
                let kinds = [order.kind, OrderKind::Market, OrderKind::Pegged { to: Peg::Mid, limit }];
                order.kind = kinds[usize::from(wishes >> 4) % 3];
                order.time_in_force = self.stay();
            }
        }
    }

    fn for_a_call(&mut self, order: &mut NewOrder, stay: TimeInForce) {
        order.time_in_force = stay;
        if self.bytes.below(3) == 0 {
            order.kind = OrderKind::Market;
        }
    }

    fn until(&mut self) -> TimeInForce {
        let byte = self.bytes.next();
        let away = SECOND * u64::from(byte & 63);
        let until = if byte == 255 { Timestamp::NEVER } else { Timestamp(self.clock + away) };
        TimeInForce::Gtd { until }
    }

    fn stay(&mut self) -> TimeInForce {
        use TimeInForce::{AtClose, AtOpen, Day, Fok, Gtc, Ioc};
        let until = self.until();
        self.bytes.pick(&[Day, Gtc, until, Ioc, Fok, AtOpen, AtClose])
    }

    /// Mostly one or two fields of an order that was entered lately.
    fn amend(&mut self) -> (Command, InstrumentId, Option<MemberId>) {
        let entered = self.target();
        let scale = self.scale(entered.instrument);
        let fields = self.bytes.next();
        let mut amendment = Amendment::new(entered.order, entered.price, entered.total);
        if fields & 1 == 1 {
            amendment.price = self.price(scale);
        }
        match fields >> 1 & 3 {
            0 => {}
            1 => amendment.quantity = Quantity(entered.total.0.saturating_sub(scale.lot)),
            2 => amendment.quantity = Quantity(entered.total.0.saturating_add(scale.lot)),
            _ => amendment.quantity = self.quantity(scale),
        }
        amendment.reduces = fields >> 1 & 7 == 7;
        if fields >> 3 & 3 == 3 {
            amendment.display = Some(self.lots(scale));
        }
        if fields >> 5 & 3 == 3 {
            amendment.trigger = Some(self.price(scale));
        }
        if fields >> 6 == 2 {
            amendment.time_in_force = Some(self.stay());
        }
        (Command::Amend(amendment), entered.instrument, Some(entered.member))
    }

    /// Mostly on to where orders can trade.
    fn phase(&mut self) -> Phase {
        use Phase::{Closed, ClosingCall, Continuous, Halted, OpeningCall, PostClose, VolatilityCall};
        let day = [OpeningCall, Continuous, ClosingCall, PostClose, Closed, Halted, VolatilityCall];
        match self.bytes.next() {
            byte if byte < 96 => Continuous,
            byte => day[usize::from(byte) % day.len()],
        }
    }

    fn bust(&mut self) -> Command {
        let which = self.bytes.next();
        Command::Bust(BustedTrade {
            position: Position(u64::from(which & 3)),
            index: u16::from(which >> 2 & 1),
            resting: OrderId(RequestId::new(GatewayId(1), 1)),
            incoming: OrderId(RequestId::new(GatewayId(1), 2)),
            price: Price(100_000),
            quantity: Quantity(10),
            resting_side: Side::Sell,
            resting_owner: (MemberId(1), ClientOrderId(11)),
            incoming_owner: (MemberId(2), ClientOrderId(21)),
        })
    }

    fn rule(&mut self, scale: Scale) -> Rule {
        match self.bytes.below(19) {
            0 => Rule::PriceRange { min: self.price(scale), max: self.price(scale) },
            1 => Rule::Tick { from: self.price(scale), tick: Price(self.bytes.pick(&[0, 1, 50, 100, 200])) },
            2 => Rule::Lot(Quantity(self.bytes.pick(&[0, 1, 10]))),
            3 => Rule::QuantityMax(Quantity(self.bytes.pick(&[0, 50, 1_000]))),
            4 => Rule::ValueMax(self.bytes.pick(&[0, 500_000, 4_000_000])),
            5 => Rule::OrdersMax(self.bytes.pick(&[0, 4, 30, 100])),
            6..=8 => Rule::StepMax(self.bytes.pick(&[4_096, 0, 1, 2, 3, 5, 8, 20, 4_097])),
            9 => Rule::StaticBand(band(&mut self.bytes, &[0, 20, 60, 10_001])),
            10 => Rule::DynamicBand(band(&mut self.bytes, &[0, 20, 60])),
            11 => Rule::Call { ns: self.bytes.pick(&[0, 1, 30]) * SECOND },
            12 | 13 => Rule::Schedule {
                at_ns: self.bytes.below(90) * 1_000 * SECOND,
                phase: if self.bytes.below(3) == 0 { None } else { Some(self.bytes.pick(&Phase::ALL)) },
            },
            14 => Rule::Extension {
                ns: self.bytes.pick(&[0, 1, 30]) * SECOND,
                max: self.bytes.pick(&[0, 1, 2]),
                market: self.bytes.below(2) == 0,
            },
            15 => Rule::AuctionMin(Quantity(self.bytes.pick(&[0, 20, 50]))),
            16 => match self.bytes.below(6) {
                0 => Rule::TieBreak(self.bytes.pick(&[TieBreak::Latest, TieBreak::NearestLimit])),
                1 => Rule::PressureLimit(self.bytes.pick(&[0, 10, 10_001])),
                3 => Rule::IcebergRefill { fresh: self.bytes.below(2) == 0 },
                4 => Rule::MarketRemainder { rests: self.bytes.below(2) == 0 },
                2 => Rule::RandomEnd { ns: self.bytes.pick(&[0, 10, 40]) * SECOND },
                _ => Rule::DisplayDecrease { keeps: self.bytes.below(2) == 0 },
            },
            _ => Rule::Reference(self.price(scale)),
        }
    }
}
