//! Orders in pairs that trade with each other: an order rests, and the next one takes it. Books stay as they are however long the load continues.

use pares_flow::{FlowAction, FlowCommand};
use pares_load::{LoadPlan, RequestSource};
use pares_types::{ClientOrderId, NewOrder, Quantity, Side};

/// An endless row of them, over all instruments and members by turns.
pub(super) fn pairs(plan: &LoadPlan) -> impl RequestSource + use<> {
    let (plan, mut sent) = (plan.clone(), 0_u64);
    move || {
        let number = sent;
        sent += 1;
        let instrument = plan.instruments[(number / 2) as usize % plan.instruments.len()];
        let side = if number.is_multiple_of(2) { Side::Sell } else { Side::Buy };
        FlowCommand {
            member: plan.member(number as usize % plan.members as usize),
            client_order_id: ClientOrderId(plan.first_client_order_id + number),
            instrument: instrument.id,
            action: FlowAction::Enter(NewOrder::limit(side, instrument.start, Quantity(instrument.lot.0))),
        }
    }
}
