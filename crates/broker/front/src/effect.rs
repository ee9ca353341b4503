//! What comes to a front, and what it wants done.

use pares_broker::{Asked, BrokerRead, BrokerReply, BrokerRequest, HitName, StockSymbol, UserName};
use pares_wice::TransactionId;

use crate::user::CommandOrder;

/// What a front wants done, or says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEffect {
    /// Ask the quote server.
    Ask {
        /// The question's number.
        hit: u64,
        /// For which stock.
        symbol: StockSymbol,
        /// For which user.
        user: UserName,
    },
    /// Nobody waits for the answer to this question any more.
    Abandon {
        /// The question's number.
        hit: u64,
    },
    /// Have a request executed, once, and tell `BrokerFront::answered`.
    Submit {
        /// Under this name, however often it is repeated.
        id: TransactionId,
        /// The request.
        request: BrokerRequest,
    },
    /// Read, and tell `BrokerFront::looked`.
    Look {
        /// The question's number.
        number: u64,
        /// What.
        read: BrokerRead,
    },
    /// The log has this hit: who keeps it may forget it.
    Noted {
        /// Which.
        hit: HitName,
    },
    /// A command has its reply, or is given up.
    Told {
        /// Its place among the commands that arrived, from 0.
        arrival: u64,
        /// The number it was executed under; 0 if it was given up, or refused for the clock, before it was handed on.
        number: u64,
        /// The command.
        asked: Asked,
        /// The reply; [`BrokerReply::Early`] if it was given up at once, since too many wait for one before them. None: the one before it in its session did not come within
        /// [`GIVEN_UP_AFTER_MS`](crate::GIVEN_UP_AFTER_MS), sites do not take it, or its sender is gone. It is not executed as far as this front
        /// knows; what is under way may be yet, behind the one before it. Who repeats it under its number learns what became of it.
        reply: Option<BrokerReply>,
    },
}

/// A command, as it comes to a front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who brings it: senders have turns when the sites are busy. A connection's number, from 1; 0 for one workload, [`EACH_USER`](crate::EACH_USER) for what users bring one by one.
    pub sender: u64,
    /// Whose; none: nobody's.
    pub user: Option<UserName>,
    /// Where it stands among its user's.
    pub order: CommandOrder,
    /// What it asks for. No moment: those are the front's own.
    pub asked: Asked,
}

/// Why a command is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// As many as may be are without a reply: later, or through another front.
    #[error("the front is busy")]
    Busy,
    /// As many logs as may be wait to be written: later.
    #[error("too many logs wait to be written")]
    Dumps,
    /// The front's clock is off by more than [`CLOCK_OFF_MAX_MS`](crate::CLOCK_OFF_MAX_MS): through another front.
    #[error("the front's clock is off")]
    Clock,
    /// Its number is none, or does not come after that which it says.
    #[error("the number does not follow the previous one")]
    Order,
}
