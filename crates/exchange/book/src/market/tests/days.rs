//! One business day and the next.

use pares_types::{BusinessDay, CancelCause, DAY_NS, Phase, Rule, TimeInForce};
use proptest::prelude::*;

use super::model::{IDS, command};
use super::*;
use crate::FastBook;
use crate::market::{DayCount, Stage};

fn begin(day: u32) -> Command {
    Command::BeginDay { day: BusinessDay(day) }
}

fn end(day: u32) -> Command {
    Command::EndDay { day: BusinessDay(day) }
}

const ACCEPTED: (Status, Reason) = (Status::Accepted, Reason::None);
const UNFINISHED: (Status, Reason) = (Status::Accepted, Reason::Unfinished);

fn rig_on_day(ids: &[u32], day: u32) -> Rig {
    let mut rig = Rig::new(ids);
    assert_eq!(why(rig.ask(0, 0, begin(day))), ACCEPTED);
    rig
}

#[test]
fn day_end_sets_prices_totals_and_keeps_long_orders() {
    let mut rig = rig_on_day(&[1, 2], 7);
    rig.rests(1, 1, Side::Buy, 50_000);
    rig.rests(1, 1, Side::Buy, 49_900);
    let stays = NewOrder {
        time_in_force: TimeInForce::Gtc,
        ..NewOrder::limit(Side::Buy, Price(48_000), Quantity(3))
    };
    rig.ask(3, 1, Command::Enter(stays));
    rig.ask(2, 1, Command::Enter(NewOrder::limit(Side::Sell, Price(49_900), Quantity(14))));
    assert_eq!(why(rig.ask(0, 0, end(7))), ACCEPTED);
    let of_the_day: Vec<Event> = rig
        .events
        .iter()
        .copied()
        .filter(|event| {
            matches!(event, Event::DayPrices { .. } | Event::DayVolume { .. } | Event::Instrument(_))
        })
        .collect();
    let (open, low) = (Price(50_000), Price(49_900));
    assert_eq!(
        of_the_day,
        [
            Event::Instrument(InstrumentId(1)),
            Event::DayPrices { open, high: open, low, last: low },
            Event::DayVolume { closing: Some(low), quantity: Quantity(14), trades: 2 },
            Event::Instrument(InstrumentId(2)),
            Event::DayVolume { closing: None, quantity: Quantity::ZERO, trades: 0 },
        ]
    );
    let Some(&Event::DayEnded { day, requests, orders, trades, quantity, .. }) = rig.events.last() else {
        panic!("{:?}", rig.events.last())
    };
    assert_eq!((day, requests, orders, trades, quantity), (BusinessDay(7), 5, 4, 2, Quantity(14)));
    let of_members: Vec<_> = rig
        .market
        .day()
        .members()
        .iter()
        .map(|(id, of)| (id.0, of.orders, of.trades, of.quantity.0))
        .collect();
    assert_eq!(of_members, [(1, 2, 2, 14), (2, 1, 2, 14), (3, 1, 0, 0)]);
    assert_eq!(rig.orders(), [1, 0], "good till cancelled");
    assert!(
        rig.events.iter().any(|event| matches!(event, Event::Cancelled { cause: CancelCause::DayEnd, .. }))
    );
}

#[test]
fn between_two_days_nothing_is_traded_and_cancels_pass() {
    let mut rig = rig_on_day(&[1], 7);
    let gtc =
        NewOrder { time_in_force: TimeInForce::Gtc, ..NewOrder::limit(Side::Buy, Price(500), Quantity(3)) };
    let order = rig.ask(1, 1, Command::Enter(gtc)).order;
    rig.ask(0, 0, end(7));
    assert_eq!(rig.market.day().stage(), Stage::Over);
    assert_eq!(why(rig.ask(2, 1, Command::Enter(gtc))), refused(Reason::DayOver));
    let amend = pares_types::Amendment::new(order, Price(600), Quantity(3));
    let outcome = rig.ask(1, 1, Command::Amend(amend));
    assert_eq!((why(outcome), outcome.remaining), (refused(Reason::DayOver), Quantity(3)));
    assert_eq!(why(rig.ask(0, 1, Command::SetPhase(Phase::OpeningCall))), refused(Reason::DayOver));
    assert_eq!(why(rig.ask(0, 1, Command::TIME)), ACCEPTED, "told, and nothing comes of it");
    assert_eq!(rig.ask(1, 1, Command::Cancel { target: order }).status, Status::Cancelled);
    assert_eq!(why(rig.ask(0, 0, begin(8))), ACCEPTED);
    assert_eq!(rig.ask(2, 1, Command::Enter(gtc)).status, Status::Resting);
}

#[test]
fn only_the_day_that_is_on_ends_and_only_a_later_one_begins() {
    let mut rig = Rig::new(&[1]);
    assert_eq!(why(rig.ask(0, 0, end(1))), refused(Reason::WrongDay), "none is on");
    assert_eq!(why(rig.ask(5, 0, begin(7))), refused(Reason::NotPermitted));
    assert_eq!(why(rig.ask(0, 1, begin(7))), refused(Reason::UnknownInstrument));
    assert_eq!(why(rig.ask(0, 0, begin(7))), ACCEPTED);
    assert_eq!(why(rig.ask(0, 0, begin(7))), refused(Reason::NothingChanged));
    assert_eq!(why(rig.ask(0, 0, begin(8))), refused(Reason::DayNotOver));
    assert_eq!(why(rig.ask(0, 0, end(8))), refused(Reason::WrongDay));
    assert_eq!(why(rig.ask(0, 0, end(7))), ACCEPTED);
    assert_eq!(why(rig.ask(0, 0, end(7))), refused(Reason::DayOver));
    assert_eq!(why(rig.ask(0, 0, begin(7))), refused(Reason::WrongDay));
    assert_eq!(why(rig.ask(0, 0, begin(8))), ACCEPTED);
}

#[test]
fn a_day_ends_in_steps_and_the_time_goes_on_with_it() {
    let mut rig = rig_on_day(&[1, 2], 7);
    rig.ask(0, 1, Command::SetRule(Rule::StepMax(2)));
    let orders: Vec<OrderId> = (0..5).map(|_| rig.rests(1, 1, Side::Buy, 500)).collect();
    assert_eq!(why(rig.ask(0, 0, end(7))), UNFINISHED);
    let enter = Command::Enter(NewOrder::limit(Side::Buy, Price(500), Quantity(1)));
    assert_eq!(why(rig.ask(2, 2, enter)), refused(Reason::DayOver), "the second is not closed yet");
    assert_eq!(rig.ask(1, 1, Command::Cancel { target: orders[4] }).status, Status::Cancelled);
    assert_eq!(why(rig.ask(0, 0, begin(8))), refused(Reason::DayNotOver));
    while why(rig.time(50)) == UNFINISHED {}
    assert!(matches!(rig.events.last(), Some(Event::DayEnded { trades: 0, .. })));
    assert_eq!(rig.market.day().stage(), Stage::Over);
    assert_eq!(rig.orders(), [0, 0]);
}

#[test]
fn untimed_instrument_reopens_others_wait() {
    let mut rig = rig_on_day(&[1, 2, 3], 7);
    rig.ask(0, 2, Command::SetPhase(Phase::Halted));
    let open = Rule::Schedule { at_ns: 100, phase: Some(Phase::Continuous) };
    rig.ask(0, 3, Command::SetRule(open));
    rig.ask(0, 0, end(7));
    let phases = |rig: &Rig| rig.market.books().iter().map(|book| book.trading().phase).collect::<Vec<_>>();
    assert_eq!(phases(&rig), [Phase::Closed; 3]);
    // The timetable waits for the day.
    rig.time(20 * DAY_NS);
    assert_eq!(phases(&rig), [Phase::Closed; 3]);
    let request = Request { stamp: Timestamp(20 * DAY_NS + 50), ..rig.request(0, 0, begin(20)) };
    rig.apply(&request);
    assert_eq!(phases(&rig), [Phase::Continuous, Phase::Closed, Phase::Closed]);
    rig.time(20 * DAY_NS + 60);
    assert_eq!(phases(&rig)[2], Phase::Closed, "the rows of nineteen days are passed over");
    rig.time(20 * DAY_NS + 100);
    assert_eq!(phases(&rig)[2], Phase::Continuous);
}

#[test]
fn call_before_day_end_is_not_closed_by_trade() {
    let mut rig = rig_on_day(&[1, 2], 7);
    rig.ask(0, 1, Command::SetRule(Rule::StepMax(1)));
    (0..3).for_each(|_| _ = rig.rests(1, 1, Side::Buy, 500));
    rig.ask(0, 2, Command::SetPhase(Phase::ClosingCall));
    for (member, side) in [(1, Side::Buy), (2, Side::Sell)] {
        rig.ask(member, 2, Command::Enter(NewOrder::limit(side, Price(500), Quantity(1))));
    }
    assert_eq!(why(rig.ask(0, 0, end(7))), UNFINISHED);
    assert_eq!(why(rig.ask(0, 2, Command::SetPhase(Phase::Closed))), refused(Reason::DayOver));
    assert_eq!(why(rig.ask(0, 2, Command::SetPhase(Phase::Halted))), ACCEPTED);
    while why(rig.time(50)) == UNFINISHED {}
    assert!(matches!(rig.events.last(), Some(Event::DayEnded { trades: 0, .. })));
}

/// A request of members and the exchange, or a day's begin or end.
fn asked() -> impl Strategy<Value = Vec<(u32, usize, Command)>> {
    let days = (1_u32..5, any::<bool>()).prop_map(|(day, begins)| if begins { begin(day) } else { end(day) });
    let usual = (0_u32..4, 0..IDS.len(), (1_u64..60).prop_flat_map(command));
    prop::collection::vec(prop_oneof![12 => usual, 1 => days.prop_map(|command| (0, 0, command))], 1..120)
}

/// No fill or auction between two days, and the record's own count is the one recorded.
struct Watch {
    count: Option<DayCount>,
}

impl Watch {
    fn follow(&mut self, stage: Stage, request: &Request, outcome: &Outcome, events: &[Event]) {
        if let Some(count) = &mut self.count {
            count.follow(request, outcome, events);
        }
        let trades = events.iter().any(|event| matches!(event, Event::Fill { .. }));
        assert!(!trades || matches!(stage, Stage::On | Stage::Beginning { .. }), "{stage:?}: {events:?}");
        if outcome.status == Status::Accepted
            && matches!(request.command, Command::BeginDay { .. })
            && self.count.is_none()
        {
            let mut count = DayCount::default();
            count.begin(request, outcome, events);
            self.count = Some(count);
        }
        if let Some(&Event::DayEnded { requests, orders, trades, quantity, .. }) = events.last() {
            let day = self.count.take().expect("it had begun").day;
            assert_eq!((day.requests, day.totals.orders), (requests, orders));
            assert_eq!((day.totals.trades, day.totals.quantity), (trades, quantity));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn days_are_the_same_in_both_books_and_as_the_record_tells_them(asked in asked()) {
        let instruments = [1, 2, 700, 3_000_000_000].map(instrument);
        let mut rig = Rig::of(&instruments);
        let mut fast = Market::<FastBook>::new(&instruments);
        let mut watch = Watch { count: None };
        for (member, id, command) in asked {
            let of_members = matches!(command, Command::Enter(_) | Command::Amend(_) | Command::Cancel { .. } | Command::MassCancel { .. });
            let request = rig.request(if of_members { member } else { 0 }, IDS[id], command);
            let stage = rig.market.day().stage();
            let outcome = rig.apply(&request);
            let mut events = Vec::new();
            prop_assert_eq!(outcome, fast.apply(&request, &mut events), "{:?}", request);
            prop_assert_eq!(&rig.events, &events);
            prop_assert_eq!(rig.market.state_hash(), fast.state_hash());
            prop_assert_eq!(rig.market.day(), fast.day());
            watch.follow(stage, &request, &outcome, &events);
        }
        fast.audit();
    }
}
