//! Orders as words: what a form says, as the exchange's types.

use pares_types::{
    NewOrder, NewTerms, OrderChange, OrderKind, OrderState, Peg, Phase, Price, Quantity, Role, SelfTrade,
    Side, TimeInForce, Timestamp,
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

/// An order as a form says it; `None` is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderWords<'a> {
    /// `buy` or `sell`.
    pub side: &'a str,
    /// `limit`, `market`, `peg_best`, `peg_mid`.
    pub kind: Option<&'a str>,
    /// Decimal text; of a market order none.
    pub price: Option<&'a str>,
    /// Shares.
    pub quantity: &'a str,
    /// `day`, `ioc`, `fok`, `gtc`, `gtd`, `at_open`, `at_close`.
    pub time_in_force: Option<&'a str>,
    /// Of `gtd`: ns since 1970.
    pub until_ns: Option<&'a str>,
    /// Refused rather than take liquidity.
    pub post_only: bool,
    /// `allow`, `cancel_resting`, `cancel_incoming`, `cancel_both`, `decrement`.
    pub self_trade: Option<&'a str>,
    /// Shares that an iceberg shows.
    pub display: Option<&'a str>,
    /// Shares that must match at once.
    pub minimum: Option<&'a str>,
    /// The price that a stop order waits for.
    pub trigger: Option<&'a str>,
}

impl OrderWords<'_> {
    /// The order.
    ///
    /// # Errors
    /// The first field that is not as it should be.
    pub fn order(&self) -> Result<NewOrder, BadField> {
        let quantity =
            |field, text: Option<&str>| text.map_or(Ok(Quantity::ZERO), |text| shares(field, text));
        Ok(NewOrder {
            side: side(self.side)?,
            kind: self.order_kind()?,
            time_in_force: time_in_force(self.time_in_force.unwrap_or(self.usual_time()), self.until_ns)?,
            post_only: self.post_only,
            self_trade: self_trade(self.self_trade.unwrap_or("allow"))?,
            quantity: shares("quantity", self.quantity)?,
            display: quantity("display", self.display)?,
            minimum: quantity("minimum", self.minimum)?,
            trigger: self.trigger.map(|text| price("trigger", text)).transpose()?,
        })
    }

    /// What does not match at once of an order at market cannot rest.
    fn usual_time(&self) -> &'static str {
        if self.kind == Some("market") { "ioc" } else { "day" }
    }

    fn order_kind(&self) -> Result<OrderKind, BadField> {
        let limit = || price("price", self.price.ok_or(BadField { field: "price", why: "is needed" })?);
        match self.kind.unwrap_or("limit") {
            "limit" => Ok(OrderKind::Limit { price: limit()? }),
            "peg_best" => Ok(OrderKind::Pegged { to: Peg::Best, limit: limit()? }),
            "peg_mid" => Ok(OrderKind::Pegged { to: Peg::Mid, limit: limit()? }),
            "market" if self.price.is_none() => Ok(OrderKind::Market),
            "market" => Err(BadField { field: "price", why: "a market order has none" }),
            _ => Err(BadField { field: "kind", why: "limit, market, peg_best or peg_mid" }),
        }
    }
}

/// New terms as a form says them; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct TermsWords<'a> {
    /// The new limit.
    pub price: &'a str,
    /// The new total quantity, executed part included.
    pub quantity: &'a str,
    /// As of an order.
    pub display: Option<&'a str>,
    /// As of an order.
    pub trigger: Option<&'a str>,
    /// `day`, `gtc`, `gtd`.
    pub time_in_force: Option<&'a str>,
    /// As of an order.
    pub until_ns: Option<&'a str>,
}

impl TermsWords<'_> {
    /// The terms.
    ///
    /// # Errors
    /// The first field that is not as it should be.
    pub fn terms(&self) -> Result<NewTerms, BadField> {
        if self.time_in_force.is_none() && self.until_ns.is_some() {
            return Err(BadField { field: "until_ns", why: "is of time_in_force gtd alone" });
        }
        let time = self.time_in_force.map(|word| time_in_force(word, self.until_ns)).transpose()?;
        Ok(NewTerms {
            price: price("price", self.price)?,
            quantity: shares("quantity", self.quantity)?,
            display: self.display.map(|text| shares("display", text)).transpose()?,
            trigger: self.trigger.map(|text| price("trigger", text)).transpose()?,
            time_in_force: time,
        })
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

/// `buy` or `sell`.
#[must_use]
pub fn side_word(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

/// What an order was in a trade.
#[must_use]
pub fn role_word(role: Role) -> &'static str {
    match role {
        Role::Resting => "resting",
        Role::Incoming => "incoming",
    }
}

/// What an order did that nobody asked for just now.
#[must_use]
pub fn change_word(change: OrderChange) -> &'static str {
    match change {
        OrderChange::Triggered => "triggered",
        OrderChange::Rested => "rested",
        OrderChange::Repriced => "repriced",
        OrderChange::Refilled => "refilled",
        OrderChange::Released => "released",
        OrderChange::Withdrawn => "withdrawn",
    }
}

/// What became of an order.
#[must_use]
pub fn state_word(state: OrderState) -> &'static str {
    match state {
        OrderState::InFlight => "in_flight",
        OrderState::Working => "working",
        OrderState::Ended => "ended",
    }
}

/// A phase of an instrument.
#[must_use]
pub fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Closed => "closed",
        Phase::OpeningCall => "opening_call",
        Phase::Continuous => "continuous",
        Phase::VolatilityCall => "volatility_call",
        Phase::ClosingCall => "closing_call",
        Phase::PostClose => "post_close",
        Phase::Halted => "halted",
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

fn self_trade(word: &str) -> Result<SelfTrade, BadField> {
    const WHY: &str = "allow, cancel_resting, cancel_incoming, cancel_both or decrement";
    match word {
        "allow" => Ok(SelfTrade::Allow),
        "cancel_resting" => Ok(SelfTrade::CancelResting),
        "cancel_incoming" => Ok(SelfTrade::CancelIncoming),
        "cancel_both" => Ok(SelfTrade::CancelBoth),
        "decrement" => Ok(SelfTrade::Decrement),
        _ => Err(BadField { field: "self_trade", why: WHY }),
    }
}

fn time_in_force(word: &str, until_ns: Option<&str>) -> Result<TimeInForce, BadField> {
    const WHY: &str = "day, ioc, fok, gtc, gtd, at_open or at_close";
    if word != "gtd" && until_ns.is_some() {
        return Err(BadField { field: "until_ns", why: "is of time_in_force gtd alone" });
    }
    match word {
        "day" => Ok(TimeInForce::Day),
        "ioc" => Ok(TimeInForce::Ioc),
        "fok" => Ok(TimeInForce::Fok),
        "gtc" => Ok(TimeInForce::Gtc),
        "at_open" => Ok(TimeInForce::AtOpen),
        "at_close" => Ok(TimeInForce::AtClose),
        "gtd" => {
            let until = until_ns.and_then(decimal::natural).map(Timestamp);
            let why = "of gtd: ns since 1970, as text";
            Ok(TimeInForce::Gtd { until: until.ok_or(BadField { field: "until_ns", why })? })
        }
        _ => Err(BadField { field: "time_in_force", why: WHY }),
    }
}

fn price(field: &'static str, text: &str) -> Result<Price, BadField> {
    decimal::price(text).map_err(|why| BadField { field, why })
}

fn shares(field: &'static str, text: &str) -> Result<Quantity, BadField> {
    decimal::quantity(text).map_err(|why| BadField { field, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_says_what_its_words_say() {
        let words =
            OrderWords { side: "buy", price: Some("223.82"), quantity: "100", ..OrderWords::default() };
        assert_eq!(words.order(), Ok(NewOrder::limit(Side::Buy, Price(2_238_200), Quantity(100))));
        let market =
            OrderWords { side: "sell", kind: Some("market"), quantity: "5", ..OrderWords::default() };
        assert_eq!(market.order(), Ok(NewOrder::market(Side::Sell, Quantity(5))));
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        let right = OrderWords { side: "buy", price: Some("1"), quantity: "1", ..OrderWords::default() };
        let wrong = [
            (OrderWords { side: "Buy", ..right }, "side"),
            (OrderWords { price: None, ..right }, "price"),
            (OrderWords { kind: Some("market"), ..right }, "price"),
            (OrderWords { kind: Some("Limit"), ..right }, "kind"),
            (OrderWords { quantity: "-1", ..right }, "quantity"),
            (OrderWords { time_in_force: Some("gtd"), ..right }, "until_ns"),
            (OrderWords { until_ns: Some("1"), ..right }, "until_ns"),
            (OrderWords { time_in_force: Some(""), ..right }, "time_in_force"),
            (OrderWords { self_trade: Some("no"), ..right }, "self_trade"),
            (OrderWords { display: Some("x"), ..right }, "display"),
            (OrderWords { trigger: Some("x"), ..right }, "trigger"),
        ];
        for (words, field) in wrong {
            assert_eq!(words.order().unwrap_err().field, field);
        }
    }
}
