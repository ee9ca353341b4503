//! Random requests over everything a book can do, the same in every run with one seed.
//!
//! Prices are few and close together and quantities small, so that orders meet; targets are mostly orders
//! that are there, so that amends and cancels find them.

use pares_book::{Book, Instrument, TickTable, Timetable, TimetableRow};
use pares_types::{
    Amendment, Band, BusinessDay, BustedTrade, ClientOrderId, Command, GatewayId, Guarded, MemberId,
    NewOrder, OrderId, OrderKind, Peg, Phase, Position, Price, Quantity, Request, RequestId, Rule, SelfTrade,
    ShardId, Side, Symbol, TieBreak, TimeInForce, Timestamp,
};

/// Knuth's 64-bit linear congruential generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x243f_6a88_85a3_08d3);
        random.below(2);
        random
    }

    /// A number from zero up to `bound`, without it.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

const SECOND: u64 = 1_000_000_000;

/// A source of requests for one book.
pub(crate) struct Flow {
    pub(crate) random: Random,
    sequence: u64,
    /// When the next request is stamped.
    clock: u64,
    /// Orders entered lately, there or not.
    recent: Vec<OrderId>,
    /// Few members meet themselves often.
    members: u64,
    /// Of twelve orders so many are icebergs; the others are of all kinds.
    icebergs: u64,
}

/// An instrument that makes everything happen often: a few prices, small steps, bands, a day of minutes.
pub(crate) fn instrument(random: &mut Random) -> Instrument {
    let mut rules = crate::checked::instrument(random.pick(&[5, 40, 1_000, 1_000]));
    rules.lot = Quantity(random.pick(&[1, 10]));
    rules.quantity_max = Quantity(10_000);
    rules.step_max = random.pick(&[1, 2, 3, 4, 5, 7, 12, 40, 40, 4_096, 4_096, 4_096]);
    if random.one_in(3) {
        let rows = [(10_000, 50), (100_400, 100), (100_800, 200)];
        let rows = rows.map(|(from, tick)| pares_book::TickRow { from: Price(from), tick: Price(tick) });
        rules.ticks = TickTable::from_rows(&rows).unwrap();
    }
    if random.one_in(6) {
        // The middle of two prices may lie between two price units.
        rules.ticks = TickTable::flat(Price(1));
    }
    if random.one_in(8) {
        // Around zero, as spreads are.
        rules.price_min = Price(-100_000);
        rules.ticks = TickTable::flat(Price(100));
    }
    if random.one_in(3) {
        rules.static_band = band(random, &[20, 50, 80]);
    }
    if random.one_in(3) {
        rules.dynamic_band = band(random, &[10, 30, 60]);
    }
    if random.one_in(2) {
        rules.extension_ns = random.pick(&[1, 10, 60]) * SECOND;
        rules.extensions_max = random.below(3) as u8;
        rules.extends_for_market = random.one_in(2);
    }
    if random.one_in(2) {
        rules.tie_break = TieBreak::NearestLimit;
        rules.pressure_limit = random.pick(&[0, 10, 30]);
        rules.display_decrease_keeps = random.one_in(2);
        rules.iceberg_refill_fresh = random.one_in(2);
        rules.market_remainder_rests = random.one_in(2);
    }
    if random.one_in(3) {
        rules.random_end_ns = random.pick(&[1, 10, 90]) * SECOND;
    }
    if random.one_in(4) {
        rules.auction_min = Quantity(random.below(5) * 10);
    }
    if random.one_in(2) {
        rules.call_ns = random.pick(&[1, 20, 60]) * SECOND;
    }
    if random.one_in(6) {
        rules.value_max = 30_000_000;
    }
    if random.one_in(2) {
        rules.timetable = timetable(random);
    }
    Instrument::new(rules).unwrap()
}

/// Sometimes in price units, or in both.
fn band(random: &mut Random, widths: &[u32]) -> Band {
    let least = if random.one_in(3) { Price(random.below(800) as i64) } else { Price(0) };
    let width = if least > Price(0) && random.one_in(2) { 0 } else { random.pick(widths) };
    Band { width, least }
}

fn timetable(random: &mut Random) -> Timetable {
    let phases = [Phase::OpeningCall, Phase::Continuous, Phase::ClosingCall, Phase::PostClose, Phase::Closed];
    let mut at_ns = random.below(100) * SECOND;
    let mut rows = Vec::new();
    for round in 0..random.below(2) + 1 {
        for phase in phases {
            at_ns += (1 + random.below(300 + 2_000 * round)) * SECOND;
            if !random.one_in(6) {
                rows.push(TimetableRow { at_ns, phase });
            }
        }
    }
    Timetable::from_rows(&rows).unwrap_or(Timetable::EMPTY)
}

impl Flow {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let clock = random.pick(&[0, 40_000, 250_000, 300_000]) * SECOND;
        let (members, icebergs) = (random.pick(&[2, 4, 9]), random.pick(&[0, 0, 0, 6]));
        Self { random, sequence: 0, clock, recent: Vec::new(), members, icebergs }
    }

    /// The next request for `book`.
    pub(crate) fn next(&mut self, book: &impl Book) -> Request {
        self.sequence += 1;
        self.clock += match self.random.below(400) {
            0 => 3_000 * SECOND,
            1..=9 => self.random.below(600) * SECOND,
            10..=100 => self.random.below(5) * SECOND,
            _ => 0,
        };
        let id = RequestId::new(GatewayId(1), self.sequence);
        let command = self.command(book);
        let member = self.member(&command, book);
        if matches!(command, Command::Enter(_)) {
            self.recent.push(OrderId(id));
        }
        Request {
            id,
            stamp: Timestamp(self.stamp(&command, book)),
            member,
            client_order_id: self.name(),
            instrument: book.instrument().id,
            shard: ShardId(0),
            command,
        }
    }

    /// One in three is guarded, by one of two sessions.
    fn name(&mut self) -> ClientOrderId {
        let number = self.sequence % 97;
        if self.random.one_in(3) {
            ClientOrderId::guarded(self.random.below(2) as u16, number)
        } else {
            ClientOrderId(number)
        }
    }

    /// Gateways' clocks differ a little; a time request often comes just when something is due.
    fn stamp(&mut self, command: &Command, book: &impl Book) -> u64 {
        if matches!(command, Command::Time { .. }) {
            let due = book.deadline();
            let soon = due != Timestamp::NEVER && due.0 < self.clock + 2_000 * SECOND;
            if soon && self.random.one_in(2) {
                self.clock = self.clock.max(due.0);
            }
        }
        self.clock.saturating_sub(self.random.below(20) * self.random.below(20) * SECOND / 20)
    }

    fn member(&mut self, command: &Command, book: &impl Book) -> MemberId {
        let any = MemberId(1 + self.random.below(self.members) as u32);
        let owner = match command {
            Command::Amend(Amendment { target, .. }) | Command::Cancel { target } => book.order(*target),
            Command::Enter(_) | Command::MassCancel { .. } => None,
            _ => return if self.random.one_in(30) { any } else { MemberId(0) },
        };
        match owner {
            Some(order) if !self.random.one_in(30) => order.member,
            _ => any,
        }
    }

    fn command(&mut self, book: &impl Book) -> Command {
        // Where nothing trades nearly everything is refused: on to somewhere else soon.
        let rests = matches!(book.trading().phase, Phase::Closed | Phase::Halted);
        if rests && self.random.one_in(2) {
            return Command::SetPhase(self.phase(book));
        }
        if book.orders_len() == 0 && !rests && self.random.one_in(2) {
            return Command::Enter(self.order(book));
        }
        match self.random.below(1_000) {
            0..=549 => Command::Enter(self.order(book)),
            550..=709 => self.amend(book),
            710..=829 => Command::Cancel { target: self.target(book) },
            830..=949 => Command::Time { draw: self.random.below(1 << 31) << 33 },
            950..=964 => Command::SetPhase(self.phase(book)),
            965..=981 => Command::SetRule(self.rule(book)),
            982 => Command::CancelGuarded(Guarded {
                member: MemberId(1 + self.random.below(4) as u32),
                session: self.random.below(2) as u16,
                last: RequestId::new(GatewayId(1), 1 + self.random.below(self.sequence)),
            }),
            983..=990 => {
                Command::MassCancel { side: self.random.pick(&[None, Some(Side::Buy), Some(Side::Sell)]) }
            }
            991..=992 => Command::Block { member: MemberId(1 + self.random.below(4) as u32) },
            993..=994 => self.bust(),
            995 => Command::Unblock { member: MemberId(1) },
            996 => Command::AddInstrument(Symbol::new("NEW").unwrap()),
            997 => Command::RemoveInstrument,
            998 if self.random.one_in(2) => Command::EndDay { day: BusinessDay(7) },
            998 => Command::BeginDay { day: BusinessDay(7) },
            _ => Command::Amend(Amendment::new(self.target(book), Price(100_000), Quantity(10))),
        }
    }

    /// Mostly on to where orders can trade.
    fn phase(&mut self, book: &impl Book) -> Phase {
        match book.trading().phase {
            Phase::Closed | Phase::Halted | Phase::OpeningCall if self.random.one_in(2) => Phase::Continuous,
            Phase::ClosingCall if self.random.one_in(2) => Phase::PostClose,
            _ => self.random.pick(&Phase::ALL),
        }
    }

    fn bust(&mut self) -> Command {
        let trade = BustedTrade {
            position: Position(self.random.below(4)),
            index: self.random.below(2) as u16,
            resting: OrderId(RequestId::new(GatewayId(1), 1)),
            incoming: OrderId(RequestId::new(GatewayId(1), 2)),
            price: Price(100_000),
            quantity: Quantity(10),
            resting_side: Side::Sell,
            resting_owner: (MemberId(1), ClientOrderId(11)),
            incoming_owner: (MemberId(2), ClientOrderId(21)),
        };
        Command::Bust(trade)
    }

    fn target(&mut self, book: &impl Book) -> OrderId {
        if self.random.one_in(16) && !self.recent.is_empty() {
            return self.random.pick(&self.recent);
        }
        let mut orders = Vec::new();
        for side in [Side::Buy, Side::Sell] {
            book.for_each_order(side, &mut |order| orders.push(order.order));
        }
        book.for_each_held(&mut |order| orders.push(order.order));
        if orders.is_empty() { OrderId(RequestId::new(GatewayId(7), 1)) } else { self.random.pick(&orders) }
    }

    /// Mostly a legal one, and after the close the one that is.
    fn price(&mut self, book: &impl Book) -> Price {
        let price = self.any_price(book);
        if self.random.one_in(24) {
            return price;
        }
        let (rules, trading) = (book.instrument(), book.trading());
        match trading.closing.filter(|_| trading.phase == Phase::PostClose) {
            Some(closing) => closing,
            None => rules.ticks.round_down(price.clamp(rules.price_min, rules.price_max)),
        }
    }

    /// Twelve prices around ten; in a book that goes below zero sometimes around zero.
    fn any_price(&mut self, book: &impl Book) -> Price {
        let around = if book.instrument().price_min.0 < 0 && self.random.one_in(2) { 0 } else { 100_000 };
        match self.random.below(40) {
            0 => Price(around + self.random.below(2_000) as i64),
            1 => self.random.pick(&[book.instrument().price_min, book.instrument().price_max]),
            2 => self.random.pick(&[Price(i64::MIN), Price(i64::MAX), Price(0)]),
            3..=8 => book.trading().closing.or(book.trading().last).unwrap_or(Price(around)),
            _ if book.instrument().ticks.grid() == Price(1) => Price(around + self.random.below(12) as i64),
            _ => Price(around + (self.random.below(12) * 100) as i64),
        }
    }

    fn quantity(&mut self, book: &impl Book) -> Quantity {
        let (lot, max) = (book.instrument().lot.0, book.instrument().quantity_max);
        if !self.random.one_in(40) {
            return Quantity((1 + self.random.below(9)) * lot).min(max);
        }
        if self.random.one_in(6) {
            return self.random.pick(&[Quantity(0), Quantity(15), Quantity(10_010), Quantity(u64::MAX)]);
        }
        Quantity((1 + self.random.below(100)) * lot)
    }

    fn until(&mut self, book_time: Timestamp) -> TimeInForce {
        let away = self.random.below(120) * SECOND;
        let until = match self.random.below(20) {
            0 => Timestamp::NEVER,
            1 => Timestamp(self.clock.max(book_time.0)),
            _ => Timestamp(self.clock + away),
        };
        TimeInForce::Gtd { until }
    }

    fn side(&mut self) -> Side {
        self.random.pick(&[Side::Buy, Side::Sell])
    }

    fn order(&mut self, book: &impl Book) -> NewOrder {
        let side = self.side();
        let mut order = NewOrder::limit(side, self.price(book), self.quantity(book));
        order.self_trade = self.self_trade();
        if self.random.below(12) < self.icebergs {
            order.display = self.display(&order, book);
            return order;
        }
        match self.random.below(100) {
            0..=34 => {}
            35..=44 => self.at_once(&mut order),
            45..=57 => order.display = self.display(&order, book),
            58..=67 => order.trigger = Some(self.price(book)),
            68..=72 => (order.kind, order.trigger) = (OrderKind::Market, Some(self.price(book))),
            73..=84 => {
                let to = self.random.pick(&[Peg::Best, Peg::Mid]);
                order.kind = OrderKind::Pegged { to, limit: self.price(book) };
            }
            85..=88 => order.post_only = true,
            89..=92 => order.minimum = self.quantity(book),
            93..=94 => order.kind = OrderKind::Market,
            95..=97 => order = self.for_a_call(order),
            _ => order = self.anything(order, book),
        }
        if order.time_in_force == TimeInForce::Day {
            order.time_in_force = match self.random.below(6) {
                0 => TimeInForce::Gtc,
                1 => self.until(book.trading().time),
                _ => TimeInForce::Day,
            };
        }
        order
    }

    fn self_trade(&mut self) -> SelfTrade {
        use SelfTrade::{Allow, CancelBoth, CancelIncoming, CancelResting, Decrement};
        self.random.pick(&[Allow, Allow, Allow, CancelBoth, CancelIncoming, CancelResting, Decrement])
    }

    fn at_once(&mut self, order: &mut NewOrder) {
        order.time_in_force = self.random.pick(&[TimeInForce::Ioc, TimeInForce::Fok, TimeInForce::Fok]);
        if self.random.one_in(3) {
            order.kind = OrderKind::Market;
        }
    }

    fn for_a_call(&mut self, mut order: NewOrder) -> NewOrder {
        order.time_in_force = self.random.pick(&[TimeInForce::AtOpen, TimeInForce::AtClose]);
        if self.random.one_in(3) {
            order.kind = OrderKind::Market;
        }
        order
    }

    /// Mostly a legal one.
    fn display(&mut self, order: &NewOrder, book: &impl Book) -> Quantity {
        let lots = order.quantity.0.min(100_000) / book.instrument().lot.0;
        Quantity(self.random.below(lots.clamp(1, 5)) * book.instrument().lot.0)
    }

    /// Wishes that may contradict each other.
    fn anything(&mut self, mut order: NewOrder, book: &impl Book) -> NewOrder {
        order.post_only = self.random.one_in(2);
        order.minimum = if self.random.one_in(2) { self.quantity(book) } else { Quantity::ZERO };
        order.display = if self.random.one_in(2) { self.quantity(book) } else { Quantity::ZERO };
        order.trigger = if self.random.one_in(2) { Some(self.price(book)) } else { None };
        order.time_in_force = self.stay(book.trading().time);
        order
    }

    fn stay(&mut self, book_time: Timestamp) -> TimeInForce {
        use TimeInForce::{AtClose, AtOpen, Day, Fok, Gtc, Ioc};
        let until = self.until(book_time);
        self.random.pick(&[Day, Gtc, until, until, Ioc, Fok, AtOpen, AtClose])
    }

    /// Mostly one or two fields of an order that is there.
    fn amend(&mut self, book: &impl Book) -> Command {
        let target = self.target(book);
        let mut amendment = Amendment::new(target, self.price(book), self.quantity(book));
        if let Some(order) = book.order(target) {
            let total = order.executed.0 + order.remaining.0;
            amendment.quantity = match self.random.below(5) {
                0 | 1 => Quantity(total),
                2 => Quantity(order.executed.0 + self.quantity(book).0.min(50)),
                3 => Quantity(
                    total.saturating_sub(self.quantity(book).0.min(total)).max(book.instrument().lot.0),
                ),
                _ => amendment.quantity,
            };
            if let (OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. }, true) =
                (order.kind, self.random.one_in(2))
            {
                amendment.price = price;
            }
            if order.trigger.is_some() && self.random.one_in(2) {
                amendment.trigger = Some(self.price(book));
            }
        }
        if self.random.one_in(5) {
            amendment.display = Some(Quantity(self.random.below(4) * book.instrument().lot.0));
        }
        if self.random.one_in(40) {
            amendment.trigger = Some(self.price(book));
        }
        if self.random.one_in(6) {
            amendment.time_in_force = Some(self.stay(book.trading().time));
        }
        Command::Amend(amendment)
    }

    fn rule(&mut self, book: &impl Book) -> Rule {
        match self.random.below(26) {
            0 => Rule::PriceRange { min: self.price(book), max: self.price(book) },
            1 => Rule::Tick { from: self.price(book), tick: Price(self.random.pick(&[0, 50, 100, 200])) },
            2 => Rule::Lot(Quantity(self.random.pick(&[0, 1, 10]))),
            3 => Rule::QuantityMax(Quantity(self.random.pick(&[0, 50, 10_000]))),
            4 => Rule::ValueMax(self.random.pick(&[0, 5_000_000, 50_000_000])),
            5 => Rule::OrdersMax(self.random.pick(&[0, 4, 30, 1_000])),
            6..=8 => Rule::StepMax(self.random.pick(&[0, 1, 2, 3, 5, 8, 20, 4_096, 4_096, 4_097])),
            9 => Rule::StaticBand(band(&mut self.random, &[0, 20, 60, 10_001])),
            10 => Rule::DynamicBand(band(&mut self.random, &[0, 20, 60])),
            11 => Rule::CallTime { ns: self.random.pick(&[0, 1, 30]) * SECOND },
            12 | 13 => self.schedule(),
            14 | 15 => Rule::Extension {
                ns: self.random.pick(&[0, 1, 30]) * SECOND,
                max: self.random.below(3) as u8,
                market: self.random.one_in(2),
            },
            16 => Rule::AuctionMin(Quantity(self.random.below(6) * 10)),
            17 => Rule::TieBreak(self.random.pick(&[TieBreak::Latest, TieBreak::NearestLimit])),
            18 => Rule::PressureLimit(self.random.pick(&[0, 10, 10_001])),
            22 => Rule::RandomEnd { ns: self.random.pick(&[0, 1, 30]) * SECOND },
            23 => Rule::IcebergRefill { fresh: self.random.one_in(2) },
            24 => Rule::MarketRemainder { rests: self.random.one_in(2) },
            19 => Rule::DisplayDecrease { keeps: self.random.one_in(2) },
            _ => Rule::Reference(self.price(book)),
        }
    }

    fn schedule(&mut self) -> Rule {
        let at_ns = self.random.below(90) * 1_000 * SECOND;
        let phase = if self.random.one_in(3) { None } else { Some(self.random.pick(&Phase::ALL)) };
        Rule::Schedule { at_ns, phase }
    }
}
