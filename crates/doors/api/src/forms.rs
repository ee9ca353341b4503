//! What requests say and answers tell, field by field. Numbers that may be above 2^53, prices and quantities are text.

use pares_http::problem::Problem;
use pares_resources::decimal::{natural, price_text};
use pares_resources::order_terms::{self, BadField, side_word, state_word};
use pares_types::{
    Answer, ClientOrderId, InstrumentId, NewOrder, NewTerms, OrderId, OrderKind, OrderStatus, Quantity,
    Reason, RequestId, ShardId, TimeInForce,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::refused;

/// A new order.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderForm {
    /// The order's name: unique of the member for life, rising in its series.
    #[schema(pattern = "^[1-9][0-9]{0,19}$", example = "1")]
    pub(crate) client_order_id: String,
    /// The instrument's symbol.
    #[schema(example = "ABC")]
    pub(crate) symbol: String,
    /// `buy` or `sell`.
    #[schema(example = "buy")]
    side: String,
    /// `limit` (if nothing is said), `market`, `peg_best` or `peg_mid`.
    kind: Option<String>,
    /// The limit; of a market order none.
    #[schema(example = "223.82")]
    price: Option<String>,
    /// Shares.
    #[schema(example = "100")]
    quantity: String,
    /// `day` (if nothing is said; of a market order `ioc`), `ioc`, `fok`, `gtc`, `gtd`, `at_open` or `at_close`.
    time_in_force: Option<String>,
    /// Of `gtd`: ns since 1970.
    until_ns: Option<String>,
    /// Refuse it rather than let it take liquidity.
    #[serde(default)]
    post_only: bool,
    /// `allow` (if nothing is said), `cancel_resting`, `cancel_incoming`, `cancel_both` or `decrement`.
    self_trade: Option<String>,
    /// Shares that an iceberg shows at a time.
    display: Option<String>,
    /// Shares that must match at once.
    minimum: Option<String>,
    /// The price that a stop order waits for.
    trigger: Option<String>,
}

impl OrderForm {
    pub(crate) fn name(&self) -> Result<ClientOrderId, Problem> {
        name("client_order_id", &self.client_order_id)
    }

    pub(crate) fn order(&self) -> Result<NewOrder, Problem> {
        self.read().map_err(refused::bad_field)
    }

    fn read(&self) -> Result<NewOrder, BadField> {
        let quantity = |field, text: &Option<String>| {
            text.as_ref().map_or(Ok(Quantity::ZERO), |text| order_terms::shares(field, text))
        };
        let kind = order_terms::order_kind(self.kind.as_deref(), self.price.as_deref())?;
        // What does not match at once of an order at market cannot rest.
        let usual_time = if kind == OrderKind::Market { TimeInForce::Ioc } else { TimeInForce::Day };
        let time = order_terms::time_in_force(self.time_in_force.as_deref(), self.until_ns.as_deref())?;
        Ok(NewOrder {
            side: order_terms::side(&self.side)?,
            kind,
            time_in_force: time.unwrap_or(usual_time),
            post_only: self.post_only,
            self_trade: order_terms::self_trade(self.self_trade.as_deref().unwrap_or("allow"))?,
            quantity: order_terms::shares("quantity", &self.quantity)?,
            display: quantity("display", &self.display)?,
            minimum: quantity("minimum", &self.minimum)?,
            trigger: self.trigger.as_ref().map(|text| order_terms::price("trigger", text)).transpose()?,
        })
    }
}

/// New terms of an order. Price and quantity are always required; other terms left out stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TermsForm {
    /// The name of this request.
    #[schema(pattern = "^[1-9][0-9]{0,19}$", example = "2")]
    pub(crate) client_order_id: String,
    /// The new limit.
    #[schema(example = "223.80")]
    price: String,
    /// The new total quantity, executed part included.
    #[schema(example = "50")]
    quantity: String,
    /// Shares to show at a time.
    display: Option<String>,
    /// The new trigger of an order that waits for it.
    trigger: Option<String>,
    /// `day`, `gtc` or `gtd`.
    time_in_force: Option<String>,
    /// Of `gtd`: ns since 1970.
    until_ns: Option<String>,
}

impl TermsForm {
    pub(crate) fn terms(&self) -> Result<NewTerms, Problem> {
        self.read().map_err(refused::bad_field)
    }

    fn read(&self) -> Result<NewTerms, BadField> {
        Ok(NewTerms {
            price: order_terms::price("price", &self.price)?,
            quantity: order_terms::shares("quantity", &self.quantity)?,
            display: self.display.as_ref().map(|text| order_terms::shares("display", text)).transpose()?,
            trigger: self.trigger.as_ref().map(|text| order_terms::price("trigger", text)).transpose()?,
            time_in_force: order_terms::time_in_force(
                self.time_in_force.as_deref(),
                self.until_ns.as_deref(),
            )?,
            reduces: false,
        })
    }
}

/// Which order it is about.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrderOf {
    /// The name of the order; of what became of a request that request's.
    client_order_id: String,
    /// The order's id; of a cancel of many the request's.
    order_id: String,
    /// The instrument's number; 0 if it was for all.
    #[schema(value_type = u64)]
    instrument: u32,
    /// The shard whose total order it is part of.
    shard: u16,
}

/// Makes it of a message of the exchange, all of which name these four alike.
macro_rules! order_of {
    ($told:expr) => {
        crate::forms::OrderOf::new($told.client_order_id, $told.order, $told.instrument, $told.shard)
    };
}
pub(crate) use order_of;

/// What the interface sends of a message of the exchange: its fields, and what each is made of.
macro_rules! told_of {
    ($(#[$meta:meta])* $told:ident($of:ident: &$message:ty) {
        $($(#[$field_meta:meta])* $field:ident: $kind:ty = $value:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Serialize, ToSchema)]
        pub(crate) struct $told {
            $($(#[$field_meta])* $field: $kind,)*
        }

        impl From<&$message> for $told {
            fn from($of: &$message) -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}
pub(crate) use told_of;

impl OrderOf {
    pub(crate) fn new(name: ClientOrderId, order: OrderId, instrument: InstrumentId, shard: ShardId) -> Self {
        let client_order_id = name.0.to_string();
        Self { client_order_id, order_id: order_text(order), instrument: instrument.0, shard: shard.0 }
    }
}

told_of! {
    /// What became of a request.
    Outcome(answer: &Answer) {
        #[serde(flatten)]
        of: OrderOf = order_of!(answer),
        /// Its place there.
        position: String = answer.position.to_string(),
        /// `resting`, `filled`, `cancelled`, `held`, `mass_cancelled`.
        status: &'static str = answer.status.word(),
        /// Why it was cancelled, or is not done in one step; `none` otherwise.
        reason: &'static str = reason_word(answer.reason),
        /// Shares of the order executed so far; of a cancel of many the orders cancelled.
        executed: String = answer.executed.to_string(),
        /// Shares of the order that are still there; of a cancel of many the orders left to cancel.
        remaining: String = answer.remaining.to_string(),
        /// Its place in the member's stream of the shard; 0 outside of that.
        number: String = answer.number.to_string(),
        /// Whether this repeats an answer.
        repeat: bool = answer.repeat,
    }
}

told_of! {
    /// How an order is.
    OrderShown(status: &OrderStatus) {
        #[serde(flatten)]
        of: OrderOf = order_of!(status),
        /// The position to come there: what lies before it is counted in.
        next_position: String = status.next.to_string(),
        /// `in_flight`, `working`, `ended`.
        state: &'static str = state_word(status.state),
        /// `buy` or `sell`.
        #[serde(skip_serializing_if = "Option::is_none")]
        side: Option<&'static str> = status.side.map(side_word),
        /// Shares of it that have traded.
        executed: String = status.executed.to_string(),
        /// Shares that are still there; of one in flight, those it asks for.
        remaining: String = status.remaining.to_string(),
    }
}

/// An order's id as text.
pub(crate) fn order_text(OrderId(request): OrderId) -> String {
    request.to_bits().to_string()
}

/// Reads an order's id.
pub(crate) fn order_id(text: &str) -> Result<OrderId, Problem> {
    let why =
        "must be a whole number, as in the answer to the order; for an order's name use /v1/orders/by-name/";
    let id = natural(text).ok_or_else(|| refused::bad_field(BadField { field: "order_id", why }))?;
    RequestId::from_bits(id).map(OrderId).ok_or_else(refused::no_order)
}

/// Reads a name.
pub(crate) fn name(field: &'static str, text: &str) -> Result<ClientOrderId, Problem> {
    // The gateway has name 0 for what has none.
    let name = natural(text).filter(|name| *name > 0).map(ClientOrderId);
    name.ok_or_else(|| {
        refused::bad_field(BadField { field, why: "must be a whole number above 0 as text, such as \"1\"" })
    })
}

/// A reason as a word.
pub(crate) fn reason_word(reason: Reason) -> &'static str {
    if reason == Reason::None { "none" } else { reason.word() }
}

/// A price, if there is one.
pub(crate) fn maybe_price(price: Option<pares_types::Price>) -> Option<String> {
    price.map(price_text)
}

/// All instruments.
pub(crate) const ALL: InstrumentId = InstrumentId(0);

#[cfg(test)]
mod tests {
    use pares_types::{Price, Side};
    use serde_json::{Value, json};

    use super::*;

    /// A form of these fields besides the usual ones; null is left out.
    fn order(more: &Value) -> Result<NewOrder, BadField> {
        let mut form =
            json!({ "client_order_id": "1", "symbol": "ABC", "side": "buy", "price": "1", "quantity": "5" });
        let fields = form.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        serde_json::from_value::<OrderForm>(form).unwrap().read()
    }

    #[test]
    fn an_order_says_what_its_words_say() {
        let limit = order(&json!({ "price": "223.82" }));
        assert_eq!(limit, Ok(NewOrder::limit(Side::Buy, Price(2_238_200), Quantity(5))));
        let market = order(&json!({ "kind": "market", "price": null, "side": "sell" }));
        assert_eq!(market, Ok(NewOrder::market(Side::Sell, Quantity(5))));
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        for (wrong, field) in [
            (json!({ "side": "Buy" }), "side"),
            (json!({ "price": null }), "price"),
            (json!({ "kind": "market" }), "price"),
            (json!({ "kind": "Limit" }), "kind"),
            (json!({ "quantity": "-1" }), "quantity"),
            (json!({ "time_in_force": "gtd" }), "until_ns"),
            (json!({ "until_ns": "1" }), "until_ns"),
            (json!({ "time_in_force": "" }), "time_in_force"),
            (json!({ "self_trade": "no" }), "self_trade"),
            (json!({ "display": "x" }), "display"),
            (json!({ "trigger": "x" }), "trigger"),
        ] {
            assert_eq!(order(&wrong).unwrap_err().field, field, "{wrong}");
        }
    }
}
