//! Instruments as a gateway tells them, compared with real books at every step: of one that lived, and of one that starts from a checkpoint.

use pares_book::{Book, FastBook, Instrument, Listing, Market, Stage};
use pares_register::Register;
use pares_types::{
    Band, BusinessDay, ClientOrderId, Command, Event, GatewayId, InstrumentId, InstrumentStatus, List,
    ListRequest, MemberId, NewOrder, Outcome, Phase, Position, Price, Quantity, Reason, RecorderId, Request,
    RequestId, Rule, ShardId, ShardView, Side, Status, Symbol, Timestamp,
};
use proptest::prelude::*;

use super::world::{Sink, config};
use crate::{Gateway, Listed, Place, SessionId};

const SHARD: ShardId = ShardId(0);

/// A shard's books, and a gateway that follows what they do.
struct Rig {
    market: Market<FastBook>,
    gateway: Gateway,
    requests: u64,
    quarantined: Vec<InstrumentId>,
}

fn symbol(name: &str) -> Symbol {
    Symbol::new(name).expect("it is short")
}

fn gateway() -> Gateway {
    let listed =
        [(1, "ONE"), (2, "TWO")].map(|(id, name)| Instrument::listed(InstrumentId(id), symbol(name)));
    let mut gateway = Gateway::new(config(0), listed.map(|one| (one, SHARD)));
    let signed_on = gateway.on_sign_on(SessionId(1), (MemberId(7), 0), false, &mut Sink::default());
    assert_eq!(signed_on, Ok(()));
    gateway
}

impl Rig {
    fn new() -> Self {
        let listed = [(1, "ONE"), (2, "TWO")];
        let listed = listed.map(|(id, name)| Instrument::listed(InstrumentId(id), symbol(name)));
        Self { market: Market::new(&listed), gateway: gateway(), requests: 0, quarantined: Vec::new() }
    }

    fn ask(&mut self, member: u32, instrument: u32, command: Command) -> Outcome {
        self.commit(member, instrument, command, None)
    }

    /// Declared void or refused, if there is a reason.
    fn commit(&mut self, member: u32, instrument: u32, command: Command, why: Option<Reason>) -> Outcome {
        self.requests += 1;
        let request = Request {
            id: RequestId::new(GatewayId(2), self.requests),
            stamp: Timestamp(self.requests),
            member: MemberId(member),
            client_order_id: ClientOrderId(self.requests),
            instrument: InstrumentId(instrument),
            shard: SHARD,
            command,
        };
        let mut events: Vec<Event> = Vec::new();
        let outcome = match why {
            Some(reason) => super::exchange::refused(&request, reason),
            None => self.market.apply(&request, &mut events),
        };
        let (position, place) =
            (Position(self.requests - 1), Place { recorder: RecorderId(0), offset: self.requests });
        self.gateway.on_committed(position, &request, &outcome, &events, place, &mut Sink::default());
        outcome
    }

    fn listings(&self) -> Vec<Listing> {
        let of = |book: &FastBook| {
            let (instrument, trading) = (*book.instrument(), book.trading());
            Listing { instrument, phase: trading.phase, last: trading.last, reference: trading.reference }
        };
        self.market.books().iter().map(of).collect()
    }

    /// A gateway that starts now, from a checkpoint.
    fn started(&self) -> Gateway {
        let mut gateway = gateway();
        let position = Position(self.requests);
        let view = ShardView { position, quarantined: self.quarantined.clone(), ..ShardView::default() };
        gateway.recover_shard(SHARD, &view, Register::new(None), &self.listings());
        gateway
    }

    /// The list is what the books say, and a gateway that starts now sends the same.
    fn check(&self) {
        let told = list(&self.gateway, None);
        let expected = self.listings();
        assert_eq!(told.len(), expected.len());
        for ((status, ticks), listing) in told.iter().zip(&expected) {
            let Listing { instrument, phase, last, reference } = listing;
            let trading = self.market.books().iter().find(|book| book.instrument().id == instrument.id);
            let is_ending = matches!(self.market.day().stage(), Stage::Ending { .. });
            let is_between = is_ending || trading.is_some_and(|book| book.trading().transition.is_some());
            assert_eq!((status.phase, status.last), (*phase, *last), "{instrument:?}");
            assert!(is_between || status.reference == *reference, "{status:?} {reference:?}");
            assert_eq!((status.instrument, status.symbol), (instrument.id, instrument.symbol));
            let first = told.iter().find(|(one, _)| one.symbol == status.symbol);
            assert_eq!(self.gateway.instrument_of(status.symbol), first.map(|(one, _)| one.instrument));
            assert_eq!((status.price_min, status.price_max), (instrument.price_min, instrument.price_max));
            assert_eq!((status.lot, status.quantity_max), (instrument.lot, instrument.quantity_max));
            assert_eq!((status.value_max, status.call_ns), (instrument.value_max, instrument.call_ns));
            assert_eq!(
                (status.static_band, status.dynamic_band),
                (instrument.static_band.width, instrument.dynamic_band.width)
            );
            let rows: Vec<_> = instrument.ticks.rows().iter().map(|row| (row.from, row.tick)).collect();
            assert_eq!(*ticks, rows);
            if !is_between {
                assert_eq!(list(&self.started(), Some(instrument.id)), [(*status, rows)]);
            }
        }
    }
}

type Told = (InstrumentStatus, Vec<(Price, Price)>);

fn list(gateway: &Gateway, instrument: Option<InstrumentId>) -> Vec<Told> {
    let request = ListRequest { token: 0, list: List::Instruments, instrument };
    let (mut told, mut from) = (Vec::new(), Some(0));
    while let Some(place) = from {
        let next = gateway.tell_list(SessionId(1), &request, place, &mut |listed| match listed {
            Listed::Instrument(status, rows) => {
                told.push((status, rows.iter().map(|row| (row.from, row.tick)).collect()));
            }
            Listed::Order(_) => panic!("instruments were asked for"),
        });
        from = next.expect("it is signed on");
    }
    told
}

fn limit(side: Side, price: i64) -> Command {
    Command::Enter(NewOrder::limit(side, Price(price), Quantity(10)))
}

#[test]
fn the_reference_is_the_last_one_set_and_not_the_last_price() {
    let mut rig = Rig::new();
    rig.ask(0, 1, Command::SetRule(Rule::Reference(Price(20_000))));
    assert_eq!(list(&rig.gateway, None)[0].0.reference, Some(Price(20_000)));
    rig.ask(0, 1, Command::SetRule(Rule::Reference(Price(30_000))));
    rig.ask(7, 1, limit(Side::Sell, 25_000));
    rig.ask(8, 1, limit(Side::Buy, 25_000));
    let (status, _) = list(&rig.gateway, None)[0];
    assert_eq!((status.last, status.reference), (Some(Price(25_000)), Some(Price(30_000))));
    rig.check();
}

/// The auction has traded all; its sweep continues under the reference price that the exchange sets then.
#[test]
fn an_auction_that_traded_all_sets_no_price_again() {
    let mut rig = Rig::new();
    rig.ask(0, 2, Command::SetPhase(Phase::ClosingCall));
    rig.ask(0, 2, Command::SetRule(Rule::StepMax(2)));
    for (member, side) in [(7, Side::Sell), (8, Side::Sell), (9, Side::Sell), (7, Side::Buy)] {
        rig.ask(member, 2, limit(side, 100));
    }
    assert_eq!(rig.ask(0, 2, Command::SetPhase(Phase::Closed)).reason, Reason::Unfinished);
    assert_eq!(rig.listings()[1].last, Some(Price(100)));
    let asked = rig.ask(0, 2, Command::SetRule(Rule::Reference(Price(200))));
    assert_eq!(asked.status, Status::Accepted);
    assert_eq!((rig.listings()[1].last, rig.listings()[1].reference), (None, Some(Price(200))));
    rig.check();
}

#[test]
fn what_is_quarantined_is_told_until_the_exchange_asks_there() {
    let mut rig = Rig::new();
    let quarantined =
        |rig: &Rig| list(&rig.gateway, None).iter().map(|(one, _)| one.quarantined).collect::<Vec<_>>();
    assert_eq!(quarantined(&rig), [false, false]);
    rig.commit(7, 2, limit(Side::Buy, 100), Some(Reason::Void));
    rig.quarantined = vec![InstrumentId(2)];
    assert_eq!(quarantined(&rig), [false, true]);
    rig.check();
    rig.commit(0, 2, Command::SetPhase(Phase::Halted), Some(Reason::DuplicateRequest));
    assert_eq!(quarantined(&rig), [false, true], "that was an old one");
    rig.commit(0, 0, Command::TIME, Some(Reason::Void));
    assert_eq!(quarantined(&rig), [true, true]);
    rig.ask(0, 2, Command::TIME);
    rig.quarantined.clear();
    assert_eq!(quarantined(&rig), [false, false]);
    rig.check();
}

#[test]
fn instruments_come_and_go() {
    let mut rig = Rig::new();
    assert_eq!(rig.ask(0, 9, Command::AddInstrument(symbol("NINE"))).status, Status::Accepted);
    assert_eq!(rig.ask(0, 1, Command::SetPhase(Phase::Closed)).status, Status::Accepted);
    assert_eq!(rig.ask(0, 1, Command::RemoveInstrument).status, Status::Accepted);
    let told: Vec<_> =
        list(&rig.gateway, None).iter().map(|(one, _)| (one.instrument.0, one.phase)).collect();
    assert_eq!(told, [(2, Phase::Continuous), (9, Phase::Closed)]);
    assert_eq!(list(&rig.gateway, Some(InstrumentId(1))), []);
    assert_eq!(rig.gateway.instrument_of(symbol("NINE")), Some(InstrumentId(9)));
    assert_eq!(list(&rig.gateway, Some(InstrumentId(0))), []);
    rig.check();
}

fn rule() -> impl Strategy<Value = Rule> {
    let price = || (1_i64..400).prop_map(|ticks| Price(ticks * 100));
    prop_oneof![
        price().prop_map(Rule::Reference),
        price().prop_map(|max| Rule::PriceRange { min: Price(100), max }),
        (price(), prop_oneof![Just(0), Just(100), Just(200)])
            .prop_map(|(from, tick)| Rule::Tick { from, tick: Price(tick) }),
        (1_u64..20).prop_map(|lot| Rule::Lot(Quantity(lot))),
        (1_u64..2_000).prop_map(|max| Rule::QuantityMax(Quantity(max))),
        (0_u64..1_000).prop_map(Rule::ValueMax),
        (1_u32..50).prop_map(Rule::OrdersMax),
        (1_u32..5).prop_map(Rule::StepMax),
        (0_u32..300).prop_map(|width| Rule::StaticBand(Band::of(width))),
        (0_u32..300).prop_map(|width| Rule::DynamicBand(Band::of(width))),
        (0_u64..3).prop_map(|ns| Rule::Call { ns }),
        (1_u64..4, 0_u8..3, any::<bool>()).prop_map(|(ns, max, market)| Rule::Extension { ns, max, market }),
        (0_u64..4).prop_map(|ns| Rule::RandomEnd { ns }),
        (0_u64..30).prop_map(|least| Rule::AuctionMin(Quantity(least))),
        any::<bool>().prop_map(|fresh| Rule::IcebergRefill { fresh }),
        any::<bool>().prop_map(|rests| Rule::MarketRemainder { rests }),
    ]
}

fn command() -> impl Strategy<Value = (bool, Command)> {
    let order = (any::<bool>(), 1_i64..40)
        .prop_map(|(buys, ticks)| (false, limit(if buys { Side::Buy } else { Side::Sell }, ticks * 100)));
    prop_oneof![
        8 => order,
        3 => (0..Phase::ALL.len()).prop_map(|at| (true, Command::SetPhase(Phase::ALL[at]))),
        3 => rule().prop_map(|rule| (true, Command::SetRule(rule))),
        2 => Just((true, Command::TIME)),
        1 => Just((true, Command::RemoveInstrument)),
        1 => Just((true, Command::AddInstrument(symbol("MORE")))),
    ]
}

proptest! {
    #[test]
    fn a_gateway_says_what_the_books_are(
        steps in prop::collection::vec((1_u32..4, command(), 0_u32..12), 1..120)
    ) {
        let mut rig = Rig::new();
        let mut day = 0;
        for (instrument, (is_exchange, command), other) in steps {
            rig.ask(if is_exchange { 0 } else { 7 + other % 3 }, instrument, command);
            rig.check();
            match other {
                0 => { rig.ask(0, 0, Command::TIME); }
                1 => { day += 1; rig.ask(0, 0, Command::BeginDay { day: BusinessDay(day) }); }
                2 => { rig.ask(0, 0, Command::EndDay { day: BusinessDay(day) }); }
                _ => {}
            }
            rig.check();
        }
    }
}
