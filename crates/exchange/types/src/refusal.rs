//! Who refuses for a reason, and what becomes of the request's name.
//!
//! ```text
//!  request --> gateway --------> log --> shard
//!                 |                        |
//!            at once: `Rejected`      in the record: `Answer`
//!            the name stays free      the name is used up, nearly always
//! ```

use crate::reason::Reason;

/// Who refuses requests for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuser {
    /// A gateway, at once. Nothing is recorded, and the request's name stays free.
    Gateway,
    /// The shard, in the record.
    Shard,
    /// A gateway if it knows, else the shard.
    Either,
}

impl Refuser {
    /// Whether gateways do.
    #[must_use]
    pub const fn is_gateway(self) -> bool {
        matches!(self, Self::Gateway | Self::Either)
    }

    /// Whether shards do.
    #[must_use]
    pub const fn is_shard(self) -> bool {
        matches!(self, Self::Shard | Self::Either)
    }
}

impl Reason {
    /// Who refuses requests for it. `None`: nobody, it only says how a request ended that was carried out.
    #[must_use]
    pub const fn refuser(self) -> Option<Refuser> {
        use Reason as R;
        match self {
            R::None | R::NothingToTrade | R::CannotFillWhole | R::Requested | R::MinimumNotMet => None,
            R::SelfTrade | R::PriceBand | R::Unfinished | R::Halted => None,
            R::UnknownInstrument | R::UnknownOrder | R::MalformedRequest => Some(Refuser::Either),
            R::NotPermitted | R::TooOld | R::WrongDay | R::DuplicateRequest => Some(Refuser::Either),
            R::Overloaded | R::StorageUnavailable | R::NotSignedOn => Some(Refuser::Gateway),
            R::UnknownClientOrderId | R::Throttled | R::NotRecorded => Some(Refuser::Gateway),
            R::NotKept | R::UnknownShard | R::AlreadyAsked => Some(Refuser::Gateway),
            R::WrongKey | R::TooManyAttempts | R::Revoked | R::TakenOver => Some(Refuser::Gateway),
            R::NoRight | R::QuantityLimit | R::ValueLimit | R::PriceCollar => Some(Refuser::Gateway),
            R::OrdersLimit | R::PositionLimit | R::SecondOperator | R::OtherSeries => Some(Refuser::Gateway),
            R::TlsRequired | R::WrongClock | R::TooManyConnections | R::TooManySessions => {
                Some(Refuser::Gateway)
            }
            R::ZeroQuantity | R::OffLot | R::QuantityTooLarge | R::OffTick => Some(Refuser::Shard),
            R::PriceOutOfRange | R::WouldTrade | R::InvalidCombination => Some(Refuser::Shard),
            R::BookFull | R::BookCrossed => Some(Refuser::Shard),
            R::NothingChanged | R::Blocked | R::NotInThisPhase | R::InTransition => Some(Refuser::Shard),
            R::ValueTooLarge | R::InvalidDisplay | R::InvalidMinimum => Some(Refuser::Shard),
            R::Expired | R::InstrumentExists | R::BookNotEmpty | R::InvalidRule => Some(Refuser::Shard),
            R::AlreadyBusted | R::TooManyBusts | R::TooManyPegs => Some(Refuser::Shard),
            R::NotClosingPrice | R::TooManyInstruments | R::NotBlocked => Some(Refuser::Shard),
            R::NotCloseable | R::Void | R::Quarantined | R::SymbolInUse => Some(Refuser::Shard),
            R::NotQuarantined | R::TooManySeries => Some(Refuser::Shard),
            R::DayOver | R::DayNotOver => Some(Refuser::Shard),
            R::UnknownMember | R::MemberExists | R::UnknownSession => Some(Refuser::Shard),
            R::RegisterFull | R::LastOperator | R::Overtaken => Some(Refuser::Shard),
        }
    }

    /// Whether a request that its shard refuses for this reason reached a book. The others were used before, came too late or meet a quarantine,
    /// which the shard knows and no book does.
    #[must_use]
    pub const fn reaches_book(self) -> bool {
        self.uses_name()
            && !matches!(self, Self::Void | Self::Quarantined | Self::NotQuarantined | Self::Overtaken)
    }

    /// Whether the name of a request that its shard refuses for it is used up by that. Where it is not, it was used before, or never can be.
    #[must_use]
    pub const fn uses_name(self) -> bool {
        !matches!(self, Self::DuplicateRequest | Self::TooOld | Self::TooManySeries)
    }
}
