//! What a flow asks of an exchange, and what must come of it.

use pares_types::{
    Amendment, ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, NewOrder, NewTerms, Price,
    Quantity, Side, TimeInForce,
};

use crate::recorded::Depth;

/// One request in terms a client can send: orders are named by the client order id that entered them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCommand {
    /// Who sends it.
    pub member: MemberId,
    /// The name of this request; unique over the whole flow, not only per member, so that a driver may
    /// send everything as one member over one connection.
    pub client_order_id: ClientOrderId,
    /// The instrument concerned.
    pub instrument: InstrumentId,
    /// What is asked.
    pub action: FlowAction,
}

/// What a [`FlowCommand`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// Enter an order.
    Enter(NewOrder),
    /// Change an order (see [`Command::Amend`] for priority).
    Amend {
        /// The client order id that entered it.
        original: ClientOrderId,
        /// The new limit price.
        price: Price,
        /// The new total quantity, executed part included.
        quantity: Quantity,
    },
    /// Cancel what is left of an order.
    Cancel {
        /// The client order id that entered it.
        original: ClientOrderId,
    },
}

impl FlowCommand {
    /// The command as its member sends it.
    #[must_use]
    pub fn to_request(self) -> ClientRequest {
        let Self { client_order_id, instrument, action, .. } = self;
        match action {
            FlowAction::Enter(order) => ClientRequest::Enter { client_order_id, instrument, order },
            FlowAction::Amend { original, price, quantity } => {
                let terms = NewTerms::new(price, quantity);
                ClientRequest::Amend { client_order_id, target: original, terms }
            }
            FlowAction::Cancel { original } => ClientRequest::Cancel { client_order_id, target: original },
        }
    }
}

impl FlowAction {
    /// The form the exchange's core understands; `resolve` turns the client's name for an order into
    /// the exchange's. `None` if `resolve` does not know the order.
    pub fn to_command(
        self,
        resolve: impl FnOnce(ClientOrderId) -> Option<pares_types::OrderId>,
    ) -> Option<Command> {
        Some(match self {
            Self::Enter(order) => Command::Enter(order),
            Self::Amend { original, price, quantity } => {
                Command::Amend(Amendment::new(resolve(original)?, price, quantity))
            }
            Self::Cancel { original } => Command::Cancel { target: resolve(original)? },
        })
    }
}

/// A limit order.
pub(crate) fn limit(side: Side, price: Price, quantity: Quantity, time_in_force: TimeInForce) -> FlowAction {
    FlowAction::Enter(NewOrder { time_in_force, ..NewOrder::limit(side, price, quantity) })
}

/// A command and what must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStep {
    /// What to send.
    pub command: FlowCommand,
    /// What must come back.
    pub expect: Expectation,
}

/// What must come of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// It rests (or stays resting) with this many shares open, and nothing trades.
    Rests {
        /// Shares open.
        remaining: Quantity,
    },
    /// It trades all its shares with exactly one order: the one the record names.
    Fills {
        /// The client order id of that order.
        resting: ClientOrderId,
        /// Shares.
        quantity: Quantity,
        /// Whether the record named an order we entered for it (not a seed standing for unseen ones).
        known: bool,
    },
    /// The order is gone, and nothing trades.
    Cancelled,
}

/// What a translated event asks of the driver, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this.
    Send(FlowStep),
    /// Once everything before it is answered, compare the book.
    Check(RowCheck),
}

/// A published state of the book to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowCheck {
    /// The number of the event it follows, from 1 (the line of a LOBSTER file).
    pub event: u64,
    /// The instrument.
    pub instrument: InstrumentId,
    /// How many levels per side are published; fewer in `published` means the book has no more.
    pub levels: usize,
    /// The published levels, best first.
    pub published: Depth,
}
