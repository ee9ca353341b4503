//! What happened, as text.

use pares_book::{Indication, RestingOrder};
use pares_types::{
    CancelCause, Command, DAY_NS, Event, IncomingCause, OrderId, OrderKind, Outcome, Peg, Phase, Price,
    Quantity, Reason, Request, RestCause, SelfTrade, Side, Status, TimeInForce, Timestamp,
};
use std::collections::BTreeMap;

/// How orders are called.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<OrderId, String>);

impl Names {
    pub(crate) fn name(&mut self, order: OrderId, name: Option<&str>) {
        let name = name.map_or_else(|| format!("#{}", order.0.sequence()), str::to_owned);
        self.0.insert(order, name);
    }

    pub(crate) fn of(&self, order: OrderId) -> &str {
        &self.0[&order]
    }

    /// The order last called so.
    pub(crate) fn id(&self, name: &str) -> OrderId {
        let found = self.0.iter().rev().find(|(_, known)| *known == name);
        *found.unwrap_or_else(|| panic!("no order is named {name}")).0
    }
}

pub(crate) fn tell_event(event: &Event, names: &Names) -> String {
    match *event {
        Event::Fill { resting, resting_member, price, quantity, resting_remaining, .. } => {
            let (name, price) = (names.of(resting), money(price));
            format!("fill {quantity} @ {price} with {name} of m{resting_member}, {resting_remaining} left")
        }
        Event::Cancelled { order, member, quantity, cause, .. } => {
            format!("cancelled {quantity} of {} of m{member}, {}", names.of(order), tell_cause(cause))
        }
        Event::Incoming { order, member, side, price, quantity, cause, .. } => {
            let (name, side) = (names.of(order), tell_side(side));
            let price = if price == Price(0) { "market".to_owned() } else { money(price) };
            let why = match cause {
                IncomingCause::Triggered => "triggered",
                IncomingCause::Repriced => "repriced",
                IncomingCause::Auction => "auction",
                IncomingCause::Continued => "continued",
            };
            format!("incoming {name} of m{member}: {side} {quantity} @ {price}, {why}")
        }
        Event::Rested { order, member, side, price, quantity, shown, cause, .. } => {
            let (name, side, price) = (names.of(order), tell_side(side), money(price));
            match rest_cause(cause) {
                Some(why) => {
                    format!("rested {name} of m{member}: {side} {quantity} @ {price} showing {shown}, {why}")
                }
                None if cause == RestCause::Unfinished => {
                    format!("unfinished {name} of m{member}: {side} {quantity}")
                }
                None => format!("withdrawn {name} of m{member}: {side} {quantity} from {price}"),
            }
        }
        Event::PhaseEntered { phase, until, reference } => tell_phase(phase, until, reference),
        Event::Auction { price, quantity, surplus, surplus_side, firm } => {
            let figures = tell_indication(Indication { price, quantity, surplus, surplus_side });
            if firm { format!("auction {figures}") } else { format!("indicative {figures}") }
        }
        Event::Busted { resting, incoming, position, index, price, quantity } => {
            let (resting, incoming) = (names.of(resting), names.of(incoming));
            format!("busted {position}.{index}: {quantity} @ {} of {resting} with {incoming}", money(price))
        }
        _ => panic!("{event:?} is of a market, not of a book"),
    }
}

fn tell_phase(phase: Phase, until: Timestamp, reference: Option<Price>) -> String {
    let until =
        if until == Timestamp::NEVER { String::new() } else { format!(" until {}", tell_time(until)) };
    let reference = reference.map_or_else(String::new, |price| format!(", reference {}", money(price)));
    format!("phase {phase:?}{until}{reference}")
}

pub(crate) fn tell_indication(auction: Indication) -> String {
    let Indication { price, quantity, surplus, surplus_side } = auction;
    let left = if surplus == Quantity::ZERO {
        String::new()
    } else {
        format!(", {surplus} left to {}", tell_side(surplus_side))
    };
    format!("{quantity} @ {}{left}", money(price))
}

pub(crate) fn tell_outcome(outcome: &Outcome, request: &Request, names: &Names) -> String {
    let Outcome { status, reason, order, executed, remaining } = *outcome;
    let (name, why) = (names.of(order), tell_reason(reason));
    let of_an_order =
        matches!(request.command, Command::Enter(_) | Command::Amend(_) | Command::Cancel { .. });
    let totals = format!("executed {executed}, remaining {remaining}");
    match status {
        Status::MassCancelled => format!("mass cancelled{why}: {executed} orders, {remaining} orders left"),
        Status::Accepted => format!("accepted{why}"),
        Status::Refused if !of_an_order => format!("refused{why}"),
        Status::Refused => format!("{name} refused{why}: {totals}"),
        Status::Resting => format!("{name} resting{why}: {totals}"),
        Status::Held => format!("{name} held{why}: {totals}"),
        Status::Filled => format!("{name} filled{why}: executed {executed}"),
        Status::Cancelled => format!("{name} cancelled{why}: executed {executed}"),
    }
}

/// The terms of a held order.
pub(crate) fn terms(order: &RestingOrder) -> String {
    let price = match order.kind {
        OrderKind::Limit { price } => money(price),
        OrderKind::Market => "market".to_owned(),
        OrderKind::Pegged { to: Peg::Best, limit } => format!("{} peg best", money(limit)),
        OrderKind::Pegged { to: Peg::Mid, limit } => format!("{} peg mid", money(limit)),
    };
    let elected = if order.elected { " (elected)" } else { "" };
    let stop = order.trigger.map_or_else(String::new, |trigger| format!(" stop {}{elected}", money(trigger)));
    let stay = match order.time_in_force {
        TimeInForce::Day => String::new(),
        TimeInForce::AtClose => " closing".to_owned(),
        TimeInForce::Gtc => " gtc".to_owned(),
        TimeInForce::Gtd { until } => format!(" gtd {}", tell_time(until)),
        other => format!(" {other:?}"),
    };
    let stp = if order.self_trade == SelfTrade::Allow { "" } else { " stp" };
    format!("{} {} @ {price}{stop}{stay}{stp}", tell_side(order.side), order.remaining)
}

fn tell_side(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

/// Seconds of the first day as a number, whole minutes from 01:00 on as time of day, other days before a slash.
pub(crate) fn tell_time(time: Timestamp) -> String {
    if time == Timestamp::NEVER {
        return "never".to_owned();
    }
    let (day, seconds) = (time.0 / DAY_NS, time.0 % DAY_NS / 1_000_000_000);
    let day = if day == 0 { String::new() } else { format!("{day}/") };
    if seconds >= 3_600 && seconds.is_multiple_of(60) {
        format!("{day}{:02}:{:02}", seconds / 3_600, seconds / 60 % 60)
    } else {
        format!("{day}{seconds}")
    }
}

/// Currency with two decimals, four where they are needed.
pub(crate) fn money(price: Price) -> String {
    let text = price.to_string();
    text.strip_suffix("00").unwrap_or(&text).to_owned()
}

fn rest_cause(cause: RestCause) -> Option<&'static str> {
    match cause {
        RestCause::Triggered => Some("triggered"),
        RestCause::Repriced => Some("repriced"),
        RestCause::Refilled => Some("refilled"),
        RestCause::Priced => Some("priced"),
        RestCause::Released => Some("released"),
        RestCause::Continued => Some("continued"),
        RestCause::Withdrawn | RestCause::Unfinished => None,
    }
}

fn tell_cause(cause: CancelCause) -> &'static str {
    match cause {
        CancelCause::Requested => "requested",
        CancelCause::MassCancel => "mass cancel",
        CancelCause::Remainder => "remainder",
        CancelCause::FillOrKill => "fill or kill",
        CancelCause::Reduced => "reduced",
        CancelCause::SelfTrade => "self-trade",
        CancelCause::Minimum => "minimum",
        CancelCause::PriceBand => "price band",
        CancelCause::Expired => "expired",
        CancelCause::DayEnd => "day end",
        CancelCause::CallOver => "call over",
        CancelCause::Blocked => "blocked",
        CancelCause::Removed => "removed",
        CancelCause::SessionEnded => "session ended",
    }
}

fn tell_reason(reason: Reason) -> String {
    if reason == Reason::None { String::new() } else { format!(" ({reason})") }
}
