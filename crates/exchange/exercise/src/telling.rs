//! What happened, as text.

use pares_book::{Indication, RestingOrder};
use pares_types::{
    CancelCause, Command, DAY_NS, Event, OrderId, OrderKind, Outcome, Peg, Phase, Price, Quantity, Reason,
    Request, RestCause, SelfTrade, Side, Status, TimeInForce, Timestamp,
};
use std::collections::BTreeMap;

/// How orders are called.
#[derive(Default)]
pub struct OrderNames(BTreeMap<OrderId, String>);

impl OrderNames {
    /// Calls an order so; `#n` by its sequence without a name.
    pub fn name(&mut self, order: OrderId, name: Option<&str>) {
        let name = name.map_or_else(|| format!("#{}", order.0.sequence()), str::to_owned);
        self.0.insert(order, name);
    }

    /// What an order is called.
    pub fn of(&self, order: OrderId) -> &str {
        &self.0[&order]
    }

    /// The order last called so.
    pub fn id(&self, name: &str) -> OrderId {
        let found = self.0.iter().rev().find(|(_, known)| *known == name);
        *found.unwrap_or_else(|| panic!("no order is named {name}")).0
    }
}

/// An event.
pub fn tell_event(event: &Event, names: &OrderNames) -> String {
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
            let why = format!("{cause:?}").to_lowercase();
            format!("incoming {name} of m{member}: {side} {quantity} @ {price}, {why}")
        }
        Event::Rested { order, member, side, price, quantity, shown, cause, .. } => {
            let (name, side, price) = (names.of(order), tell_side(side), money(price));
            let why = format!("{cause:?}").to_lowercase();
            match cause {
                RestCause::Unfinished => format!("{why} {name} of m{member}: {side} {quantity}"),
                RestCause::Withdrawn => format!("{why} {name} of m{member}: {side} {quantity} from {price}"),
                _ => {
                    format!("rested {name} of m{member}: {side} {quantity} @ {price} showing {shown}, {why}")
                }
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

/// What an auction would do.
pub fn tell_indication(auction: Indication) -> String {
    let Indication { price, quantity, surplus, surplus_side } = auction;
    let left = if surplus == Quantity::ZERO {
        String::new()
    } else {
        format!(", {surplus} left to {}", tell_side(surplus_side))
    };
    format!("{quantity} @ {}{left}", money(price))
}

/// An outcome, as the request that it answers needs it.
pub fn tell_outcome(outcome: &Outcome, request: &Request, names: &OrderNames) -> String {
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
pub fn terms(order: &RestingOrder) -> String {
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
pub fn tell_time(time: Timestamp) -> String {
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
pub fn money(price: Price) -> String {
    let text = price.to_string();
    text.strip_suffix("00").unwrap_or(&text).to_owned()
}

fn tell_cause(cause: CancelCause) -> String {
    cause.word().replace("self_trade", "self-trade").replace('_', " ")
}

fn tell_reason(reason: Reason) -> String {
    if reason == Reason::None { String::new() } else { format!(" ({reason})") }
}
