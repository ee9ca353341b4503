//! What an instrument allows, and what no caller may do.

use crate::Other;
use pares_book::{Book, Instrument, InstrumentError, NaiveBook, Symbol, TickTable};
use pares_exercise::checked::instrument;
use pares_exercise::script::{Script, request};
use pares_types::{
    Band, Command, InstrumentId, NewOrder, Price, Quantity, Reason, SelfTrade, Side, SymbolError, TimeInForce,
};

fn error_after(change: impl FnOnce(&mut Instrument)) -> Option<InstrumentError> {
    let mut changed = instrument(10);
    change(&mut changed);
    Instrument::new(changed).err()
}

#[test]
fn an_instrument_checks_itself() {
    assert_eq!(error_after(|_| {}), None);
    assert_eq!(error_after(|i| i.id = InstrumentId(0)), Some(InstrumentError::Id));
    assert_eq!(error_after(|i| i.ticks = TickTable::flat(Price(0))), Some(InstrumentError::Tick));
    assert_eq!(error_after(|i| i.ticks = TickTable::flat(Price(-100))), Some(InstrumentError::Tick));
    assert_eq!(error_after(|i| i.lot = Quantity(0)), Some(InstrumentError::Lot));
    assert_eq!(error_after(|i| i.quantity_max = Quantity(0)), Some(InstrumentError::QuantityMax));
    assert_eq!(error_after(|i| i.quantity_max = Quantity(15)), Some(InstrumentError::QuantityMax));
    assert_eq!(error_after(|i| i.price_min = Price(10_050)), Some(InstrumentError::PriceRange));
    assert_eq!(error_after(|i| i.price_max = Price(9_900)), Some(InstrumentError::PriceRange));
    assert_eq!(error_after(|i| i.orders_max = 0), Some(InstrumentError::OrdersMax));
    assert_eq!(error_after(|i| i.orders_max = u32::MAX), Some(InstrumentError::OrdersMax));
    assert_eq!(error_after(|i| i.step_max = 0), Some(InstrumentError::StepMax));
    assert_eq!(error_after(|i| i.step_max = Instrument::STEP_MAX + 1), Some(InstrumentError::StepMax));
    assert_eq!(error_after(|i| i.static_band = Band::of(10_001)), Some(InstrumentError::Band));
    assert_eq!(error_after(|i| i.dynamic_band = Band::of(10_001)), Some(InstrumentError::Band));
    let below = Band { width: 5, least: Price(-1) };
    assert_eq!(error_after(|i| i.static_band = below), Some(InstrumentError::Band));
    assert_eq!(error_after(|i| i.extension_ns = 0), Some(InstrumentError::Extension));
}

#[test]
fn the_shares_of_a_full_book_can_be_counted() {
    assert_eq!(error_after(|i| i.quantity_max = Quantity(900_000_000_000_000_000)), None);
    let too_large = |i: &mut Instrument| i.quantity_max = Quantity(1_000_000_000_000_000_000);
    assert_eq!(error_after(too_large), Some(InstrumentError::OrdersMax));
}

#[test]
fn prices_may_be_negative_where_the_range_says_so() {
    let mut spread = instrument(10);
    (spread.price_min, spread.price_max) = (Price(-10_000), Price(10_000));
    let enter = |price| Command::Enter(NewOrder::limit(Side::Buy, Price(price), Quantity(10)));
    assert_eq!(spread.validate(&enter(-300)), Ok(()));
    assert_eq!(spread.validate(&enter(-301)), Err(Reason::OffTick));
}

#[test]
fn symbols_are_short_printable_names() {
    assert_eq!(Symbol::new("BRK.B").unwrap().as_str(), "BRK.B");
    assert_eq!(Symbol::new("ABCDEFGHIJKLMNOP").unwrap().to_string().len(), 16);
    for illegal in ["", "ABCDEFGHIJKLMNOPQ", "A B", "Ä", "A\0"] {
        assert_eq!(Symbol::new(illegal), Err(SymbolError), "{illegal:?}");
    }
}

#[test]
fn symbols_survive_a_fixed_width_field() {
    let symbol = Symbol::new("AMZN").unwrap();
    assert_eq!(Symbol::from_bytes(symbol.to_bytes()), Ok(symbol));
    assert_eq!(Symbol::from_bytes(*b"AB\0C\0\0\0\0\0\0\0\0\0\0\0\0"), Err(SymbolError));
    assert_eq!(Symbol::from_bytes([0xff; 16]), Err(SymbolError));
}

fn route_elsewhere<B: Book>() {
    let mut request = request(1, 1, Command::Cancel { target: Default::default() });
    request.instrument = InstrumentId(2);
    B::new(instrument(10)).apply(&request, &mut Vec::new());
}

#[test]
#[should_panic(expected = "came to the book of 1")]
fn the_naive_book_takes_only_its_instrument() {
    route_elsewhere::<NaiveBook>();
}

#[test]
#[should_panic(expected = "came to the book of 1")]
fn the_fast_book_takes_only_its_instrument() {
    route_elsewhere::<Other>();
}

#[test]
fn a_mass_cancel_may_be_for_all_instruments() {
    let mut script = Script::<Other>::after(&["m1 buy 10 @ 10.00"]);
    let mut request = request(2, 1, Command::MassCancel { side: None });
    request.instrument = InstrumentId(0);
    assert_eq!(script.checked.apply(&request).0.len(), 1);
}

fn enter_twice<B: Book>() {
    let mut first = Script::<B>::after(&["m1 buy 10 @ 10.00"]);
    let mut second = Script::<B>::new();
    std::mem::swap(&mut first.checked, &mut second.checked);
    second.say("m1 buy 10 @ 10.00"); // counts from 1 again
}

#[test]
#[should_panic(expected = "order 1:1 is on the book already")]
fn the_naive_book_takes_an_order_once() {
    enter_twice::<NaiveBook>();
}

#[test]
#[should_panic(expected = "order 1:1 is on the book already")]
fn the_fast_book_takes_an_order_once() {
    enter_twice::<Other>();
}

fn sell_below_zero<B: Book>() {
    let mut spread = instrument(10);
    spread.price_min = Price(-1_000_000);
    let mut script = Script::<B>::of(spread);
    script.say("a = m1 buy 10 @ -50.00");
    assert_eq!(script.say("m2 sell 10 @ market")[0], "fill 10 @ -50.00 with a of m1, 0 left");
}

#[test]
fn a_market_order_may_sell_below_zero() {
    sell_below_zero::<NaiveBook>();
    sell_below_zero::<Other>();
}

/// What becomes of a fill-or-kill order of `quantity` by member 9, where `levels` offers of 10 by member 1 stand at a price each, and
/// before them, at one price, `own` offers of 10 by member 9 and as many by member 2.
fn fill_or_kill<B: Book>(levels: u64, own: u64, quantity: u64) -> Reason {
    let rules = Instrument { quantity_max: Quantity(100_000), ..instrument(100_000) };
    let mut book = B::new(Instrument::new(rules).unwrap());
    let mut events = Vec::new();
    let mut sequence = 0;
    let mut enter = |member: u32, order: NewOrder| {
        sequence += 1;
        book.apply(&request(sequence, member, Command::Enter(order)), &mut events)
    };
    let offer = |price: u64| NewOrder::limit(Side::Sell, Price(price.cast_signed()), Quantity(10));
    for _ in 0..own {
        enter(2, offer(20_000));
        enter(9, offer(20_000));
    }
    for at in 0..levels {
        enter(1, offer(30_000 + 100 * at));
    }
    let bid = NewOrder::limit(Side::Buy, Price(1_000_000), Quantity(quantity));
    let (time_in_force, self_trade) = (TimeInForce::Fok, SelfTrade::CancelResting);
    enter(9, NewOrder { time_in_force, self_trade, ..bid }).reason
}

#[test]
fn available_quantity_looks_at_bounded_levels() {
    let both = |levels, own, quantity| {
        let reason = fill_or_kill::<NaiveBook>(levels, own, quantity);
        assert_eq!(fill_or_kill::<Other>(levels, own, quantity), reason, "{levels} {own} {quantity}");
        reason
    };
    assert_eq!(both(5_000, 0, 40_960), Reason::None);
    assert_eq!(both(5_000, 0, 40_970), Reason::CannotFillWhole);
    // The level of its owner's orders costs a look for each order there, and one for itself.
    assert_eq!(both(100, 1_997, 1_000), Reason::None);
    assert_eq!(both(4_095, 1, 10_000), Reason::None);
    assert_eq!(both(100, 2_048, 1_000), Reason::CannotFillWhole);
    assert_eq!(both(100, 5_000, 10), Reason::CannotFillWhole);
}
