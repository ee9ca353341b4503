//! What a request asks, in terms in which all gateways agree.
//!
//! Two gateways that took an order in know it by different ids until it is committed, but by one name. So a change is compared by its order's name: an
//! amend says it, and a cancel's is looked up.

use pares_types::{
    ClientOrderId, ClientRequest, Command, InstrumentId, OrderId, Request, RequestDigest, RequestId,
};

use super::Names;
use crate::fan_out;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(super) is_cancel: bool,
    /// A cancel's is of its order's name.
    pub(super) digest: RequestDigest,
}

impl Asked {
    pub(crate) fn by(request: &ClientRequest) -> Self {
        match *request {
            ClientRequest::Enter { instrument, order, .. } => Self::of(instrument, Command::Enter(order)),
            ClientRequest::Amend { target, terms, .. } => {
                Self::of(InstrumentId(0), Command::Amend(terms.of(OrderId(RequestId::NONE), target)))
            }
            ClientRequest::Cancel { target, .. } => Self::to_cancel(Some(target)),
            ClientRequest::MassCancel { instrument, side, .. } => {
                Self::of(instrument, Command::MassCancel { side })
            }
            ClientRequest::Exchange { instrument, command, .. } => Self::of(instrument, command),
        }
    }

    fn of(instrument: InstrumentId, command: Command) -> Self {
        let digest = match command {
            Command::Amend(_) => command.asked(),
            // It is journalled without an instrument.
            _ if fan_out::is_for_all(instrument, command) => command.asked(),
            _ => RequestDigest::of(&(instrument, command.asked())),
        };
        Self { is_cancel: false, digest }
    }

    fn to_cancel(target: Option<ClientOrderId>) -> Self {
        let digest = target.map_or(RequestDigest::UNKNOWN, |target| RequestDigest::of(&target));
        Self { is_cancel: true, digest }
    }
}

impl Names {
    /// Of a request in a log: a cancel's order may not be known here yet, or no longer.
    pub(crate) fn asked(&self, request: &Request) -> Asked {
        match request.command {
            Command::Cancel { target } => {
                let order = self.find_order(target);
                Asked::to_cancel(order.map(|order| self.get(order).client_order_id))
            }
            command => Asked::of(request.instrument, command),
        }
    }
}
