//! Messages with what all of their kind have; the rest is filled in.

use pares_types::Quantity;

use crate::orders::{Known, Standing};
use crate::outbound::{CancelReject, Execution, MassReport};
use crate::pending::Mass;
use crate::types::{ExecId, ExecKind, Name, Question, status};

impl Execution {
    /// A report with what every report has.
    pub(crate) fn of(kind: ExecKind, status: u8, id: ExecId) -> Self {
        Self {
            kind,
            status,
            id,
            refers_to: None,
            order: None,
            name: None,
            original: None,
            instrument: Err(b"NONE".to_vec()),
            side: None,
            total: None,
            terms: None,
            last: None,
            leaves: Quantity::ZERO,
            executed: Quantity::ZERO,
            rejected: None,
            restated: None,
            is_working: None,
            question: Question::default(),
            text: "".into(),
            is_possible_resend: false,
        }
    }

    /// A report of an order.
    pub(crate) fn of_order(kind: ExecKind, status: u8, id: ExecId, order: &Known) -> Self {
        Self {
            order: order.order,
            name: Some(Name::Of(order.newest)),
            instrument: Ok(order.instrument),
            side: order.side,
            total: order.total,
            terms: order.terms,
            leaves: order.leaves(),
            executed: order.executed,
            ..Self::of(kind, status, id)
        }
    }
}

impl CancelReject {
    /// A refusal to change an order, which stands so; `None`: there is none.
    pub(crate) fn of(standing: Option<Standing>, name: Name) -> Self {
        let Standing { order, status } =
            standing.unwrap_or(Standing { order: None, status: status::REJECTED });
        Self {
            order,
            name,
            original: None,
            status,
            responds_to: b'1',
            reason: 0,
            text: "".into(),
            is_possible_resend: false,
        }
    }
}

impl MassReport {
    pub(crate) fn of(mass: Mass, name: Name, result: Result<u64, u8>) -> Self {
        let Mass { asked, instrument, side } = mass;
        let (order, text) = (None, "".into());
        Self { order, name, asked, instrument, side, result, text, is_possible_resend: false }
    }
}
