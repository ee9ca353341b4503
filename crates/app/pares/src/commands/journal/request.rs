//! Requests in words, and as JSON.

use pares_types::{
    Amendment, Band, BusinessDay, Command, Entry, Guarded, Key, NewOrder, OrderKind, Phase, Price, Proposal,
    Registration, Request, Rule, SelfTrade, TimeInForce,
};
use serde_json::{Value, json};

use crate::commands::admin::limit_words;
use crate::text::name;
use crate::utc;

/// A request in a line.
pub fn line(request: &Request) -> String {
    let Request { id, member, client_order_id, instrument, .. } = request;
    let what = what(&request.command);
    format!("{id} member {member} name {client_order_id} instrument {instrument}: {what}")
}

/// What is asked, in words.
pub fn what(command: &Command) -> String {
    match *command {
        Command::Enter(order) => order_words(&order),
        Command::Amend(amendment) => amendment_words(&amendment),
        Command::Cancel { target } => format!("cancel {target}"),
        Command::MassCancel { side } => {
            format!("mass_cancel{}", side.map_or(String::new(), |side| format!(" {}", name(&side))))
        }
        Command::Time { .. } => "time".to_owned(),
        Command::SetPhase(phase) => format!("set_phase {}", name(&phase)),
        Command::SetRule(rule) => format!("set_rule {}", rule_words(&rule)),
        Command::AddInstrument(symbol) => format!("add_instrument {symbol}"),
        Command::RemoveInstrument => "remove_instrument".to_owned(),
        Command::Block { member } => format!("block member {member}"),
        Command::Unblock { member } => format!("unblock member {member}"),
        Command::CancelGuarded(Guarded { member, session, last }) => {
            format!("cancel_guarded of session {session} of member {member} through {last}")
        }
        Command::Register(change) => registration_words(&change),
        Command::BeginDay { day } => format!("begin_day {day}"),
        Command::EndDay { day } => format!("end_day {day}"),
        Command::Bust(trade) => format!(
            "bust {}.{}: {} at {} of {} with {}",
            trade.position, trade.index, trade.quantity, trade.price, trade.incoming, trade.resting
        ),
    }
}

fn registration_words(change: &Registration) -> String {
    let whole = format!("member {}", change.member);
    let of = if change.session == 0 { whole } else { format!("{whole} session {}", change.session) };
    let what = match change.entry {
        Entry::AddMember => "added".to_owned(),
        Entry::RemoveMember => "removed".to_owned(),
        Entry::SetKey(Key::Ed25519(_)) => "new key (ed25519)".to_owned(),
        Entry::SetKey(Key::Shared(_)) => "new key (shared)".to_owned(),
        Entry::RevokeKey => "revoked".to_owned(),
        Entry::SetRights(rights) => format!("may {rights}"),
        Entry::SetLimits(limits) => limit_words(&limits, 0),
        Entry::SetPositionMax(0) => "no limit of positions".to_owned(),
        Entry::SetPositionMax(shares) => format!("position {shares}"),
        Entry::SetFourEyes(is_on) => format!("four eyes {}", if is_on { "on" } else { "off" }),
        Entry::Propose(proposal) => format!("proposes {}", proposal_words(&proposal)),
        Entry::ListInstrument(instrument) => format!("may trade instrument {instrument}"),
        Entry::UnlistInstrument(instrument) => format!("instrument {instrument} is not listed"),
        Entry::SetCopied(copied) => format!("copies member {copied}"),
    };
    format!("register {of}: {what}")
}

fn proposal_words(proposal: &Proposal) -> String {
    let Proposal { instrument, kind, operand, .. } = proposal;
    match kind {
        1 if *operand == Phase::Closed as u32 => format!("to close instrument {instrument}"),
        1 => format!("to halt instrument {instrument}"),
        2 => format!("to remove instrument {instrument}"),
        3 => format!("to block member {operand}"),
        4 => format!("to end the day {}", BusinessDay(*operand)),
        5 => "to switch four eyes off".to_owned(),
        7 => format!("to remove member {operand}"),
        _ => {
            let what = match operand >> 16 {
                1 | 2 => "members and operators",
                3 | 4 => "a key",
                5 => "that a key is revoked",
                6 => "rights",
                10 | 11 => "instruments",
                _ => "limits",
            };
            match operand & 0xffff {
                0 => format!("of operators: {what}"),
                session => format!("of operator {session}: {what}"),
            }
        }
    }
}

fn order_words(order: &NewOrder) -> String {
    let price = match order.kind {
        OrderKind::Limit { price } => format!("at {price}"),
        OrderKind::Market => "at market".to_owned(),
        OrderKind::Pegged { to, limit } => format!("pegged to {} within {limit}", name(&to)),
    };
    let mut words =
        format!("{} {} {price} {}", name(&order.side), order.quantity, force_words(order.time_in_force));
    let mut add = |wanted: bool, more: String| {
        if wanted {
            words.push_str(&more);
        }
    };
    add(order.post_only, " post_only".to_owned());
    add(order.self_trade != SelfTrade::Allow, format!(" self_trade {}", name(&order.self_trade)));
    add(!order.display.is_zero(), format!(" display {}", order.display));
    add(!order.minimum.is_zero(), format!(" minimum {}", order.minimum));
    if let Some(trigger) = order.trigger {
        add(true, format!(" trigger {trigger}"));
    }
    words
}

fn amendment_words(amendment: &Amendment) -> String {
    let Amendment { target, price, quantity, .. } = amendment;
    let mut words = match amendment.reduces {
        true => format!("reduce {target} to {quantity}"),
        false => format!("amend {target} to {quantity} at {price}"),
    };
    if let Some(display) = amendment.display {
        words.push_str(&format!(" display {display}"));
    }
    if let Some(trigger) = amendment.trigger {
        words.push_str(&format!(" trigger {trigger}"));
    }
    if let Some(force) = amendment.time_in_force {
        words.push_str(&format!(" {}", force_words(force)));
    }
    words
}

fn force_words(force: TimeInForce) -> String {
    match force {
        TimeInForce::Gtd { until } => format!("{} {}", name(&force), utc::format(until)),
        _ => name(&force),
    }
}

fn rule_words(rule: &Rule) -> String {
    let value = match rule {
        Rule::PriceRange { min, max } => format!("{min} to {max}"),
        Rule::Tick { from, tick } => format!("{tick} from {from}"),
        Rule::Lot(shares) | Rule::QuantityMax(shares) | Rule::AuctionMin(shares) => shares.to_string(),
        Rule::ValueMax(value) => value.to_string(),
        Rule::OrdersMax(value) | Rule::StepMax(value) | Rule::PressureLimit(value) => value.to_string(),
        Rule::StaticBand(band) | Rule::DynamicBand(band) => band_words(*band),
        Rule::Call { ns } | Rule::RandomEnd { ns } => format!("{ns} ns"),
        Rule::Schedule { at_ns, phase } => {
            let phase = phase.map_or("none".to_owned(), |phase| name(&phase));
            format!("{} {phase}", utc::time_of_day(*at_ns))
        }
        Rule::Reference(price) => price.to_string(),
        Rule::Extension { ns, max, market } => {
            let market = if *market { ", for market orders too" } else { "" };
            format!("{ns} ns, {max} times{market}")
        }
        Rule::TieBreak(one) => name(one),
        Rule::IcebergRefill { fresh } => format!("fresh {fresh}"),
        Rule::MarketRemainder { rests } => format!("rests {rests}"),
        Rule::DisplayDecrease { keeps } => format!("keeps {keeps}"),
    };
    format!("{} {value}", name(rule))
}

fn band_words(band: Band) -> String {
    if band.least == Price(0) { band.width.to_string() } else { format!("{} or {}", band.width, band.least) }
}

/// All fields of a request.
pub fn fields(request: &Request) -> Value {
    let mut fields = json!({
        "id": request.id.to_string(),
        "stamp": utc::format(request.stamp),
        "member": request.member.0,
        "client_order_id": request.client_order_id.0,
        "instrument": request.instrument.0,
        "shard": request.shard.0,
        "command": name(&request.command),
    });
    let command = match request.command {
        Command::Enter(order) => order_fields(&order),
        Command::Amend(amendment) => amendment_fields(&amendment),
        Command::Cancel { target } => json!({ "target": target.to_string() }),
        Command::MassCancel { side } => json!({ "side": side.map(|side| name(&side)) }),
        _ => exchange_fields(&request.command),
    };
    if let (Value::Object(into), Value::Object(command)) = (&mut fields, command) {
        into.extend(command);
    }
    fields
}

fn order_fields(order: &NewOrder) -> Value {
    let (kind, price) = match order.kind {
        OrderKind::Limit { price } => ("limit", Some(price)),
        OrderKind::Market => ("market", None),
        OrderKind::Pegged { limit, .. } => ("pegged", Some(limit)),
    };
    let peg = match order.kind {
        OrderKind::Pegged { to, .. } => Some(name(&to)),
        _ => None,
    };
    json!({
        "side": name(&order.side),
        "kind": kind,
        "peg": peg,
        "price": price.map(|price| price.to_string()),
        "quantity": order.quantity.0,
        "time_in_force": name(&order.time_in_force),
        "until": until(order.time_in_force),
        "post_only": order.post_only,
        "self_trade": name(&order.self_trade),
        "display": order.display.0,
        "minimum": order.minimum.0,
        "trigger": order.trigger.map(|price| price.to_string()),
    })
}

fn amendment_fields(amendment: &Amendment) -> Value {
    json!({
        "target": amendment.target.to_string(),
        "price": amendment.price.to_string(),
        "quantity": amendment.quantity.0,
        "display": amendment.display.map(|shares| shares.0),
        "trigger": amendment.trigger.map(|price| price.to_string()),
        "time_in_force": amendment.time_in_force.as_ref().map(name),
        "until": amendment.time_in_force.and_then(until),
        "reduces": amendment.reduces,
    })
}

fn until(force: TimeInForce) -> Option<String> {
    match force {
        TimeInForce::Gtd { until } => Some(utc::format(until)),
        _ => None,
    }
}

fn exchange_fields(command: &Command) -> Value {
    match command {
        Command::SetPhase(phase) => json!({ "phase": name(phase) }),
        Command::SetRule(rule) => {
            let mut fields = rule_fields(rule);
            fields["rule"] = json!(name(rule));
            fields
        }
        Command::AddInstrument(symbol) => json!({ "symbol": symbol.as_str() }),
        Command::Block { member } | Command::Unblock { member } => json!({ "blocked": member.0 }),
        Command::CancelGuarded(guarded) => json!({
            "of_member": guarded.member.0,
            "of_session": guarded.session,
            "through": guarded.last.to_string(),
        }),
        Command::Bust(trade) => json!({
            "position": trade.position.0,
            "index": trade.index,
            "resting": trade.resting.to_string(),
            "incoming": trade.incoming.to_string(),
            "price": trade.price.to_string(),
            "quantity": trade.quantity.0,
        }),
        Command::BeginDay { day } | Command::EndDay { day } => json!({ "day": day.to_string() }),
        Command::Register(change) => json!({
            "of_member": change.member.0,
            "of_session": change.session,
            "entry": format!("{:?}", change.entry),
        }),
        _ => json!({}),
    }
}

fn rule_fields(rule: &Rule) -> Value {
    match rule {
        Rule::PriceRange { min, max } => json!({ "min": min.to_string(), "max": max.to_string() }),
        Rule::Tick { from, tick } => json!({ "from": from.to_string(), "tick": tick.to_string() }),
        Rule::Lot(shares) | Rule::QuantityMax(shares) | Rule::AuctionMin(shares) => {
            json!({ "value": shares.0 })
        }
        Rule::ValueMax(value) | Rule::Call { ns: value } | Rule::RandomEnd { ns: value } => {
            json!({ "value": value })
        }
        Rule::OrdersMax(value) | Rule::StepMax(value) | Rule::PressureLimit(value) => {
            json!({ "value": value })
        }
        Rule::StaticBand(band) | Rule::DynamicBand(band) => {
            json!({ "value": band.width, "least": band.least.to_string() })
        }
        Rule::Schedule { at_ns, phase } => {
            json!({ "at": utc::time_of_day(*at_ns), "phase": phase.map(|phase| name(&phase)) })
        }
        Rule::Reference(price) => json!({ "price": price.to_string() }),
        Rule::Extension { ns, max, market } => json!({ "value": ns, "max": max, "market": market }),
        Rule::TieBreak(one) => json!({ "value": name(one) }),
        Rule::IcebergRefill { fresh } => json!({ "fresh": fresh }),
        Rule::MarketRemainder { rests } => json!({ "rests": rests }),
        Rule::DisplayDecrease { keeps } => json!({ "keeps": keeps }),
    }
}
