//! Orders that are amended for ever, and the clock that their quantities are.

use pares_flow::{FlowAction, FlowCommand};
use pares_load::{LoadPlan, RequestSource};
use pares_os::clock::mono_ns;
use pares_types::{ClientOrderId, NewOrder, Quantity, Side};

/// The clock wraps after so many microseconds: four seconds.
pub(super) const CLOCK_US: u64 = 1 << 22;

/// The clock now: never 0, which would be no quantity.
pub(super) fn clock() -> u64 {
    (mono_ns() / 1_000 % CLOCK_US).max(1)
}

/// How long ago it was `then`.
pub(super) fn age_us(then: u64) -> u64 {
    (clock() + CLOCK_US - then % CLOCK_US) % CLOCK_US
}

/// An order in each book, then amends of them by turns.
pub(super) fn changes(plan: &LoadPlan) -> impl RequestSource + use<> {
    let (instruments, member) = (plan.instruments.clone(), plan.member(0));
    let (first_name, mut sent) = (plan.first_client_order_id, 0);
    move || {
        let (number, books) = (sent, instruments.len() as u64);
        sent += 1;
        let book = number % books;
        let instrument = instruments[book as usize];
        let quantity = Quantity(clock());
        let original = ClientOrderId(first_name + book);
        let action = if number < books {
            FlowAction::Enter(NewOrder::limit(Side::Buy, instrument.start, quantity))
        } else {
            FlowAction::Amend { original, price: instrument.start, quantity }
        };
        let client_order_id = ClientOrderId(first_name + number);
        FlowCommand { member, client_order_id, instrument: instrument.id, action }
    }
}
