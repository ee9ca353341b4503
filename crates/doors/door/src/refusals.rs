//! Requests of which nothing came: the gateway did not take them in, or their name stands for another one.

use std::borrow::Cow;

use pares_types::{ClientOrderId, OrderKey, Quantity, Reason};

use crate::codes;
use crate::desk::Desk;
use crate::orders::{Known, Standing};
use crate::outbound::{CancelReject, Execution, MassReport, Told};
use crate::pending::What;
use crate::types::{ExecKind, Name, status};

/// MassCancelRejectReason: anything else.
pub(crate) const MASS_OTHER: u8 = 99;
/// What is asked for has a name that stands for something else.
const NAME_USED: &str = "duplicate_request: that name was used for a different request";

impl Desk {
    /// The gateway did not take a request in.
    pub(crate) fn on_rejected(&mut self, name: ClientOrderId, reason: Reason) {
        let Some(asked) = self.asked.remove(&name) else { return };
        self.end_amending(Some(asked));
        self.tell_rejected(name, asked.what, reason, codes::text(reason));
    }

    /// The name of a request stands for another one.
    pub(crate) fn tell_name_used(&mut self, name: ClientOrderId, what: What) {
        self.tell_rejected(name, what, Reason::DuplicateRequest, NAME_USED.into());
    }

    fn tell_rejected(&mut self, name: ClientOrderId, what: What, reason: Reason, text: Cow<'static, str>) {
        let told = match what {
            What::Enter(order) => self.rejected_order(&order, reason, text),
            What::Mass(mass) => {
                Told::MassReport(MassReport { text, ..MassReport::of(mass, Name::Of(name), Err(MASS_OTHER)) })
            }
            What::Change(change) => Told::CancelReject(CancelReject {
                original: Some(Name::Of(change.original)),
                responds_to: change.responds_to(),
                reason: codes::cancel_reject(reason),
                text,
                ..CancelReject::of(self.standing_or_ended(change.entry, reason), Name::Of(name))
            }),
        };
        self.told.push(told);
    }

    /// How the order of a rejected change stands; it has ended if the gateway says so, however that was.
    fn standing_or_ended(&self, entry: ClientOrderId, reason: Reason) -> Option<Standing> {
        let ended =
            || (reason == Reason::UnknownOrder).then_some(Standing { order: None, status: status::DONE });
        self.orders.standing(OrderKey::Name(entry)).or_else(ended)
    }

    fn rejected_order(&mut self, order: &Known, reason: Reason, text: Cow<'static, str>) -> Told {
        self.orders.forget_asked(order.entry);
        let id = self.blank(ExecKind::Rejected, status::REJECTED).id;
        Told::Execution(Box::new(Execution {
            order: None,
            name: Some(Name::Of(order.entry)),
            leaves: Quantity::ZERO,
            executed: Quantity::ZERO,
            rejected: Some(codes::order_reject(reason, self.version)),
            text,
            ..Execution::of_order(ExecKind::Rejected, status::REJECTED, id, order)
        }))
    }
}
