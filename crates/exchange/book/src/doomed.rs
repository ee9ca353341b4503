//! What a request cancels that names a member and no order.

use pares_types::{CancelCause, ClientOrderId, Command, Guarded, MemberId, OrderId, Request, Side};

/// Which orders a mass cancel, the kill switch or the end of a session cancels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doomed {
    pub(crate) member: MemberId,
    side: Option<Side>,
    guarded: Option<Guarded>,
    pub(crate) cause: CancelCause,
}

impl Doomed {
    /// `None` for all other requests.
    pub(crate) fn by(request: &Request) -> Option<Self> {
        let all = |member, cause| Self { member, side: None, guarded: None, cause };
        match request.command {
            Command::MassCancel { side } => {
                Some(Self { side, ..all(request.member, CancelCause::MassCancel) })
            }
            Command::Block { member } => Some(all(member, CancelCause::Blocked)),
            Command::CancelGuarded(guarded) => {
                let guarded_by = all(guarded.member, CancelCause::SessionEnded);
                Some(Self { guarded: Some(guarded), ..guarded_by })
            }
            _ => None,
        }
    }

    /// Whether an order of the member is one of them.
    pub(crate) fn has(&self, side: Side, order: OrderId, name: ClientOrderId) -> bool {
        let is_of_side = self.side.is_none_or(|one| one == side);
        is_of_side && self.guarded.is_none_or(|guarded| guarded.has(order, name))
    }
}
