//! Who may sign on, ask for what, and how much of it.

use pares_register::{FIRST_OPERATOR, PROPOSAL_NS, Register};
use pares_table::Network;
use pares_types::{
    BusinessDay, ClientOrderId, ClientRequest, Command, DAY_NS, Entry, InstrumentId, Key, Limits, MemberId,
    NewOrder, Phase, Price, Proposal, Quantity, Reason, Registration, Reply, Rights, Rule, Side, TimeInForce,
    Timestamp,
};

use super::world::{Gate, World, amend, cancel, config, enter, exchange, mass_cancel, reduce};
use crate::names::Kind;
use crate::{Gateway, GatewayConfig, SessionId};

/// Sessions of the tests: two operators, and member 7's two.
pub(super) const OPERATOR: u64 = 10;
const SECOND: u64 = 11;
pub(super) const TRADER: u64 = 1;
pub(super) const OTHER: u64 = 2;
/// The series of the first operator.
pub(super) const FIRST: u64 = 1;

pub(super) struct Floor {
    pub(super) world: World,
    names: u64,
}

impl Floor {
    /// Both gateways require sign-on; member 7 and two operators are registered and signed on at the first.
    pub(super) fn new() -> Self {
        let mut world = World::with(|gate| GatewayConfig { sign_on_required: true, ..config(gate) });
        for gate in &mut world.gates {
            let bare = Gateway::new(config(0), []);
            let gateway = std::mem::replace(&mut gate.gateway, bare);
            gate.gateway = gateway.with_register(Register::new(Some(key(1))));
        }
        let mut floor = Self { world, names: 0 };
        assert_eq!(floor.sign_on(OPERATOR, 0, FIRST_OPERATOR), Ok(()));
        floor.register(7, 0, Entry::AddMember);
        for (member, session) in [(7, 1), (7, 2), (0, 2)] {
            floor.register(member, session, Entry::SetKey(key(9)));
        }
        assert_eq!(floor.sign_on(SECOND, 0, 2), Ok(()));
        assert_eq!((floor.sign_on(TRADER, 7, 1), floor.sign_on(OTHER, 7, 2)), (Ok(()), Ok(())));
        floor
    }

    pub(super) fn sign_on(&mut self, session: u64, member: u32, number: u16) -> Result<(), Reason> {
        let Gate { gateway, sink, .. } = &mut self.world.gates[0];
        gateway.on_sign_on(SessionId(session), (MemberId(member), number), false, sink)
    }

    pub(super) fn register(&mut self, member: u32, session: u16, entry: Entry) {
        let change = Registration { member: MemberId(member), session, entry };
        assert_eq!(self.operate(OPERATOR, 1, 0, Command::Register(change)), None, "{change:?}");
    }

    /// An operator asks; why it was rejected.
    pub(super) fn operate(
        &mut self,
        session: u64,
        number: u64,
        instrument: u32,
        command: Command,
    ) -> Option<Reason> {
        self.names += 1;
        self.ask(session, exchange(number << 48 | self.names, instrument, command))
    }

    /// Asks, and has everything committed. Why it was rejected.
    pub(super) fn ask(&mut self, session: u64, request: ClientRequest) -> Option<Reason> {
        self.world.gates[0].sink.replies.clear();
        self.world.ask(0, session, request);
        let rejected = self.world.gates[0].sink.replies.iter().find_map(|(_, reply)| match reply {
            Reply::Rejected { reason, .. } => Some(*reason),
            _ => None,
        });
        self.world.settle();
        rejected
    }

    fn sell(&mut self, session: u64, quantity: u64, price: i64) -> Option<Reason> {
        self.names += 1;
        self.ask(session, enter(self.names, 1, Side::Sell, quantity, price))
    }

    pub(super) fn gone(&mut self) -> Vec<(SessionId, Reason)> {
        std::mem::take(&mut self.world.gates[0].sink.gone)
    }
}

pub(super) fn key(number: u8) -> Key {
    Key::Ed25519([number; 32])
}

/// What a new session may, but for those.
fn all_but(rights: Rights) -> Rights {
    Rights::from_bits(Rights::TRADING.bits() & !rights.bits()).expect("all are rights")
}

/// To buy at market.
fn market(name: u64, quantity: u64) -> ClientRequest {
    let (client_order_id, instrument) = (ClientOrderId(name), InstrumentId(1));
    let order = NewOrder::market(Side::Buy, Quantity(quantity));
    ClientRequest::Enter { client_order_id, instrument, order }
}

fn limits(limits: Limits) -> Entry {
    Entry::SetLimits(limits)
}

#[test]
fn only_who_is_registered_signs_on_and_the_later_of_two_stays() {
    let mut floor = Floor::new();
    for (member, number) in [(7, 0), (7, 3), (8, 1), (0, 0)] {
        assert_eq!(floor.sign_on(20, member, number), Err(Reason::WrongKey), "{member} {number}");
    }
    assert_eq!(floor.sign_on(20, 7, 1), Ok(()));
    assert_eq!(floor.gone(), [(SessionId(TRADER), Reason::TakenOver)]);
    assert_eq!(floor.sell(TRADER, 1, 100), Some(Reason::NotSignedOn));
    assert_eq!((floor.sell(20, 1, 100), floor.sell(OTHER, 1, 100)), (None, None));
}

#[test]
fn who_is_revoked_is_gone_as_the_record_is_read() {
    let mut floor = Floor::new();
    floor.register(7, 2, Entry::SetKey(key(3)));
    assert_eq!(floor.gone(), [(SessionId(OTHER), Reason::Revoked)], "another key is another session");
    assert_eq!(floor.sign_on(OTHER, 7, 2), Ok(()));
    floor.register(7, 1, Entry::RevokeKey);
    assert_eq!(floor.gone(), [(SessionId(TRADER), Reason::Revoked)]);
    floor.register(7, 0, Entry::RemoveMember);
    assert_eq!(floor.gone(), [(SessionId(OTHER), Reason::Revoked)]);
    assert_eq!(floor.sell(OTHER, 1, 100), Some(Reason::NotSignedOn));
    assert_eq!(floor.sign_on(OTHER, 7, 2), Err(Reason::WrongKey));
    // The other gateway has read the same.
    assert_eq!(floor.world.gates[1].gateway.register(), floor.world.gates[0].gateway.register());
    floor.world.restart(0, GatewayConfig { sign_on_required: true, ..config(0) });
    assert_eq!(floor.sign_on(OTHER, 7, 2), Err(Reason::WrongKey), "nor after a restart");
}

#[test]
fn rights_hold_at_once_and_cancels_always_pass() {
    let mut floor = Floor::new();
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 5, 100)), None);
    floor.register(7, 1, Entry::SetRights(Rights::NONE));
    assert_eq!(floor.sell(TRADER, 5, 100), Some(Reason::NoRight));
    assert_eq!(floor.ask(TRADER, amend(501, 500, 4, 100)), Some(Reason::NoRight));
    assert_eq!(floor.sell(OTHER, 5, 100), None, "the other session may");
    floor.register(7, 0, Entry::SetRights(all_but(Rights::AMEND.or(Rights::MARKET_ORDERS))));
    assert_eq!((floor.ask(OTHER, market(502, 1)), floor.sell(OTHER, 5, 100)), (Some(Reason::NoRight), None));
    assert_eq!(floor.ask(TRADER, reduce(503, 500, 3)), None, "a part of a cancel");
    assert_eq!((floor.ask(TRADER, cancel(504, 500)), floor.ask(TRADER, mass_cancel(505, 0))), (None, None));
    // What was answered once is answered again.
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 5, 100)), None);
}

#[test]
fn who_may_not_sell_neither_enters_nor_amends_an_order_to_sell() {
    let mut floor = Floor::new();
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 5, 100)), None);
    assert_eq!(floor.ask(TRADER, enter(501, 1, Side::Buy, 5, 90)), None);
    floor.register(7, 0, Entry::SetRights(all_but(Rights::SELL)));
    assert_eq!(floor.sell(TRADER, 5, 100), Some(Reason::NoRight));
    assert_eq!(floor.ask(OTHER, amend(502, 500, 4, 100)), Some(Reason::NoRight));
    assert_eq!(floor.ask(OTHER, amend(503, 501, 4, 90)), None);
    assert_eq!(floor.ask(TRADER, enter(504, 1, Side::Buy, 5, 90)), None);
    assert_eq!(floor.ask(OTHER, cancel(505, 500)), None, "cancels always pass");
    floor.register(7, 0, Entry::SetRights(all_but(Rights::BUY)));
    assert_eq!(floor.ask(OTHER, amend(506, 501, 3, 90)), Some(Reason::NoRight));
    assert_eq!(floor.sell(OTHER, 5, 100), None);
}

#[test]
fn order_side_known_from_logs_and_checkpoint() {
    let mut world = World::new();
    world.sign_on(0, 1, 7);
    for (name, side, price) in [(500, Side::Sell, 100), (501, Side::Buy, 90)] {
        world.ask(0, 1, enter(name, 1, side, 5, price));
    }
    world.settle();
    for taken in [0, usize::MAX - 1] {
        world.restart_from(1, config(1), [taken; 2]);
        let names = &world.gates[1].gateway.names;
        let kind = |name| names.find(MemberId(7), ClientOrderId(name)).map(|index| names.get(index).kind);
        assert_eq!(kind(500), Some(Kind::Enter { side: Side::Sell, at_market: false }));
        assert_eq!(kind(501), Some(Kind::Enter { side: Side::Buy, at_market: false }));
    }
}

#[test]
fn who_may_not_trade_every_instrument_trades_what_is_listed() {
    let mut floor = Floor::new();
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 5, 100)), None);
    floor.register(7, 1, Entry::SetRights(all_but(Rights::EVERY_INSTRUMENT)));
    floor.register(7, 1, Entry::ListInstrument(InstrumentId(2)));
    assert_eq!(floor.sell(TRADER, 5, 100), Some(Reason::NoRight));
    assert_eq!(floor.ask(TRADER, amend(501, 500, 4, 100)), Some(Reason::NoRight));
    assert_eq!(floor.ask(TRADER, enter(502, 2, Side::Sell, 5, 100)), None);
    assert_eq!(floor.sell(OTHER, 5, 100), None, "the other session has no list");
    floor.register(7, 1, Entry::ListInstrument(InstrumentId(1)));
    assert_eq!(floor.sell(TRADER, 5, 100), None);
    floor.register(7, 1, Entry::UnlistInstrument(InstrumentId(2)));
    assert_eq!(floor.ask(TRADER, enter(503, 2, Side::Sell, 5, 100)), Some(Reason::NoRight));
    assert_eq!(floor.ask(TRADER, mass_cancel(504, 2)), None);
}

#[test]
fn what_is_beyond_a_limit_reaches_no_venue() {
    let mut floor = Floor::new();
    let journalled = |floor: &Floor| floor.world.gates[0].sink.log.len();
    floor.register(7, 0, limits(Limits { quantity_max: 10, value_max: 900, ..Limits::NONE }));
    let before = journalled(&floor);
    assert_eq!(floor.sell(TRADER, 11, 10), Some(Reason::QuantityLimit));
    assert_eq!(floor.sell(TRADER, 10, 91), Some(Reason::ValueLimit));
    assert_eq!(journalled(&floor), before);
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 10, 90)), None);
    assert_eq!(floor.ask(TRADER, amend(501, 500, 11, 90)), Some(Reason::QuantityLimit));
    floor.register(7, 0, limits(Limits::NONE));
    assert_eq!(floor.sell(TRADER, 11, 1_000), None, "changeable while running");
}

/// An order to sell takes what is bid, and one at market has no price, whatever an amend of it says.
#[test]
fn what_trades_at_once_is_worth_the_last_trade() {
    let mut floor = Floor::new();
    floor.register(7, 0, limits(Limits { value_max: 1_000, ..Limits::NONE }));
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 1, 100)), None);
    assert_eq!(floor.ask(TRADER, enter(501, 1, Side::Buy, 1, 100)), None);
    assert_eq!(floor.sell(TRADER, 11, 1), Some(Reason::ValueLimit));
    assert_eq!(floor.sell(TRADER, 10, 1), None);
    assert_eq!(floor.ask(TRADER, enter(510, 2, Side::Buy, 50, 20)), None, "to buy is worth its own price");
    assert_eq!(floor.ask(TRADER, market(520, 11)), Some(Reason::ValueLimit));
    assert_eq!(floor.ask(TRADER, market(520, 10)), None);
    floor.register(7, 0, limits(Limits { value_max: 1_000, collar: 1_000, ..Limits::NONE }));
    assert_eq!(floor.ask(TRADER, amend(521, 520, 11, 0)), Some(Reason::ValueLimit));
    assert_eq!(floor.ask(TRADER, amend(521, 520, 10, 0)), None, "no collar holds it");
    for gate in 0..2 {
        floor.world.restart_from(gate, super::world::config(gate), [usize::MAX - 1; 2]);
        let names = &floor.world.gates[gate].gateway.names;
        let entry = names.get(names.find(MemberId(7), ClientOrderId(520)).unwrap());
        assert_eq!(entry.kind, Kind::Enter { side: Side::Buy, at_market: true });
    }
}

#[test]
fn a_limit_is_no_farther_from_the_last_trade_than_the_collar() {
    let mut floor = Floor::new();
    floor.register(7, 2, limits(Limits { collar: 1_000, ..Limits::NONE }));
    assert_eq!(floor.sell(OTHER, 1, 999_999), None, "there was no trade");
    for (side, session) in [(Side::Sell, TRADER), (Side::Buy, TRADER)] {
        floor.names += 1;
        let name = floor.names;
        assert_eq!(floor.ask(session, enter(name, 1, side, 5, 1_000)), None);
    }
    for (price, expected) in
        [(1_100, None), (900, None), (1_101, Some(Reason::PriceCollar)), (899, Some(Reason::PriceCollar))]
    {
        assert_eq!(floor.sell(OTHER, 1, price), expected, "{price}");
    }
    assert_eq!(floor.sell(TRADER, 1, 5_000), None, "the other session has none");
}

#[test]
fn who_connects_again_has_used_what_it_had_used() {
    let mut floor = Floor::new();
    floor.register(7, 1, limits(Limits { rate_max: 1, burst_max: 2, ..Limits::NONE }));
    let taken: Vec<_> = (1_000..1_006)
        .map(|again| {
            floor.world.gates[0].gateway.on_disconnect(SessionId(again - 1));
            assert_eq!(floor.sign_on(again, 7, 1), Ok(()));
            floor.sell(again, 1, 100)
        })
        .collect();
    let throttled = Some(Reason::Throttled);
    assert_eq!(taken, [None, None, throttled, throttled, throttled, throttled]);
}

#[test]
fn open_orders_count_across_sessions_and_free_room() {
    let mut floor = Floor::new();
    floor.register(7, 0, limits(Limits { orders_max: 2, ..Limits::NONE }));
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 5, 100)), None);
    assert_eq!(floor.ask(OTHER, enter(501, 2, Side::Sell, 5, 100)), None);
    assert_eq!(floor.sell(TRADER, 5, 100), Some(Reason::OrdersLimit));
    assert_eq!(floor.ask(OTHER, cancel(502, 500)), None);
    assert_eq!((floor.sell(TRADER, 5, 100), floor.sell(OTHER, 5, 100)), (None, Some(Reason::OrdersLimit)));
    floor.world.restart(1, GatewayConfig { sign_on_required: true, ..config(1) });
    let Gate { gateway, .. } = &floor.world.gates[1];
    assert_eq!(gateway.names.orders_of(MemberId(7)), 2, "counted again from the logs");
}

#[test]
fn without_limit_a_member_has_its_share_of_each_book() {
    let mut floor = Floor::new();
    assert_eq!(floor.operate(OPERATOR, 1, 1, Command::SetRule(Rule::OrdersMax(16))), None);
    assert_eq!((floor.sell(TRADER, 5, 100), floor.sell(OTHER, 5, 100)), (None, None));
    let ioc =
        NewOrder { time_in_force: TimeInForce::Ioc, ..NewOrder::limit(Side::Sell, Price(100), Quantity(5)) };
    let at_once =
        ClientRequest::Enter { client_order_id: ClientOrderId(600), instrument: InstrumentId(1), order: ioc };
    assert_eq!(floor.sell(TRADER, 5, 100), Some(Reason::OrdersLimit), "the book takes 16");
    assert_eq!(floor.ask(TRADER, enter(500, 2, Side::Sell, 5, 100)), None, "another book");
    assert_eq!(floor.ask(TRADER, at_once), None, "it takes no place");
    floor.register(7, 0, limits(Limits { orders_max: 9, ..Limits::NONE }));
    assert_eq!(floor.sell(TRADER, 5, 100), None, "the operator allows more");
    floor.world.restart(1, GatewayConfig { sign_on_required: true, ..config(1) });
    let names = &floor.world.gates[1].gateway.names;
    assert!(names.orders_for(MemberId(7), InstrumentId(1)) >= 3, "counted again from the logs");
}

/// Each gateway takes in a share before it has read of the others' orders.
#[test]
fn all_gateways_shares_are_at_most_half_a_book() {
    let mut floor = Floor::new();
    assert_eq!(floor.operate(OPERATOR, 1, 1, Command::SetRule(Rule::OrdersMax(16))), None);
    for (gateways, share) in [(1, 2), (4, 2), (8, 1), (16, 1)] {
        let listings = &floor.world.gates[0].gateway.listings;
        assert_eq!(listings.orders_share(InstrumentId(1), gateways), Some(share));
    }
}

#[test]
fn register_rate_applies_beside_configured_rate() {
    let mut floor = Floor::new();
    floor.register(7, 1, limits(Limits { rate_max: 1, burst_max: 2, ..Limits::NONE }));
    let told: Vec<_> = (0..4).map(|_| floor.sell(TRADER, 1, 100)).collect();
    assert_eq!(told, [None, None, Some(Reason::Throttled), Some(Reason::Throttled)]);
    assert_eq!(floor.sell(OTHER, 1, 100), None);
}

/// A member that hears that an order was not taken in enters it again, under another name.
#[test]
fn a_repeat_of_what_was_taken_in_is_not_throttled() {
    let mut floor = Floor::new();
    floor.register(7, 1, limits(Limits { rate_max: 1, burst_max: 1, ..Limits::NONE }));
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 5, 100)), None);
    assert_eq!(floor.ask(TRADER, enter(501, 1, Side::Sell, 5, 100)), Some(Reason::Throttled));
    assert_eq!(floor.ask(TRADER, enter(500, 1, Side::Sell, 5, 100)), None);
}

#[test]
fn an_operator_does_what_its_rights_say_under_its_own_series() {
    let mut floor = Floor::new();
    let halt = Command::SetPhase(Phase::Halted);
    assert_eq!(floor.operate(SECOND, 1, 1, halt), Some(Reason::OtherSeries), "in the name of the other");
    assert_eq!(floor.operate(SECOND, 2, 1, halt), None);
    floor.register(0, 2, Entry::SetRights(Rights::REGISTER));
    assert_eq!(floor.operate(SECOND, 2, 1, halt), Some(Reason::NoRight));
    floor.register(0, 2, Entry::SetRights(Rights::CONTROL));
    let change = Registration { member: MemberId(8), session: 0, entry: Entry::AddMember };
    assert_eq!(floor.operate(SECOND, 2, 0, Command::Register(change)), Some(Reason::NoRight));
    assert_eq!(floor.ask(TRADER, exchange(900, 0, Command::Register(change))), Some(Reason::NotPermitted));
}

#[test]
fn with_four_eyes_what_can_halt_a_market_needs_two_operators() {
    let mut floor = Floor::new();
    floor.register(0, 0, Entry::SetFourEyes(true));
    let halt = Command::SetPhase(Phase::Halted);
    let proposal = Proposal::of(InstrumentId(1), &halt).unwrap();
    let propose = |session| {
        Command::Register(Registration { member: MemberId(0), session, entry: Entry::Propose(proposal) })
    };
    assert_eq!(floor.operate(OPERATOR, 1, 1, halt), Some(Reason::SecondOperator));
    assert_eq!(floor.operate(OPERATOR, 1, 0, propose(2)), Some(Reason::NoRight), "in the name of the other");
    assert_eq!(floor.operate(OPERATOR, 1, 0, propose(1)), None);
    assert_eq!(floor.operate(OPERATOR, 1, 1, halt), Some(Reason::SecondOperator), "its own second");
    assert_eq!(floor.operate(SECOND, 2, 2, halt), Some(Reason::SecondOperator), "another instrument");
    let block = Command::Block { member: MemberId(7) };
    assert_eq!(floor.operate(SECOND, 2, 0, block), Some(Reason::SecondOperator));
    let end = Command::EndDay { day: BusinessDay(5) };
    assert_eq!(floor.operate(SECOND, 2, 0, end), Some(Reason::SecondOperator));
    assert_eq!(floor.operate(SECOND, 2, 0, Command::BeginDay { day: BusinessDay(5) }), None);
    assert_eq!(floor.operate(SECOND, 2, 1, halt), None);
    assert_eq!(floor.operate(SECOND, 2, 1, Command::SetPhase(Phase::Continuous)), None, "that halts nothing");
    floor.world.now += PROPOSAL_NS + 1_000;
    assert_eq!(floor.operate(SECOND, 2, 1, halt), Some(Reason::SecondOperator), "ten minutes later");
    let change = |session, entry| Command::Register(Registration { member: MemberId(0), session, entry });
    let entry = |command| Entry::Propose(Proposal::of(InstrumentId(0), &command).unwrap());
    for (proposed, done) in [
        (Entry::SetKey(key(3)), Entry::SetKey(key(4))),
        (Entry::SetRights(Rights::NONE), Entry::SetRights(Rights::ALL)),
        (Entry::RevokeKey, Entry::SetKey(key(5))),
    ] {
        assert_eq!(floor.operate(SECOND, 2, 0, change(2, entry(change(3, proposed)))), None);
        let reason = floor.operate(OPERATOR, 1, 0, change(3, done));
        assert_eq!(reason, Some(Reason::SecondOperator), "{proposed:?} was proposed, not {done:?}");
    }
    assert_eq!(floor.ask(TRADER, exchange(901, 0, block)), None, "a member may always stop itself");
    let remove = Registration { member: MemberId(7), session: 0, entry: Entry::RemoveMember };
    for alone in [
        Command::Register(remove),
        change(3, Entry::SetKey(key(6))),
        change(0, Entry::SetRights(Rights::ALL)),
        change(0, Entry::SetFourEyes(false)),
    ] {
        assert_eq!(floor.operate(OPERATOR, 1, 0, alone), Some(Reason::SecondOperator), "{alone:?}");
        assert_eq!(floor.operate(SECOND, 2, 0, change(2, entry(alone))), None);
        assert_eq!(floor.operate(OPERATOR, 1, 0, alone), None, "{alone:?}");
    }
}

/// Two networks, neither of them this machine.
const ONE_NETWORK: Option<Network> = Some(Network(1));
const OTHER_NETWORK: Option<Network> = Some(Network(2));

#[test]
fn wrong_keys_slow_their_sender_and_reveal_nothing() {
    let mut floor = Floor::new();
    let gateway = &mut floor.world.gates[0].gateway;
    let now = Timestamp(5_000_000_000);
    let (known, unknown) = ((MemberId(7), 1), (MemberId(8), 1));
    for who in [known, unknown] {
        for _ in 0..5 {
            assert!(gateway.key_to_prove(who, ONE_NETWORK, now).is_ok());
            gateway.on_wrong_key(ONE_NETWORK, now);
        }
    }
    for who in [known, unknown] {
        assert_eq!(gateway.key_to_prove(who, ONE_NETWORK, now), Err(Reason::TooManyAttempts));
    }
}

/// At any rate and from anywhere, the owner of the key proves it from elsewhere, and an operator on the gateway's machine.
#[test]
fn wrong_keys_for_an_operator_keep_no_operator_out() {
    let mut floor = Floor::new();
    let gateway = &mut floor.world.gates[0].gateway;
    let (operator, now) = ((MemberId(0), FIRST_OPERATOR), Timestamp(5_000_000_000));
    for number in 3..20_000 {
        (0..10).for_each(|_| gateway.on_wrong_key(Some(Network(number)), now));
    }
    (0..100).for_each(|_| gateway.on_wrong_key(None, now));
    for from in [OTHER_NETWORK, None] {
        assert_eq!(gateway.key_to_prove(operator, from, now), Ok(Some(key(1))), "{from:?}");
    }
}

#[test]
fn clock_set_back_locks_nobody_out_keeps_proposals() {
    let mut floor = Floor::new();
    floor.register(0, 0, Entry::SetFourEyes(true));
    floor.world.now += 2 * DAY_NS;
    let halt = Command::SetPhase(Phase::Halted);
    let entry = Entry::Propose(Proposal::of(InstrumentId(1), &halt).unwrap());
    let proposal = Command::Register(Registration { member: MemberId(0), session: 1, entry });
    assert_eq!(floor.operate(OPERATOR, 1, 0, proposal), None);
    let (who, now) = ((MemberId(7), 1), Timestamp(floor.world.now));
    let gateway = &mut floor.world.gates[0].gateway;
    (0..10).for_each(|_| gateway.on_wrong_key(ONE_NETWORK, now));
    assert_eq!(gateway.key_to_prove(who, ONE_NETWORK, now), Err(Reason::TooManyAttempts));
    floor.world.now -= DAY_NS;
    let now = Timestamp(floor.world.now);
    assert!(floor.world.gates[0].gateway.key_to_prove(who, ONE_NETWORK, now).is_ok(), "not for a day");
    assert_eq!(floor.operate(SECOND, 2, 1, halt), None, "a market can be halted at any time");
}

#[test]
fn where_sign_on_is_open_nothing_of_this_holds() {
    let mut world = World::new();
    world.sign_on(0, 1, 0);
    world.ask(0, 1, exchange(1, 1, Command::SetPhase(Phase::Halted)));
    assert_eq!(world.gates[0].sink.log.len(), 1);
}
