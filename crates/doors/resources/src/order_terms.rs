//! Orders as words: what a form says, as the exchange's types.

use pares_types::{
    OrderChange, OrderKind, OrderState, Peg, Phase, Price, Quantity, Role, SelfTrade, Side, TimeInForce,
    Timestamp,
};

use crate::decimal;

/// A field that is not as it should be, and how it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadField {
    /// Its name.
    pub field: &'static str,
    /// How it should be.
    pub why: &'static str,
}

/// Reads what kind of order it is: `limit` if nothing is said, `market`, `peg_best`, `peg_mid`; and its limit.
///
/// # Errors
/// If it is none, or has a limit too many or too few.
pub fn order_kind(kind: Option<&str>, limit: Option<&str>) -> Result<OrderKind, BadField> {
    let needed = || price("price", limit.ok_or(BadField { field: "price", why: "is needed" })?);
    match kind.unwrap_or("limit") {
        "limit" => Ok(OrderKind::Limit { price: needed()? }),
        "peg_best" => Ok(OrderKind::Pegged { to: Peg::Best, limit: needed()? }),
        "peg_mid" => Ok(OrderKind::Pegged { to: Peg::Mid, limit: needed()? }),
        "market" if limit.is_none() => Ok(OrderKind::Market),
        "market" => Err(BadField { field: "price", why: "not allowed in a market order" }),
        _ => Err(BadField { field: "kind", why: "limit, market, peg_best or peg_mid" }),
    }
}

/// Functions that call the values of a type by words.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident($kind:ident) { $($value:ident $word:literal,)* })*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(value: $kind) -> &'static str {
            match value {
                $($kind::$value => $word,)*
            }
        })*
    };
}

words! {
    /// `buy` or `sell`.
    side_word(Side) { Buy "buy", Sell "sell", }
    /// What an order was in a trade.
    role_word(Role) { Resting "resting", Incoming "incoming", }
    /// What an order did that nobody asked for just now.
    change_word(OrderChange) {
        Triggered "triggered",
        Rested "rested",
        Repriced "repriced",
        Refilled "refilled",
        Released "released",
        Withdrawn "withdrawn",
    }
    /// What became of an order.
    state_word(OrderState) { InFlight "in_flight", Working "working", Ended "ended", }
    /// A phase of an instrument.
    phase_word(Phase) {
        Closed "closed",
        OpeningCall "opening_call",
        Continuous "continuous",
        VolatilityCall "volatility_call",
        ClosingCall "closing_call",
        PostClose "post_close",
        Halted "halted",
    }
    /// What happens when a member meets itself, as [`self_trade`] reads it.
    self_trade_word(SelfTrade) {
        Allow "allow",
        CancelResting "cancel_resting",
        CancelIncoming "cancel_incoming",
        CancelBoth "cancel_both",
        Decrement "decrement",
    }
}

/// Reads `buy` or `sell`.
///
/// # Errors
/// If it is neither.
pub fn side(word: &str) -> Result<Side, BadField> {
    match word {
        "buy" => Ok(Side::Buy),
        "sell" => Ok(Side::Sell),
        _ => Err(BadField { field: "side", why: "buy or sell" }),
    }
}

/// Reads a phase that an operator may ask for. A market comes into a volatility call by itself.
///
/// # Errors
/// If it is none.
pub fn phase(word: &str) -> Result<Phase, BadField> {
    let named = Phase::ALL.into_iter().find(|phase| phase_word(*phase) == word);
    named.filter(|phase| *phase != Phase::VolatilityCall).ok_or(BadField {
        field: "phase",
        why: "closed, opening_call, continuous, closing_call, post_close or halted",
    })
}

/// Reads what happens when a member meets itself.
///
/// # Errors
/// If it is none of the words.
pub fn self_trade(word: &str) -> Result<SelfTrade, BadField> {
    const WHY: &str = "allow, cancel_resting, cancel_incoming, cancel_both or decrement";
    let named = SelfTrade::ALL.into_iter().find(|what| self_trade_word(*what) == word);
    named.ok_or(BadField { field: "self_trade", why: WHY })
}

/// Reads how long an order lives, if that is said; of `gtd` until when, ns since 1970.
///
/// # Errors
/// If it is none of the words, or the end is said of another one, or not said.
pub fn time_in_force(word: Option<&str>, until_ns: Option<&str>) -> Result<Option<TimeInForce>, BadField> {
    if word != Some("gtd") && until_ns.is_some() {
        return Err(BadField { field: "until_ns", why: "is allowed with time_in_force gtd only" });
    }
    word.map(|word| time_of(word, until_ns)).transpose()
}

fn time_of(word: &str, until_ns: Option<&str>) -> Result<TimeInForce, BadField> {
    const WHY: &str = "day, ioc, fok, gtc, gtd, at_open or at_close";
    match word {
        "day" => Ok(TimeInForce::Day),
        "ioc" => Ok(TimeInForce::Ioc),
        "fok" => Ok(TimeInForce::Fok),
        "gtc" => Ok(TimeInForce::Gtc),
        "at_open" => Ok(TimeInForce::AtOpen),
        "at_close" => Ok(TimeInForce::AtClose),
        "gtd" => {
            let until = until_ns.and_then(decimal::natural).map(Timestamp);
            let why = "required with gtd: ns since 1970, as text";
            Ok(TimeInForce::Gtd { until: until.ok_or(BadField { field: "until_ns", why })? })
        }
        _ => Err(BadField { field: "time_in_force", why: WHY }),
    }
}

/// Reads a price.
///
/// # Errors
/// If it is none.
pub fn price(field: &'static str, text: &str) -> Result<Price, BadField> {
    decimal::price(text).map_err(|why| BadField { field, why })
}

/// Reads a number of shares.
///
/// # Errors
/// If it is none.
pub fn shares(field: &'static str, text: &str) -> Result<Quantity, BadField> {
    decimal::quantity(text).map_err(|why| BadField { field, why })
}
