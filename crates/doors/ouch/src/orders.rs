//! What O and U say, as orders of the exchange.
//!
//! A field that asks for something that the exchange does not do is refused, never left out.

use pares_types::{
    NewOrder, NewTerms, OrderKind, Peg, Price, Quantity, SelfTrade, Side, TimeInForce, Timestamp,
};

use crate::fields::{Appendage, Fields};

/// Prices that mean: at market. Of both the standard's; limits end below them.
const AT_MARKET: [u64; 2] = [2_000_000_000, 0x7fff_ffff];
const SECOND_NS: u64 = 1_000_000_000;
/// Seconds that an order may live by ExpireTime: less than a day.
const EXPIRE_MAX: u32 = 86_400;

/// The tags of the standard that are looked at.
pub(crate) mod tag {
    pub(crate) const FIRM: u8 = 2;
    pub(crate) const MIN_QTY: u8 = 3;
    pub(crate) const CUSTOMER_TYPE: u8 = 4;
    pub(crate) const MAX_FLOOR: u8 = 5;
    pub(crate) const PRICE_TYPE: u8 = 6;
    pub(crate) const PEG_OFFSET: u8 = 7;
    pub(crate) const POST_ONLY: u8 = 12;
    pub(crate) const EXPIRE_TIME: u8 = 15;
    pub(crate) const TRADE_NOW: u8 = 16;
    pub(crate) const HANDLE_INST: u8 = 17;
    pub(crate) const DISPLAY_QUANTITY: u8 = 22;
    pub(crate) const DISPLAY_PRICE: u8 = 23;
    pub(crate) const GROUP_ID: u8 = 24;
    pub(crate) const SHARES_LOCATED: u8 = 25;
    pub(crate) const LOCATE_BROKER: u8 = 26;
    pub(crate) const SIDE: u8 = 27;
    pub(crate) const USER_REF_IDX: u8 = 28;
    pub(crate) const AIQ_STRATEGY: u8 = 29;
    // The exchange's own.
    pub(crate) const TRIGGER: u8 = 200;
    pub(crate) const UNTIL: u8 = 202;
    pub(crate) const NAME: u8 = 210;
    pub(crate) const POSITION: u8 = 211;
    pub(crate) const INSTRUMENT: u8 = 212;
    pub(crate) const CODE: u8 = 213;
    pub(crate) const SHARES: u8 = 214;
    pub(crate) const REMAINING: u8 = 215;
    pub(crate) const ORDER: u8 = 216;
}

/// Why a message is refused before the gateway sees it: a word, as the Debug packet bears it.
pub(crate) type Refused = &'static str;

pub(crate) const MALFORMED: Refused = "malformed_request";
pub(crate) const UNSUPPORTED: Refused = "unsupported";

/// What O and U say besides their numbers: the values of their appendage.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    minimum: Option<Quantity>,
    display: Option<Quantity>,
    peg: Option<Peg>,
    post_only: bool,
    expire_s: Option<u32>,
    trigger: Option<Price>,
    self_trade: Option<SelfTrade>,
    until: Option<Timestamp>,
}

impl Values {
    fn read(appendage: Appendage<'_>) -> Result<Self, Refused> {
        let mut values = Self::default();
        for value in appendage {
            let (tag, value) = value.ok_or(MALFORMED)?;
            values.take(tag, value)?;
        }
        Ok(values)
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Result<(), Refused> {
        match tag {
            tag::MIN_QTY => self.minimum = Some(Quantity(u64::from(number(value)?))),
            tag::MAX_FLOOR => self.display = Some(Quantity(u64::from(number(value)?))),
            tag::PRICE_TYPE => self.peg = peg(byte(value)?)?,
            tag::POST_ONLY => self.post_only = yes(value, b'P', b'N')?,
            tag::EXPIRE_TIME => self.expire_s = Some(number(value)?).filter(|seconds| *seconds > 0),
            tag::TRIGGER => self.trigger = Some(price(long(value)?)),
            tag::AIQ_STRATEGY => self.self_trade = Some(self_trade(byte(value)?)?),
            tag::UNTIL => self.until = Some(Timestamp(long(value)?)),
            _ => return inert(tag, value),
        }
        Ok(())
    }
}

/// A value that is read and changes nothing, or else asks for what is not there.
pub(crate) fn inert(tag: u8, value: &[u8]) -> Result<(), Refused> {
    let (bytes, asks_for_nothing) = match tag {
        tag::FIRM | tag::LOCATE_BROKER => (4, true),
        tag::CUSTOMER_TYPE | tag::SHARES_LOCATED => (1, true),
        tag::GROUP_ID => (2, true),
        tag::PEG_OFFSET => (4, value == [0; 4]),
        tag::TRADE_NOW => (1, matches!(value, b"N" | b" ")),
        tag::HANDLE_INST => (1, value == b" "),
        tag::USER_REF_IDX => (1, value == [0]),
        _ => return Err(UNSUPPORTED),
    };
    if value.len() != bytes {
        return Err(MALFORMED);
    }
    if asks_for_nothing { Ok(()) } else { Err(UNSUPPORTED) }
}

pub(crate) fn byte(value: &[u8]) -> Result<u8, Refused> {
    <[u8; 1]>::try_from(value).map(|[byte]| byte).map_err(|_| MALFORMED)
}

fn number(value: &[u8]) -> Result<u32, Refused> {
    value.try_into().map(u32::from_be_bytes).map_err(|_| MALFORMED)
}

fn long(value: &[u8]) -> Result<u64, Refused> {
    value.try_into().map(u64::from_be_bytes).map_err(|_| MALFORMED)
}

fn yes(value: &[u8], yes: u8, no: u8) -> Result<bool, Refused> {
    match byte(value)? {
        said if said == yes => Ok(true),
        said if said == no || said == b' ' => Ok(false),
        _ => Err(UNSUPPORTED),
    }
}

/// Prices below zero, which the standard has not, are two's complements.
pub(crate) fn price(units: u64) -> Price {
    Price(units.cast_signed())
}

fn peg(price_type: u8) -> Result<Option<Peg>, Refused> {
    match price_type {
        b'L' | b' ' => Ok(None),
        b'R' => Ok(Some(Peg::Best)),
        b'M' => Ok(Some(Peg::Mid)),
        _ => Err(UNSUPPORTED),
    }
}

/// AIQ strategies of the firm's level: a member is a firm.
fn self_trade(strategy: u8) -> Result<SelfTrade, Refused> {
    Ok(match strategy {
        b'*' => SelfTrade::default(),
        b'N' => SelfTrade::Allow,
        b'O' => SelfTrade::CancelResting,
        b'W' => SelfTrade::CancelIncoming,
        b'D' => SelfTrade::Decrement,
        // The exchange's own.
        b'B' => SelfTrade::CancelBoth,
        _ => return Err(UNSUPPORTED),
    })
}

pub(crate) fn side(code: u8) -> Result<Side, Refused> {
    match code {
        b'B' => Ok(Side::Buy),
        b'S' => Ok(Side::Sell),
        _ => Err(UNSUPPORTED),
    }
}

fn one_of(code: u8, allowed: &[u8]) -> Result<(), Refused> {
    if allowed.contains(&code) { Ok(()) } else { Err(UNSUPPORTED) }
}

/// An O.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) symbol: [u8; 8],
    pub(crate) order: NewOrder,
}

impl Entry {
    /// Reads what follows the UserRefNum.
    pub(crate) fn read(mut fields: Fields<'_>, utc_ns: u64) -> Result<Self, Refused> {
        let mut amounts = || Some((fields.byte()?, fields.u32()?, fields.bytes()?, fields.u64()?));
        let (side_code, quantity, symbol, units) = amounts().ok_or(MALFORMED)?;
        let [time_code, display, capacity, sweep, cross] = fields.bytes().ok_or(MALFORMED)?;
        fields.bytes::<14>().ok_or(MALFORMED)?;
        let values = Values::read(fields.appendage().ok_or(MALFORMED)?)?;
        one_of(display, b"YA")?;
        one_of(capacity, b"APRO")?;
        one_of(sweep, b"NY")?;
        let order = NewOrder {
            side: side(side_code)?,
            kind: kind(units, values.peg)?,
            time_in_force: time_in_force(cross, time_code, &values, utc_ns)?,
            post_only: values.post_only,
            self_trade: values.self_trade.unwrap_or_default(),
            quantity: Quantity(u64::from(quantity)),
            display: values.display.unwrap_or(Quantity::ZERO),
            minimum: values.minimum.unwrap_or(Quantity::ZERO),
            trigger: values.trigger,
        };
        Ok(Self { symbol, order })
    }
}

fn kind(units: u64, peg: Option<Peg>) -> Result<OrderKind, Refused> {
    match (AT_MARKET.contains(&units), peg) {
        (true, None) => Ok(OrderKind::Market),
        (true, Some(_)) => Err(UNSUPPORTED),
        (false, None) => Ok(OrderKind::Limit { price: price(units) }),
        (false, Some(to)) => Ok(OrderKind::Pegged { to, limit: price(units) }),
    }
}

fn time_in_force(cross: u8, code: u8, values: &Values, utc_ns: u64) -> Result<TimeInForce, Refused> {
    let time = match (cross, code) {
        (b'O', b'0') => TimeInForce::AtOpen,
        (b'C', b'0') => TimeInForce::AtClose,
        (b'N', b'3') => TimeInForce::Ioc,
        (b'N', b'4') => TimeInForce::Fok,
        (b'N', code) => lasting(code, values, utc_ns)?,
        _ => return Err(UNSUPPORTED),
    };
    let has_date = values.until.is_some() || values.expire_s.is_some();
    if has_date == matches!(time, TimeInForce::Gtd { .. }) { Ok(time) } else { Err("invalid_combination") }
}

/// A time in force with which an order may rest.
fn lasting(code: u8, values: &Values, utc_ns: u64) -> Result<TimeInForce, Refused> {
    match code {
        b'0' => Ok(TimeInForce::Day),
        b'1' => Ok(TimeInForce::Gtc),
        b'6' => until(values, utc_ns).map(|until| TimeInForce::Gtd { until }),
        _ => Err(UNSUPPORTED),
    }
}

fn until(values: &Values, utc_ns: u64) -> Result<Timestamp, Refused> {
    match (values.until, values.expire_s) {
        (Some(until), None) => Ok(until),
        (None, Some(seconds)) if seconds < EXPIRE_MAX => {
            Ok(Timestamp(utc_ns.saturating_add(u64::from(seconds) * SECOND_NS)))
        }
        _ => Err("invalid_combination"),
    }
}

/// A U.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) original: u32,
    pub(crate) user_ref_num: u32,
    pub(crate) terms: Result<NewTerms, Refused>,
}

impl Replacement {
    /// Reads what follows the type; `None` if even its numbers are missing.
    pub(crate) fn read(mut fields: Fields<'_>, utc_ns: u64) -> Option<Self> {
        let (original, user_ref_num) = (fields.u32()?, fields.u32()?);
        Some(Self { original, user_ref_num, terms: terms(fields, utc_ns) })
    }
}

fn terms(mut fields: Fields<'_>, utc_ns: u64) -> Result<NewTerms, Refused> {
    let (quantity, units) = (fields.u32().ok_or(MALFORMED)?, fields.u64().ok_or(MALFORMED)?);
    let (time_in_force, display) = (fields.byte().ok_or(MALFORMED)?, fields.byte().ok_or(MALFORMED)?);
    one_of(fields.byte().ok_or(MALFORMED)?, b"NY")?;
    one_of(display, b"YA")?;
    fields.bytes::<14>().ok_or(MALFORMED)?;
    let values = Values::read(fields.appendage().ok_or(MALFORMED)?)?;
    if values.minimum.is_some() || values.peg.is_some() || values.post_only || values.self_trade.is_some() {
        return Err(UNSUPPORTED);
    }
    let has_date = values.until.is_some() || values.expire_s.is_some();
    if has_date != (time_in_force == b'6') {
        return Err("invalid_combination");
    }
    Ok(NewTerms {
        price: if AT_MARKET.contains(&units) { Price(0) } else { price(units) },
        quantity: Quantity(u64::from(quantity)),
        display: values.display,
        trigger: values.trigger,
        time_in_force: match time_in_force {
            b' ' => None,
            code => Some(lasting(code, &values, utc_ns)?),
        },
        reduces: false,
    })
}
