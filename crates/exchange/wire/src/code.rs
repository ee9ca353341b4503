//! Domain types as the small numbers that stand for them, the same in records and frames.
//!
//! A code that no value has is refused by the name of its field; none is ever reused.

use pares_types::{
    Band, BusinessDay, NewOrder, OrderKind, Peg, Phase, Price, Quantity, Reason, Rule, Status, TieBreak,
    TimeInForce,
};

use crate::WireError;
use crate::field::coded;

/// The [`Status`] a code stands for.
///
/// # Errors
/// If no status has that code.
pub fn status(code: u8) -> Result<Status, WireError> {
    coded(code)
}

/// The [`Reason`] a code stands for.
///
/// # Errors
/// If no reason has that code.
pub fn reason(code: u8) -> Result<Reason, WireError> {
    coded(code)
}

/// `until_ns` counts for [`GOOD_TILL_DATE`] only and is zero otherwise.
pub(crate) fn time_in_force(code: u8, until_ns: u64) -> Result<TimeInForce, WireError> {
    if code != GOOD_TILL_DATE && until_ns != 0 {
        return Err(WireError::InvalidField("until_ns"));
    }
    TimeInForce::of(code, until_ns).ok_or(WireError::InvalidField("time_in_force"))
}

/// 0: as it is.
pub(crate) fn new_time_in_force(code: u8, until_ns: u64) -> Result<Option<TimeInForce>, WireError> {
    if code == 0 && until_ns == 0 { Ok(None) } else { time_in_force(code, until_ns).map(Some) }
}

/// The code of [`TimeInForce::Gtd`], the only one with a date.
pub(crate) const GOOD_TILL_DATE: u8 = 5;

/// One byte says kind and flag: limit, market, post-only limit, post-only market, pegged to the best price,
/// to the middle, the same two post-only. Post-only means nothing for most, but a venue must see it to
/// refuse it; dropping the flag here would take liquidity that the member declined.
pub(crate) fn order_kind(code: u8, price: i64) -> Result<(OrderKind, bool), WireError> {
    let price = Price(price);
    let pegged = |to| OrderKind::Pegged { to, limit: price };
    match code {
        1 => Ok((OrderKind::Limit { price }, false)),
        3 => Ok((OrderKind::Limit { price }, true)),
        2 | 4 if price == Price(0) => Ok((OrderKind::Market, code == 4)),
        2 | 4 => Err(WireError::InvalidField("price")),
        5 | 7 => Ok((pegged(Peg::Best), code == 7)),
        6 | 8 => Ok((pegged(Peg::Mid), code == 8)),
        _ => Err(WireError::InvalidField("order_kind")),
    }
}

/// The code and the price.
pub(crate) fn order_kind_code(kind: OrderKind, post_only: bool) -> (u8, i64) {
    let either = |plain, post_only_code| if post_only { post_only_code } else { plain };
    match kind {
        OrderKind::Limit { price } => (either(1, 3), price.0),
        OrderKind::Market => (either(2, 4), 0),
        OrderKind::Pegged { to: Peg::Best, limit } => (either(5, 7), limit.0),
        OrderKind::Pegged { to: Peg::Mid, limit } => (either(6, 8), limit.0),
    }
}

/// Bit 0 of the flags of an order: the trigger counts. Without it the field is zero.
pub(crate) const FLAG_TRIGGER: u8 = 1;
/// Bit 1 of the flags of an amendment: the display counts. Without it the field is zero.
pub(crate) const FLAG_DISPLAY: u8 = 2;

/// Bit 2 of the flags of an amendment: it only reduces.
pub(crate) const FLAG_REDUCES: u8 = 4;

/// A flag that this build does not know would ask for something it does not do.
pub(crate) fn known(flags: u8, all: u8) -> Result<(), WireError> {
    if flags & !all == 0 { Ok(()) } else { Err(WireError::InvalidField("flags")) }
}

pub(crate) fn trigger(flags: u8, price: i64) -> Result<Option<Price>, WireError> {
    match (flags & FLAG_TRIGGER != 0, price) {
        (true, price) => Ok(Some(Price(price))),
        (false, 0) => Ok(None),
        (false, _) => Err(WireError::InvalidField("trigger")),
    }
}

pub(crate) fn display(flags: u8, shares: u64) -> Result<Option<Quantity>, WireError> {
    match (flags & FLAG_DISPLAY != 0, shares) {
        (true, shares) => Ok(Some(Quantity(shares))),
        (false, 0) => Ok(None),
        (false, _) => Err(WireError::InvalidField("display")),
    }
}

pub(crate) fn flags_code(trigger: Option<Price>, display: Option<Quantity>) -> u8 {
    u8::from(trigger.is_some()) * FLAG_TRIGGER + u8::from(display.is_some()) * FLAG_DISPLAY
}

/// Whether the order says more than the plain layout of an order holds.
pub(crate) fn is_extended(order: &NewOrder) -> bool {
    let dated = matches!(order.time_in_force, TimeInForce::Gtd { .. });
    dated || !order.display.is_zero() || !order.minimum.is_zero() || order.trigger.is_some()
}

/// A [`Rule`] as its code and two operands; an operand that the rule does not have is zero, and one that is
/// not a price stands as its 64 bits.
pub(crate) fn rule_code(rule: Rule) -> (u8, i64, i64) {
    match rule {
        Rule::PriceRange { min, max } => (1, min.0, max.0),
        Rule::Tick { from, tick } => (2, from.0, tick.0),
        Rule::Lot(lot) => (3, lot.0.cast_signed(), 0),
        Rule::QuantityMax(shares) => (4, shares.0.cast_signed(), 0),
        Rule::ValueMax(value) => (5, value.cast_signed(), 0),
        Rule::OrdersMax(orders) => (6, orders.into(), 0),
        Rule::StepMax(events) => (7, events.into(), 0),
        Rule::StaticBand(band) => (8, band.width.into(), band.least.0),
        Rule::DynamicBand(band) => (9, band.width.into(), band.least.0),
        Rule::Call { ns } => (10, ns.cast_signed(), 0),
        Rule::Schedule { at_ns, phase } => (11, at_ns.cast_signed(), phase.map_or(0, |phase| phase as i64)),
        Rule::Reference(price) => (12, price.0, 0),
        Rule::Extension { ns, max, market } => {
            (13, ns.cast_signed(), i64::from(max) | i64::from(market) << 8)
        }
        Rule::AuctionMin(shares) => (14, shares.0.cast_signed(), 0),
        Rule::TieBreak(one) => (15, i64::from(one as u8), 0),
        Rule::PressureLimit(width) => (16, width.into(), 0),
        Rule::DisplayDecrease { keeps } => (17, keeps.into(), 0),
        Rule::RandomEnd { ns } => (18, ns.cast_signed(), 0),
        Rule::IcebergRefill { fresh } => (19, fresh.into(), 0),
        Rule::MarketRemainder { rests } => (20, rests.into(), 0),
    }
}

pub(crate) fn rule(code: u8, first: i64, second: i64) -> Result<Rule, WireError> {
    let small = |field: i64| u32::try_from(field).map_err(|_| WireError::InvalidField("first"));
    let rule = match code {
        1 => Rule::PriceRange { min: Price(first), max: Price(second) },
        2 => Rule::Tick { from: Price(first), tick: Price(second) },
        3 => Rule::Lot(Quantity(first.cast_unsigned())),
        4 => Rule::QuantityMax(Quantity(first.cast_unsigned())),
        5 => Rule::ValueMax(first.cast_unsigned()),
        6 => Rule::OrdersMax(small(first)?),
        7 => Rule::StepMax(small(first)?),
        8 => Rule::StaticBand(Band { width: small(first)?, least: Price(second) }),
        9 => Rule::DynamicBand(Band { width: small(first)?, least: Price(second) }),
        10 => Rule::Call { ns: first.cast_unsigned() },
        11 => Rule::Schedule { at_ns: first.cast_unsigned(), phase: scheduled(second)? },
        12 => Rule::Reference(Price(first)),
        13 => {
            let [max, market, ..] = second.to_le_bytes();
            Rule::Extension { ns: first.cast_unsigned(), max, market: market == 1 }
        }
        14 => Rule::AuctionMin(Quantity(first.cast_unsigned())),
        15 if first == 0 => Rule::TieBreak(TieBreak::Latest),
        15 if first == 1 => Rule::TieBreak(TieBreak::NearestLimit),
        16 => Rule::PressureLimit(small(first)?),
        17 if first < 2 => Rule::DisplayDecrease { keeps: first == 1 },
        18 => Rule::RandomEnd { ns: first.cast_unsigned() },
        19 if first < 2 => Rule::IcebergRefill { fresh: first == 1 },
        20 if first < 2 => Rule::MarketRemainder { rests: first == 1 },
        _ => return Err(WireError::InvalidField("rule")),
    };
    if rule_code(rule) == (code, first, second) { Ok(rule) } else { Err(WireError::InvalidField("second")) }
}

fn scheduled(code: i64) -> Result<Option<Phase>, WireError> {
    let code = u8::try_from(code).map_err(|_| WireError::InvalidField("second"))?;
    if code == 0 { Ok(None) } else { coded(code).map(Some) }
}

/// A business day: not 0, and no later than people can write it.
pub(crate) fn business_day(day: i64) -> Result<BusinessDay, WireError> {
    let day = u32::try_from(day).map(BusinessDay).ok();
    day.filter(|day| (BusinessDay(1)..=BusinessDay::MAX).contains(day)).ok_or(WireError::InvalidField("day"))
}
