//! A member's client: asks, repeats what is not answered, and remembers what it received.

use std::collections::{BTreeMap, BTreeSet};

use pares_flow::Random;
use pares_gateway::{Answer, ClientRequest};
use pares_types::{
    Band, BusinessDay, BustedTrade, ClientOrderId, Command, GatewayId, InstrumentId, MemberId, NewOrder,
    NewTerms, OrderId, OrderKind, Peg, Phase, Position, Price, Quantity, RequestId, Rule, SelfTrade, Side,
    Symbol, TimeInForce, Timestamp,
};

use crate::world::revocations::{self, SESSION};

/// The exchange itself: a client like the others, but for what it asks.
pub(crate) const EXCHANGE: MemberId = MemberId(0);
/// All instruments of all shards.
pub(crate) const EVERYWHERE: InstrumentId = InstrumentId(0);
/// The price around which orders come in.
const MIDDLE: u64 = 500_000;

/// A request that is not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) request: ClientRequest,
    pub(crate) first_sent_ns: u64,
    /// When it was asked, or asked again after it was refused.
    pub(crate) asked_ns: u64,
    pub(crate) retry_at_ns: u64,
    /// Something happened to it for which no time is promised: rejected, or its connection broke.
    pub(crate) spoilt: bool,
}

impl Open {
    fn new(request: ClientRequest, now_ns: u64) -> Self {
        let (first_sent_ns, asked_ns, retry_at_ns) = (now_ns, now_ns, now_ns);
        Self { request, first_sent_ns, asked_ns, retry_at_ns, spoilt: false }
    }
}

pub(crate) struct Client {
    pub(crate) member: MemberId,
    random: Random,
    pub(crate) left: u64,
    names: u64,
    /// Whether some of its names are of its session's guarded series.
    guards: bool,
    /// Members whose keys it changes; 0 if keys are not asked for.
    keyed: u32,
    /// Before that it does not sign on.
    pub(crate) sign_on_at_ns: u64,
    pub(crate) open: BTreeMap<u64, Open>,
    /// Names under which orders were entered.
    pub(crate) entered: Vec<u64>,
    /// Of the exchange: the business day it began last, and how many requests it has made to pass on to the next.
    day: (u32, u32),
    pub(crate) answers: BTreeMap<u64, Answer>,
    /// Its orders, and changes of them, answered until members stopped asking.
    pub(crate) orders_answered: u64,
    /// Names whose request no gateway takes.
    pub(crate) abandoned: BTreeSet<u64>,
    /// Names answered for the first time, by session.
    pub(crate) first_answers: BTreeSet<(usize, u64)>,
    /// By gateway.
    pub(crate) connections: Vec<Option<usize>>,
    pub(crate) home: usize,
    /// By shard, the number of the next message of its stream that it lacks.
    pub(crate) stream: Vec<u64>,
}

impl Client {
    /// An operator has names of the series of its session.
    pub(crate) fn with_keys_of(self, members: u32) -> Self {
        Self { keyed: members, names: u64::from(SESSION) << 48, ..self }
    }

    /// Half of a member's orders die with its session.
    pub(crate) fn guarding(self, guards: bool) -> Self {
        Self { guards: guards && self.member != EXCHANGE, ..self }
    }

    pub(crate) fn new(member: MemberId, requests: u64, gateways: usize, mut random: Random) -> Self {
        Self {
            member,
            home: random.index(gateways),
            random,
            left: requests,
            names: 0,
            guards: false,
            keyed: 0,
            sign_on_at_ns: 0,
            open: BTreeMap::new(),
            entered: Vec::new(),
            day: (0, 0),
            answers: BTreeMap::new(),
            orders_answered: 0,
            abandoned: BTreeSet::new(),
            first_answers: BTreeSet::new(),
            connections: vec![None; gateways],
            stream: Vec::new(),
        }
    }

    /// Thinks of something new to ask; returns its name.
    pub(crate) fn invent(&mut self, instruments: u32, now_ns: u64) -> u64 {
        self.names += 1;
        self.left -= 1;
        let guards = self.guards && self.random.chance(500);
        let client_order_id =
            if guards { ClientOrderId::guarded(SESSION, self.names) } else { ClientOrderId(self.names) };
        // Those behind the configured ones come and go.
        let behind = if self.random.chance(100) || self.member == EXCHANGE { 2 } else { 0 };
        let instrument = InstrumentId(1 + self.random.below(u64::from(instruments) + behind) as u32);
        let request = match self.member {
            EXCHANGE => self.rule(client_order_id, instrument),
            _ => self.trade(client_order_id, instrument, now_ns),
        };
        if matches!(request, ClientRequest::Enter { instrument, .. } if instrument.0 <= instruments + 2) {
            self.entered.push(client_order_id.0);
        }
        self.open.insert(client_order_id.0, Open::new(request, now_ns));
        client_order_id.0
    }

    /// Asks that a member participate, or the next time that it have its key; returns the request's name. The request that the member
    /// participate may have come so late that it was refused as too old.
    pub(crate) fn ask_for_key(&mut self, member: MemberId, now_ns: u64) -> u64 {
        self.ask_of_register(revocations::let_in(self.names % 2 == 1, member), now_ns)
    }

    /// Asks for that change of the register; returns the request's name.
    pub(crate) fn ask_of_register(&mut self, command: Command, now_ns: u64) -> u64 {
        self.names += 1;
        let (client_order_id, instrument) = (ClientOrderId(self.names), EVERYWHERE);
        let request = ClientRequest::Exchange { client_order_id, instrument, command };
        self.open.insert(self.names, Open::new(request, now_ns));
        self.names
    }

    fn trade(&mut self, name: ClientOrderId, instrument: InstrumentId, now_ns: u64) -> ClientRequest {
        let client_order_id = name;
        let target = match self.entered.len() {
            0 => None,
            known => Some(ClientOrderId(self.entered[known - 1 - self.random.index(known.min(12))])),
        };
        let side = [None, Some(Side::Buy), Some(Side::Sell)][self.random.index(3)];
        match (self.random.below(200), target) {
            (0..=27, Some(target)) => {
                ClientRequest::Amend { client_order_id, target, terms: self.terms(now_ns) }
            }
            (28..=67, Some(target)) => ClientRequest::Cancel { client_order_id, target },
            (68..=71, _) => ClientRequest::MassCancel { client_order_id, instrument, side },
            (72..=75, _) => ClientRequest::MassCancel { client_order_id, instrument: EVERYWHERE, side },
            (76, _) if self.random.chance(300) => ClientRequest::Exchange {
                client_order_id,
                instrument: EVERYWHERE,
                command: Command::Block { member: self.member },
            },
            (77, _) => {
                let order = self.order(now_ns);
                ClientRequest::Enter { client_order_id, instrument: InstrumentId(9_999), order }
            }
            _ => ClientRequest::Enter { client_order_id, instrument, order: self.order(now_ns) },
        }
    }

    /// What the exchange asks: phases, rules, the kill switch; now and then what cannot be.
    fn rule(&mut self, client_order_id: ClientOrderId, instrument: InstrumentId) -> ClientRequest {
        // Members first, then their keys, and then among all else.
        let asked = client_order_id.number();
        if asked <= 2 * u64::from(self.keyed) || self.keyed > 0 && self.random.chance(400) {
            let entered = asked <= u64::from(self.keyed);
            let nth = if asked <= 2 * u64::from(self.keyed) { asked - 1 } else { self.random.next_u64() };
            let member = MemberId(1 + (nth % u64::from(self.keyed)) as u32);
            let dice = if entered { 3 } else { self.random.next_u64() };
            let (instrument, command) = (EVERYWHERE, revocations::change(dice, member));
            return ClientRequest::Exchange { client_order_id, instrument, command };
        }
        let member = MemberId(1 + self.random.below(4) as u32);
        let command = match self.random.below(100) {
            _ if self.day.1 > 0 => self.pass_day(),
            0..=34 => Command::SetPhase(Phase::Continuous),
            35..=49 => Command::SetPhase(Phase::ALL[self.random.index(Phase::ALL.len())]),
            50..=54 => Command::SetRule(Rule::StepMax(self.random.between(1, 6) as u32)),
            55..=59 => Command::SetRule(Rule::DynamicBand(Band::of(self.random.below(20) as u32))),
            60..=64 => Command::SetRule(Rule::StaticBand(Band::of(self.random.below(20) as u32))),
            65..=69 => Command::SetRule(Rule::Call { ns: self.random.below(4) * 1_000_000 }),
            70..=74 => Command::SetRule(Rule::Reference(self.price())),
            75..=77 => Command::SetRule(Rule::Lot(Quantity(self.random.between(1, 2)))),
            78 => Command::RemoveInstrument,
            79..=81 => Command::AddInstrument(Symbol::new("NEW").expect("a legal symbol")),
            82..=83 => Command::Bust(self.bust()),
            84..=86 => Command::Block { member },
            87..=89 => self.pass_day(),
            _ => Command::Unblock { member },
        };
        let everywhere = matches!(
            command,
            Command::Block { .. }
                | Command::Unblock { .. }
                | Command::BeginDay { .. }
                | Command::EndDay { .. }
        );
        let instrument = if everywhere { EVERYWHERE } else { instrument };
        ClientRequest::Exchange { client_order_id, instrument, command }
    }

    /// On to the next business day: an end, and more than one begin, since the first may overtake the end.
    fn pass_day(&mut self) -> Command {
        let (day, asked) = self.day;
        self.day = if asked == 3 { (day + 1, 0) } else { (day, asked + 1) };
        match (asked, day) {
            (0, 1..) => Command::EndDay { day: BusinessDay(day) },
            _ => Command::BeginDay { day: BusinessDay(day + 1) },
        }
    }

    /// A trade nobody made, as far as this client knows: venues do not look it up.
    fn bust(&mut self) -> BustedTrade {
        let order = OrderId(RequestId::new(GatewayId(0), 1));
        BustedTrade {
            position: Position(self.random.below(4)),
            index: 0,
            resting: order,
            incoming: order,
            price: self.price(),
            quantity: Quantity(1),
            resting_side: Side::Sell,
            resting_owner: (MemberId(1), ClientOrderId(11)),
            incoming_owner: (MemberId(2), ClientOrderId(21)),
        }
    }

    fn terms(&mut self, now_ns: u64) -> NewTerms {
        let plain = NewTerms::new(self.price(), Quantity(self.random.between(1, 30)));
        match self.random.below(10) {
            0 => NewTerms { display: Some(Quantity(self.random.below(6))), ..plain },
            1 => NewTerms { trigger: Some(self.price()), ..plain },
            2 => NewTerms { time_in_force: Some(self.stay(now_ns)), ..plain },
            3 => NewTerms::reduction(plain.quantity),
            _ => plain,
        }
    }

    fn order(&mut self, now_ns: u64) -> NewOrder {
        let side = if self.random.chance(500) { Side::Buy } else { Side::Sell };
        // Now and then nothing at all, or more than is allowed.
        let quantity = Quantity(if self.random.chance(20) {
            1_000 * self.random.below(3)
        } else {
            self.random.between(1, 20)
        });
        let limit = NewOrder::limit(side, self.price(), quantity);
        let market = NewOrder::market(side, quantity);
        let few = Quantity(self.random.between(1, 6));
        let order = match self.random.below(100) {
            0..=6 => NewOrder { time_in_force: TimeInForce::Ioc, ..limit },
            7..=9 => NewOrder { time_in_force: TimeInForce::Ioc, minimum: few, ..limit },
            10..=13 => NewOrder { time_in_force: TimeInForce::Fok, ..limit },
            14..=17 => market,
            18..=22 => NewOrder { post_only: true, ..limit },
            23 => NewOrder { post_only: true, ..market },
            24..=31 => NewOrder { display: few, ..limit },
            32..=36 => NewOrder { trigger: Some(self.price()), ..limit },
            37..=39 => NewOrder { trigger: Some(self.price()), time_in_force: TimeInForce::Day, ..market },
            40..=44 => NewOrder { kind: OrderKind::Pegged { to: Peg::Best, limit: self.price() }, ..limit },
            45..=49 => NewOrder { kind: OrderKind::Pegged { to: Peg::Mid, limit: self.price() }, ..limit },
            50..=51 => NewOrder { time_in_force: TimeInForce::AtOpen, ..limit },
            52..=53 => NewOrder { time_in_force: TimeInForce::AtClose, ..market },
            54..=59 => NewOrder { time_in_force: self.stay(now_ns), ..limit },
            _ => limit,
        };
        let wishes = [
            SelfTrade::CancelResting,
            SelfTrade::CancelIncoming,
            SelfTrade::CancelBoth,
            SelfTrade::Decrement,
        ];
        let self_trade =
            if self.random.chance(300) { wishes[self.random.index(4)] } else { SelfTrade::Allow };
        NewOrder { self_trade, ..order }
    }

    /// Till cancelled, or till a moment of the next few milliseconds.
    fn stay(&mut self, now_ns: u64) -> TimeInForce {
        match self.random.below(3) {
            0 => TimeInForce::Gtc,
            _ => TimeInForce::Gtd { until: Timestamp(now_ns + self.random.below(8_000_000)) },
        }
    }

    /// Around the middle, so that about every second order trades; now and then off the tick.
    fn price(&mut self) -> Price {
        let steps = self.random.below(12) as i64 - 6;
        let off = i64::from(self.random.chance(10));
        Price(MIDDLE as i64 + steps * 100 + off)
    }

    /// Whether the order that a request names will never exist.
    pub(crate) fn target_abandoned(&self, request: &ClientRequest) -> bool {
        match request {
            ClientRequest::Amend { target, .. } | ClientRequest::Cancel { target, .. } => {
                self.abandoned.contains(&target.0)
            }
            _ => false,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.open.is_empty()
    }
}
