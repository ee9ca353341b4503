//! Orders in pairs that trade with each other: an order rests, and the next one takes it. Books stay as they are however long the load continues.

use pares_flow::{FlowAction, FlowCommand, FlowInstrument};
use pares_load::{LoadPlan, RequestSource};
use pares_types::{ClientOrderId, MemberId, NewOrder, Quantity, Side};

/// An endless row of them, over all instruments and members by turns.
pub(crate) struct Pairs {
    instruments: Vec<FlowInstrument>,
    members: Vec<MemberId>,
    first_name: u64,
    sent: u64,
}

impl Pairs {
    pub(crate) fn of(plan: &LoadPlan) -> Self {
        let members = (0..plan.members as usize).map(|place| plan.member(place)).collect();
        Self {
            instruments: plan.instruments.clone(),
            members,
            first_name: plan.first_client_order_id,
            sent: 0,
        }
    }
}

impl RequestSource for Pairs {
    fn next_command(&mut self) -> FlowCommand {
        let (number, members) = (self.sent, self.members.len());
        self.sent += 1;
        let instrument = self.instruments[(number / 2) as usize % self.instruments.len()];
        let side = if number.is_multiple_of(2) { Side::Sell } else { Side::Buy };
        FlowCommand {
            member: self.members[number as usize % members],
            client_order_id: ClientOrderId(self.first_name + number),
            instrument: instrument.id,
            action: FlowAction::Enter(NewOrder::limit(side, instrument.start, Quantity(instrument.lot.0))),
        }
    }
}
