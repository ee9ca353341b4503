//! Who may do what: the entries of the register.
//!
//! The register is a part of the lowest shard's state. The exchange changes it, one entry a request, so it is in the record who was
//! let in, by which key, and when. Nothing in it is secret.

use std::fmt;

use crate::{Command, InstrumentId, MemberId, Phase, Side};

/// One entry of the register, for a member or one of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Registration {
    /// The member.
    pub member: MemberId,
    /// Which of its sessions, from 1; 0 is the member as a whole.
    pub session: u16,
    /// What is entered.
    pub entry: Entry,
}

/// What is entered. Each is for the member as a whole, for a session, or for either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// The member participates from now on.
    AddMember,
    /// The member and all its sessions are gone.
    RemoveMember,
    /// The session signs on with this key from now on, and no other; who signed on with another is disconnected.
    SetKey(Key),
    /// The session is gone.
    RevokeKey,
    /// What the session, or any of the member's, may ask.
    SetRights(Rights),
    /// How much the session, or any of the member's, may ask.
    SetLimits(Limits),
    /// How many shares of an instrument the member may have bought more than sold on a business day, or sold more than bought, if all of its
    /// open orders trade; 0 is no limit. Of a session: how far it may take the member.
    SetPositionMax(u64),
    /// Whether a request that can halt a market needs a second operator. The exchange as a whole only.
    SetFourEyes(bool),
    /// An operator's session proposes a request that needs a second operator.
    Propose(Proposal),
    /// The session, or any of the member's, may trade this instrument, also without [`Rights::EVERY_INSTRUMENT`].
    ListInstrument(InstrumentId),
    /// It is not listed any more.
    UnlistInstrument(InstrumentId),
    /// The session receives this member's streams instead of its own member's, and may ask for nothing; a session that is signed on as it is
    /// disconnected. Its own member ends it.
    SetCopied(MemberId),
}

/// What a session proves to have. Neither is secret: the first is public, the second says nothing of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// An Ed25519 public key; the session signs.
    Ed25519([u8; 32]),
    /// SHA-256 of the client's key that is derived from a shared secret or a password; see docs/protocols/order-entry.md.
    Shared([u8; 32]),
}

/// What a session may ask, as bits. Cancels are always allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rights(u32);

impl Rights {
    /// None.
    pub const NONE: Self = Self(0);
    /// Enter orders.
    pub const ENTER: Self = Self(1);
    /// Amend orders; to make one smaller needs no right.
    pub const AMEND: Self = Self(2);
    /// Enter market orders.
    pub const MARKET_ORDERS: Self = Self(4);
    /// The exchange's requests about instruments, members' orders and trades.
    pub const CONTROL: Self = Self(8);
    /// The exchange's requests about the register.
    pub const REGISTER: Self = Self(16);
    /// Enter and amend orders to buy.
    pub const BUY: Self = Self(32);
    /// Enter and amend orders to sell.
    pub const SELL: Self = Self(64);
    /// Enter and amend orders in every instrument; without it, in those that are listed.
    pub const EVERY_INSTRUMENT: Self = Self(128);
    /// What a member's session has unless its rights are set.
    pub const TRADING: Self = Self(231);
    /// All.
    pub const ALL: Self = Self(255);
    /// Each right with the word for it, in the order of the bits.
    pub const WORDS: [(Self, &'static str); 8] = [
        (Self::ENTER, "enter"),
        (Self::AMEND, "amend"),
        (Self::MARKET_ORDERS, "market_orders"),
        (Self::CONTROL, "control"),
        (Self::REGISTER, "register"),
        (Self::BUY, "buy"),
        (Self::SELL, "sell"),
        (Self::EVERY_INSTRUMENT, "every_instrument"),
    ];

    /// The right to trade on that side.
    #[must_use]
    #[inline]
    pub const fn of_side(side: Side) -> Self {
        match side {
            Side::Buy => Self::BUY,
            Side::Sell => Self::SELL,
        }
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The rights of these bits; `None` if one of them is no right.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits & !Self::ALL.0 == 0 { Some(Self(bits)) } else { None }
    }

    /// Whether all of `others` are among them.
    #[must_use]
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// What both have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What either has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The words of those there are; none at all still cancels.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("only cancel");
        }
        let words = Self::WORDS.iter().filter(|(right, _)| self.has(*right));
        for (at, (_, word)) in words.enumerate() {
            write!(f, "{}{word}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// How much a session may ask. 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Shares of one order.
    pub quantity_max: u64,
    /// Price times quantity of one order, price units times shares.
    pub value_max: u64,
    /// How far from the last trade, or the reference price before there was one, a limit may lie, on either side, hundredths of a percent.
    pub collar: u32,
    /// Open orders the member may have, over all its sessions.
    pub orders_max: u32,
    /// Orders and amends a session may send in a second.
    pub rate_max: u32,
    /// How many of them at once.
    pub burst_max: u32,
}

impl Limits {
    /// No limit.
    pub const NONE: Self =
        Self { quantity_max: 0, value_max: 0, collar: 0, orders_max: 0, rate_max: 0, burst_max: 0 };

    /// The stricter of each. The burst is that of the lower rate.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let is_slower = stricter(self.rate_max, other.rate_max) == self.rate_max;
        Self {
            quantity_max: stricter(self.quantity_max, other.quantity_max),
            value_max: stricter(self.value_max, other.value_max),
            collar: stricter(self.collar, other.collar),
            orders_max: stricter(self.orders_max, other.orders_max),
            rate_max: stricter(self.rate_max, other.rate_max),
            burst_max: if is_slower { self.burst_max } else { other.burst_max },
        }
    }
}

/// The lower of two limits, of which 0 is none.
#[must_use]
pub fn stricter<T: Ord + Default>(one: T, other: T) -> T {
    let none = T::default();
    match (one == none, other == none) {
        (true, _) => other,
        (_, true) => one,
        _ => one.min(other),
    }
}

/// A request that can halt a market, in few words: enough to know it again when a second operator asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Proposal {
    /// The instrument; 0 for all.
    pub instrument: InstrumentId,
    /// 1 set phase, 2 remove instrument, 3 block, 4 end day, 5 four eyes off, 6 change a key, rights or limits of operators, 7 remove member.
    pub kind: u8,
    /// The phase, the member or the day; of a change of operators the session, and 2^16 times the code of what changes.
    pub operand: u32,
    /// Of a change of operators what is set; of a key both halves in one, so that nobody finds another key with the same.
    pub detail: u128,
}

impl Proposal {
    /// Those of one operator that wait; the oldest makes room.
    pub const OF_ONE_MAX: usize = 8;

    /// The highest kind.
    pub const KIND_MAX: u8 = 7;
    const OF_OPERATORS: u8 = 6;

    /// The request as a proposal; `None` if it can neither halt a market nor make one operator two.
    #[must_use]
    pub fn of(instrument: InstrumentId, command: &Command) -> Option<Self> {
        let mut detail = 0;
        let (kind, operand) = match *command {
            Command::SetPhase(phase @ (Phase::Halted | Phase::Closed)) => (1, phase as u32),
            Command::RemoveInstrument => (2, 0),
            Command::Block { member } => (3, member.0),
            Command::EndDay { day } => (4, day.0),
            Command::Register(Registration { entry: Entry::SetFourEyes(false), .. }) => (5, 0),
            Command::Register(Registration { member: MemberId(0), session, entry, .. }) => {
                let (code, what) = entry.in_short()?;
                detail = what;
                (Self::OF_OPERATORS, u32::from(code) << 16 | u32::from(session))
            }
            Command::Register(Registration { member, entry: Entry::RemoveMember, .. }) => (7, member.0),
            _ => return None,
        };
        Some(Self { instrument, kind, operand, detail })
    }

    /// Whether it changes that session of an operator's.
    #[must_use]
    pub fn is_about_operator(&self, session: u16) -> bool {
        self.kind == Self::OF_OPERATORS && self.operand & 0xffff == u32::from(session)
    }
}

impl Entry {
    /// What it sets, as a code and a number; `None` if it sets nothing of a member's or a session's.
    fn in_short(&self) -> Option<(u8, u128)> {
        const ODD: u128 = 0x9e37_79b9_7f4a_7c15_d1b5_4a32_d192_ed03;
        let half = |key: [u8; 32], from: usize| {
            let bytes: [u8; 16] = key[from..from + 16].try_into().expect("sixteen bytes");
            u128::from_le_bytes(bytes)
        };
        let both = |key| half(key, 0).wrapping_mul(ODD) ^ half(key, 16);
        Some(match *self {
            Self::AddMember => (1, 0),
            Self::RemoveMember => (2, 0),
            Self::SetKey(Key::Ed25519(key)) => (3, both(key)),
            Self::SetKey(Key::Shared(key)) => (4, both(key)),
            Self::RevokeKey => (5, 0),
            Self::SetRights(rights) => (6, rights.bits().into()),
            Self::SetLimits(Limits { quantity_max, value_max, collar, orders_max, rate_max, burst_max }) => {
                let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
                let all = [quantity_max, value_max, two(collar, orders_max), two(rate_max, burst_max)];
                let add = |sum: u128, word: u64| (sum ^ u128::from(word)).wrapping_mul(ODD).rotate_left(47);
                (7, all.into_iter().fold(0, add))
            }
            Self::ListInstrument(instrument) => (10, instrument.0.into()),
            Self::UnlistInstrument(instrument) => (11, instrument.0.into()),
            Self::SetPositionMax(shares) => (12, shares.into()),
            Self::SetCopied(member) => (13, member.0.into()),
            Self::SetFourEyes(_) | Self::Propose(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_laxer_than_any() {
        let one = Limits { quantity_max: 5, rate_max: 10, burst_max: 3, ..Limits::NONE };
        let other = Limits { quantity_max: 9, value_max: 7, ..Limits::NONE };
        let both = Limits { quantity_max: 5, value_max: 7, rate_max: 10, burst_max: 3, ..Limits::NONE };
        assert_eq!((one.and(other), other.and(one)), (both, both));
        assert_eq!(Limits::NONE.and(Limits::NONE), Limits::NONE);
    }

    #[test]
    fn every_right_has_a_word() {
        let all = Rights::WORDS.iter().fold(Rights::NONE, |all, (right, _)| all.or(*right));
        assert_eq!(all, Rights::ALL);
        assert_eq!(Rights::from_bits(256), None);
        assert_eq!(Rights::TRADING.to_string(), "enter amend market_orders buy sell every_instrument");
        assert_eq!(Rights::NONE.to_string(), "only cancel");
    }
}
