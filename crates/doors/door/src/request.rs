//! Requests of members: what a FIX message asks for, in the exchange's terms.
//!
//! What the exchange cannot do is refused. A field that is taken and not heeded would be an order that its owner does not know.

use std::borrow::Cow;

use pares_fix::dictionary::tag;
use pares_fix::message::FixMessage;
use pares_fix::time::read_stamp;
use pares_types::{
    ClientOrderId, InstrumentId, NewOrder, NewTerms, OrderKind, Peg, Price, Quantity, SelfTrade, Side,
    TimeInForce, Timestamp,
};

use crate::decimal;
use crate::instruments::Instruments;
use crate::types::{Name, Terms};

const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// OrdRejReason (103) of what a door refuses by itself.
mod reject {
    pub(super) const UNKNOWN_SYMBOL: u8 = 1;
    pub(super) const NAME_USED: u8 = 6;
    pub(super) const UNSUPPORTED: u8 = 11;
    pub(super) const QUANTITY: u8 = 13;
    pub(super) const OTHER: u8 = 99;
}

/// Why a door does not ask for what a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// OrdRejReason (103), as FIX 4.4 has it.
    pub(crate) code: u8,
    pub(crate) text: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn other(text: impl Into<Cow<'static, str>>) -> Self {
        Self { code: reject::OTHER, text: text.into() }
    }

    pub(crate) fn name_used() -> Self {
        Self { code: reject::NAME_USED, text: "another request with that name is unanswered".into() }
    }

    /// CxlRejReason (102), where a change is refused for it.
    pub(crate) fn of_change(&self) -> u8 {
        if self.code == reject::NAME_USED { self.code } else { reject::OTHER }
    }

    fn unsupported(text: impl Into<Cow<'static, str>>) -> Self {
        Self { code: reject::UNSUPPORTED, text: text.into() }
    }
}

/// A ClOrdID as the exchange names requests: a number from 1 on, without zeros before it.
#[must_use]
pub fn client_order_id(text: &[u8]) -> Option<ClientOrderId> {
    let is_number = text.iter().all(u8::is_ascii_digit) && text.first() != Some(&b'0');
    let number = std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()?;
    Some(ClientOrderId(number))
}

/// The name in a field, as the exchange takes it or as it came.
pub(crate) fn name(message: &FixMessage<'_>, tag: u16) -> Name {
    let text = message.text(tag).unwrap_or_default();
    client_order_id(text).map_or_else(|| Name::Raw(text.to_vec()), Name::Of)
}

/// Nothing is listed by the symbol or number that was given.
pub(crate) const NO_INSTRUMENT: &str = "no instrument has that Symbol (55) or SecurityID (48)";

/// What a message asks for, field by field.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) message: &'a FixMessage<'a>,
    pub(crate) instruments: &'a Instruments,
}

impl Asking<'_> {
    pub(crate) fn own_name(&self) -> Result<ClientOrderId, Refusal> {
        self.name_of(tag::CL_ORD_ID)
            .ok_or_else(|| Refusal::other("ClOrdID (11) must be 1 to 2^64-1, without leading zeros"))
    }

    pub(crate) fn name_of(&self, tag: u16) -> Option<ClientOrderId> {
        client_order_id(self.message.text(tag)?)
    }

    /// The instrument: by its number (48, if 22 is 8), or else by its symbol (55). A number that is none is no reason to go by the symbol.
    pub(crate) fn instrument(&self) -> Result<InstrumentId, Refusal> {
        let named = match self.is_by_number() {
            true => self.by_number(),
            false => self.message.text(tag::SYMBOL).and_then(|symbol| self.instruments.by_symbol(symbol)),
        };
        named.ok_or_else(|| Refusal { code: reject::UNKNOWN_SYMBOL, text: NO_INSTRUMENT.into() })
    }

    /// Whether it names an instrument by its number.
    pub(crate) fn is_by_number(&self) -> bool {
        let is_ours = self.message.text(tag::SECURITY_ID_SOURCE) == Some(b"8");
        is_ours && self.message.text(tag::SECURITY_ID).is_some()
    }

    fn by_number(&self) -> Option<InstrumentId> {
        let number = self.message.number(tag::SECURITY_ID)?;
        u32::try_from(number).ok().map(InstrumentId).filter(|instrument| self.instruments.has(*instrument))
    }

    pub(crate) fn side(&self) -> Result<Side, Refusal> {
        match self.message.text(tag::SIDE) {
            Some(b"1") => Ok(Side::Buy),
            Some(b"2") => Ok(Side::Sell),
            _ => Err(Refusal::unsupported("Side (54) must be 1 or 2")),
        }
    }

    pub(crate) fn price(&self, tag: u16) -> Result<Option<Price>, Refusal> {
        let read = |text| decimal::price(text).map_err(|fault| Refusal::other(format!("{tag}: {fault}")));
        self.message.text(tag).map(read).transpose()
    }

    pub(crate) fn quantity(&self, tag: u16) -> Result<Option<Quantity>, Refusal> {
        let wrong = |fault| Refusal { code: reject::QUANTITY, text: Cow::Owned(format!("{tag}: {fault}")) };
        self.message.text(tag).map(|text| decimal::quantity(text).map_err(wrong)).transpose()
    }

    fn needed<T>(value: Option<T>, text: &'static str) -> Result<T, Refusal> {
        value.ok_or(Refusal::other(text))
    }

    fn must_lack(&self, tag: u16, text: &'static str) -> Result<(), Refusal> {
        if self.message.text(tag).is_none() { Ok(()) } else { Err(Refusal::unsupported(text)) }
    }

    /// A new order.
    pub(crate) fn order(&self) -> Result<(NewOrder, Terms), Refusal> {
        self.refuse_what_is_not_served()?;
        let quantity = Self::needed(self.quantity(tag::ORDER_QTY)?, "OrderQty (38) is missing")?;
        let instructions = self.instructions()?;
        let time_in_force = self.time_in_force()?.unwrap_or(TimeInForce::Day);
        let order = NewOrder {
            side: self.side()?,
            kind: self.kind(&instructions)?,
            time_in_force,
            post_only: instructions.is_post_only,
            self_trade: self.self_trade(),
            quantity,
            display: self.display()?.unwrap_or_default(),
            minimum: self.quantity(tag::MIN_QTY)?.unwrap_or_default(),
            trigger: self.trigger()?,
        };
        Ok((order, self.terms()?))
    }

    /// New terms of an order, of which `now` is known. What the message does not say stays as it is; neither does an order change its type.
    pub(crate) fn new_terms(&self, now: Option<Terms>) -> Result<(NewTerms, Terms), Refusal> {
        self.refuse_what_is_not_served()?;
        let at_market = matches!(self.ord_type(), b'1' | b'3' | b'5');
        // Never the price that the door remembers: another session may have replaced it.
        let price = self.price(tag::PRICE)?.or_else(|| at_market.then_some(Price(0)));
        let time_in_force = self.time_in_force()?;
        let can_be_set =
            |one: &TimeInForce| matches!(one, TimeInForce::Day | TimeInForce::Gtc | TimeInForce::Gtd { .. });
        let terms = NewTerms {
            price: Self::needed(price, "Price (44) is missing")?,
            quantity: Self::needed(self.quantity(tag::ORDER_QTY)?, "OrderQty (38) is missing")?,
            display: self.display()?,
            trigger: self.price(tag::STOP_PX)?,
            time_in_force: time_in_force.filter(can_be_set),
            reduces: false,
        };
        let said = terms.time_in_force.and_then(|_| self.message.text(tag::TIME_IN_FORCE)?.first().copied());
        let told = Terms {
            ord_type: now.map_or_else(|| self.ord_type(), |now| now.ord_type),
            time_in_force: said.or(now.and_then(|now| now.time_in_force)),
            price: (terms.price != Price(0)).then_some(terms.price),
            stop: terms.trigger.or(now.and_then(|now| now.stop)),
        };
        Ok((terms, told))
    }

    fn ord_type(&self) -> u8 {
        self.message.text(tag::ORD_TYPE).and_then(|text| text.first()).copied().unwrap_or_default()
    }

    /// The terms as reports tell them.
    fn terms(&self) -> Result<Terms, Refusal> {
        let time_in_force = self.message.text(tag::TIME_IN_FORCE).and_then(|text| text.first());
        Ok(Terms {
            ord_type: self.ord_type(),
            time_in_force: Some(time_in_force.copied().unwrap_or(b'0')),
            price: self.price(tag::PRICE)?,
            stop: self.price(tag::STOP_PX)?,
        })
    }

    fn refuse_what_is_not_served(&self) -> Result<(), Refusal> {
        self.must_lack(tag::CASH_ORDER_QTY, "CashOrderQty (152) is not supported")?;
        self.must_lack(tag::EFFECTIVE_TIME, "EffectiveTime (168) is not supported")?;
        let offset = self.price(tag::PEG_DIFFERENCE)?.unwrap_or_default();
        if offset == Price(0) {
            Ok(())
        } else {
            Err(Refusal::unsupported("211 must be 0: pegs have no offset"))
        }
    }

    fn kind(&self, instructions: &Instructions) -> Result<OrderKind, Refusal> {
        let price = self.price(tag::PRICE)?;
        let limit = || Self::needed(price, "Price (44) is missing");
        match (self.ord_type(), instructions.peg) {
            (b'P', Some(to)) => Ok(OrderKind::Pegged { to, limit: limit()? }),
            (b'P', None) => Err(Refusal::unsupported("OrdType (40) P needs ExecInst (18) R or M")),
            (_, Some(_)) => Err(Refusal::unsupported("ExecInst (18) R and M need OrdType (40) P")),
            (b'2' | b'4' | b'B', None) => Ok(OrderKind::Limit { price: limit()? }),
            (b'1' | b'3' | b'5', None) if price.is_none_or(|price| price == Price(0)) => {
                Ok(OrderKind::Market)
            }
            (b'1' | b'3' | b'5', None) => {
                Err(Refusal::unsupported("Price (44) is not allowed in a market order"))
            }
            _ => Err(Refusal::unsupported("that OrdType (40) is not supported")),
        }
    }

    fn trigger(&self) -> Result<Option<Price>, Refusal> {
        let trigger = self.price(tag::STOP_PX)?;
        match (self.ord_type(), trigger) {
            (b'3' | b'4', None) => Err(Refusal::other("StopPx (99) is missing")),
            (b'3' | b'4', Some(_)) | (_, None) => Ok(trigger),
            (_, Some(_)) => Err(Refusal::unsupported("StopPx (99) needs OrdType (40) 3 or 4")),
        }
    }

    /// `None`: nothing is said.
    fn time_in_force(&self) -> Result<Option<TimeInForce>, Refusal> {
        let until = self.until()?;
        let said = self.message.text(tag::TIME_IN_FORCE);
        // FIX 4.2 has no time in force for the close, but kinds of orders.
        let is_at_close = matches!(self.ord_type(), b'5' | b'B');
        let time_in_force = match said {
            None | Some(b"0") if is_at_close => TimeInForce::AtClose,
            _ if is_at_close => {
                return Err(Refusal::unsupported("TimeInForce (59) is not allowed in an at-the-close order"));
            }
            None => return if until.is_none() { Ok(None) } else { Err(Refusal::other(UNTIL)) },
            Some(b"0") => TimeInForce::Day,
            Some(b"1") => TimeInForce::Gtc,
            Some(b"2") => TimeInForce::AtOpen,
            Some(b"3") => TimeInForce::Ioc,
            Some(b"4") => TimeInForce::Fok,
            Some(b"6") => TimeInForce::Gtd { until: Self::needed(until, UNTIL)? },
            Some(b"7") => TimeInForce::AtClose,
            Some(_) => return Err(Refusal::unsupported("that TimeInForce (59) is not supported")),
        };
        let is_dated = matches!(time_in_force, TimeInForce::Gtd { .. });
        if until.is_some() != is_dated { Err(Refusal::other(UNTIL)) } else { Ok(Some(time_in_force)) }
    }

    /// When the order expires: ExpireTime, or the end of ExpireDate, UTC.
    fn until(&self) -> Result<Option<Timestamp>, Refusal> {
        if let Some(time_ns) = self.message.time_ns(tag::EXPIRE_TIME) {
            return Ok(Some(Timestamp(time_ns)));
        }
        let Some(date) = self.message.text(tag::EXPIRE_DATE) else { return Ok(None) };
        let midnight = read_stamp(&[date, b"-00:00:00"].concat());
        let end = midnight.and_then(|midnight_ns| midnight_ns.checked_add(DAY_NS)).map(Timestamp);
        Self::needed(end, "ExpireDate (432) is too far ahead").map(Some)
    }

    /// What an iceberg shows: MaxFloor, or MaxShow.
    fn display(&self) -> Result<Option<Quantity>, Refusal> {
        let (floor, show) = (self.quantity(tag::MAX_FLOOR)?, self.quantity(tag::MAX_SHOW)?);
        match (floor, show) {
            (Some(floor), Some(show)) if floor != show => {
                Err(Refusal::unsupported("MaxFloor (111) and MaxShow (210) differ"))
            }
            _ => Ok(floor.or(show)),
        }
    }

    fn self_trade(&self) -> SelfTrade {
        match self.message.text(tag::SELF_TRADE_PREVENTION) {
            Some(b"1") => SelfTrade::CancelResting,
            Some(b"2") => SelfTrade::CancelIncoming,
            Some(b"3") => SelfTrade::CancelBoth,
            Some(b"4") => SelfTrade::Decrement,
            _ => SelfTrade::Allow,
        }
    }

    /// ExecInst (18): letters with spaces between them.
    fn instructions(&self) -> Result<Instructions, Refusal> {
        let mut found = Instructions::default();
        let text = self.message.text(tag::EXEC_INST).unwrap_or_default();
        for letter in text.split(|byte| *byte == b' ').filter(|letter| !letter.is_empty()) {
            match letter {
                b"6" => found.is_post_only = true,
                b"R" if found.peg.is_none() => found.peg = Some(Peg::Best),
                b"M" if found.peg.is_none() => found.peg = Some(Peg::Mid),
                _ => return Err(Refusal::unsupported("ExecInst (18) must be 6, R or M")),
            }
        }
        Ok(found)
    }
}

const UNTIL: &str = "TimeInForce (59) 6 and ExpireTime (126) or 432 need each other";

#[derive(Default)]
struct Instructions {
    is_post_only: bool,
    peg: Option<Peg>,
}
