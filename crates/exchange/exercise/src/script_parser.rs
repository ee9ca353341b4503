//! The words of a script: commands and rules out of text.

use crate::script::asker;
use crate::telling::OrderNames;
use pares_types::{
    Amendment, Band, BusinessDay, BustedTrade, ClientOrderId, Command, Guarded, MemberId, NewOrder, NewTerms,
    OrderId, OrderKind, Peg, Phase, Position, Price, Quantity, Rule, SelfTrade, Side, Symbol, TieBreak,
    TimeInForce, Timestamp,
};

/// The command of a line, without who asks.
pub fn command(words: &[&str], names: &OrderNames) -> Command {
    match *words {
        ["buy", quantity, "@", price, ref wishes @ ..] => enter(Side::Buy, quantity, price, wishes),
        ["sell", quantity, "@", price, ref wishes @ ..] => enter(Side::Sell, quantity, price, wishes),
        ["amend", name, total, "@", price, ref wishes @ ..] => {
            let price = if price == "market" { Price(0) } else { money(price) };
            amend(Amendment::new(names.id(name), price, quantity(total)), wishes)
        }
        ["reduce", name, total] => {
            Command::Amend(NewTerms::reduction(quantity(total)).of(names.id(name), ClientOrderId(0)))
        }
        ["cancel", name] => Command::Cancel { target: names.id(name) },
        ["mass", "cancel"] => Command::MassCancel { side: None },
        ["mass", "cancel", "buy"] => Command::MassCancel { side: Some(Side::Buy) },
        ["mass", "cancel", "sell"] => Command::MassCancel { side: Some(Side::Sell) },
        ["time", _] => Command::TIME,
        ["time", _, "draw", percent] => {
            Command::Time { draw: (u128::from(hundredths(percent)) << 64).div_ceil(10_000) as u64 }
        }
        ["phase", name] => Command::SetPhase(phase(name)),
        ["rule", ref words @ ..] => Command::SetRule(rule(words)),
        ["block", name] => Command::Block { member: member(name) },
        ["end", name, "through", last] => {
            let (member, session) = asker(name).unwrap();
            let OrderId(last) = names.id(last);
            Command::CancelGuarded(Guarded { member: MemberId(member), session: session.unwrap(), last })
        }
        ["unblock", name] => Command::Unblock { member: member(name) },
        ["bust", resting, incoming, shares, "@", price, "at", place] => {
            let (position, index) = place.split_once('.').unwrap();
            Command::Bust(BustedTrade {
                position: Position(position.parse().unwrap()),
                index: index.parse().unwrap(),
                resting: names.id(resting),
                incoming: names.id(incoming),
                price: money(price),
                quantity: quantity(shares),
                resting_side: Side::Sell,
                resting_owner: (MemberId(1), ClientOrderId(11)),
                incoming_owner: (MemberId(2), ClientOrderId(21)),
            })
        }
        ["remove"] => Command::RemoveInstrument,
        ["begin", "day", number] => Command::BeginDay { day: BusinessDay(number.parse().unwrap()) },
        ["end", "day", number] => Command::EndDay { day: BusinessDay(number.parse().unwrap()) },
        ["add"] => Command::AddInstrument(Symbol::new("NEW").unwrap()),
        _ => panic!("not understood: {words:?}"),
    }
}

fn enter(side: Side, shares: &str, price: &str, wishes: &[&str]) -> Command {
    let kind = if price == "market" { OrderKind::Market } else { OrderKind::Limit { price: money(price) } };
    let mut order = NewOrder { kind, ..NewOrder::limit(side, Price(0), quantity(shares)) };
    let mut words = wishes.iter().copied();
    while let Some(wish) = words.next() {
        let mut next = || words.next().unwrap();
        match wish {
            "post" => order.post_only = true,
            "show" => order.display = quantity(next()),
            "min" => order.minimum = quantity(next()),
            "stop" => order.trigger = Some(money(next())),
            "peg" => {
                let to = if next() == "mid" { Peg::Mid } else { Peg::Best };
                order.kind = OrderKind::Pegged { to, limit: money(price) };
            }
            "stp" => order.self_trade = self_trade(next()),
            stay => order.time_in_force = time_in_force(stay, next),
        }
    }
    Command::Enter(order)
}

fn amend(mut amendment: Amendment, wishes: &[&str]) -> Command {
    let mut words = wishes.iter().copied();
    while let Some(wish) = words.next() {
        let mut next = || words.next().unwrap();
        match wish {
            "show" => amendment.display = Some(quantity(next())),
            "stop" => amendment.trigger = Some(money(next())),
            stay => amendment.time_in_force = Some(time_in_force(stay, next)),
        }
    }
    Command::Amend(amendment)
}

fn time_in_force<'a>(word: &str, mut next: impl FnMut() -> &'a str) -> TimeInForce {
    match word {
        "day" => TimeInForce::Day,
        "ioc" => TimeInForce::Ioc,
        "fok" => TimeInForce::Fok,
        "gtc" => TimeInForce::Gtc,
        "gtd" => TimeInForce::Gtd { until: time(next()) },
        "opening" => TimeInForce::AtOpen,
        "closing" => TimeInForce::AtClose,
        _ => panic!("not understood: {word}"),
    }
}

fn self_trade(mode: &str) -> SelfTrade {
    match mode {
        "resting" => SelfTrade::CancelResting,
        "incoming" => SelfTrade::CancelIncoming,
        "both" => SelfTrade::CancelBoth,
        "decrement" => SelfTrade::Decrement,
        _ => panic!("no such mode: {mode}"),
    }
}

/// A rule and its new value; prices and values in currency, times in seconds.
pub fn rule(words: &[&str]) -> Rule {
    match *words {
        ["price_range", min, max] => Rule::PriceRange { min: money(min), max: money(max) },
        ["tick", from, tick] => Rule::Tick { from: money(from), tick: money(tick) },
        ["lot", shares] => Rule::Lot(quantity(shares)),
        ["quantity_max", shares] => Rule::QuantityMax(quantity(shares)),
        ["value_max", value] => Rule::ValueMax(money(value).0.unsigned_abs()),
        ["orders_max", orders] => Rule::OrdersMax(orders.parse().unwrap()),
        ["step_max", events] => Rule::StepMax(events.parse().unwrap()),
        ["static_band", percent] => Rule::StaticBand(Band::of(hundredths(percent))),
        ["dynamic_band", percent] => Rule::DynamicBand(Band::of(hundredths(percent))),
        ["static_band", percent, least] => {
            Rule::StaticBand(Band { width: hundredths(percent), least: money(least) })
        }
        ["extension", seconds, max] => extension(seconds, max, false),
        ["extension", seconds, max, "market"] => extension(seconds, max, true),
        ["random_end", seconds] => Rule::RandomEnd { ns: time(seconds).0 },
        ["auction_min", shares] => Rule::AuctionMin(quantity(shares)),
        ["tie_break", "nearest_limit"] => Rule::TieBreak(TieBreak::NearestLimit),
        ["pressure_limit", percent] => Rule::PressureLimit(hundredths(percent)),
        ["iceberg_refill", "continued"] => Rule::IcebergRefill { fresh: false },
        ["market_remainder", "rests"] => Rule::MarketRemainder { rests: true },
        ["display_decrease", "loses"] => Rule::DisplayDecrease { keeps: false },
        ["call", seconds] => Rule::Call { ns: time(seconds).0 },
        ["schedule", at, "none"] => Rule::Schedule { at_ns: time(at).0, phase: None },
        ["schedule", at, name] => Rule::Schedule { at_ns: time(at).0, phase: Some(phase(name)) },
        ["reference", price] => Rule::Reference(money(price)),
        _ => panic!("no such rule: {words:?}"),
    }
}

fn extension(seconds: &str, max: &str, market: bool) -> Rule {
    Rule::Extension { ns: time(seconds).0, max: max.parse().unwrap(), market }
}

/// A percentage, as in `2.5%`, in hundredths of a percent.
fn hundredths(percent: &str) -> u32 {
    let units = money(percent.strip_suffix('%').unwrap()).0;
    u32::try_from(units / 100).unwrap()
}

/// By how its name begins.
fn phase(name: &str) -> Phase {
    let is_it = |phase: &Phase| format!("{phase:?}").to_lowercase().starts_with(name);
    Phase::ALL.into_iter().find(is_it).unwrap_or_else(|| panic!("no such phase: {name}"))
}

fn member(name: &str) -> MemberId {
    MemberId(name.strip_prefix('m').unwrap().parse().unwrap())
}

fn quantity(text: &str) -> Quantity {
    Quantity(text.parse().unwrap())
}

/// Currency with up to four decimals.
pub fn money(text: &str) -> Price {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    Price(format!("{whole}{decimals:0<4}").parse().unwrap())
}

/// Seconds since the epoch, or a time of its first day as 09:30, or of another day as 2/09:30.
pub fn time(text: &str) -> Timestamp {
    let (day, text) = text.split_once('/').unwrap_or(("0", text));
    let day: u64 = day.parse().unwrap();
    let seconds = match text.split_once(':') {
        Some((hours, minutes)) => {
            hours.parse::<u64>().unwrap() * 3_600 + minutes.parse::<u64>().unwrap() * 60
        }
        None => text.parse().unwrap(),
    };
    Timestamp((day * 86_400 + seconds) * 1_000_000_000)
}
