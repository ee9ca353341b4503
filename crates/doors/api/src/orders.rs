//! Orders: entered, and looked at.

use std::time::Instant;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use pares_http::problem::Problem;
use pares_resources::{LineTold, Question};
use pares_types::{Answer, ClientRequest, InstrumentId, OrderKey, OrderStatus, Status};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::caller::{Answered, Call};
use crate::forms::{OrderForm, OrderShown, Outcome, name, order_id, order_text};
use crate::refused;
use crate::session::Session;
use crate::spoken::{Queried, Said};

/// The member's orders.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrdersShown {
    orders: Vec<OrderShown>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfInstrument {
    /// Only those in this instrument.
    symbol: Option<String>,
}

/// Enters an order. The same name again is answered with what the first one came to.
#[utoipa::path(post, path = "/v1/orders", operation_id = "enter_order", tag = "orders", request_body = OrderForm, responses(
    (status = 201, description = "Committed", body = Outcome)))]
pub(crate) async fn enter(call: Call, Said(form): Said<OrderForm>) -> Answered {
    let request = entering(&call, &form, Instant::now()).await?;
    let answer = call.app.ask_of(&call.session, request).await?;
    let mut response = call.outcome(StatusCode::CREATED, &answer)?;
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/orders/{}", order_text(answer.order))) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// The order as the exchange is asked for it.
pub(crate) async fn entering(call: &Call, form: &OrderForm, came: Instant) -> Result<ClientRequest, Problem> {
    let (client_order_id, order) = (form.name()?, form.order()?);
    let instrument = call.app.instrument_id(&call.session, &form.symbol, came).await?;
    Ok(ClientRequest::Enter { client_order_id, instrument, order })
}

/// The answer to a request, unless that is a refusal.
pub(crate) fn committed(told: LineTold) -> Result<Answer, Problem> {
    match told {
        LineTold::Answer(answer) if answer.status == Status::Refused => Err(refused::recorded(&answer)),
        LineTold::Answer(answer) => Ok(answer),
        _ => Err(refused::no_answer_yet()),
    }
}

/// How an order is, by our id.
#[utoipa::path(get, path = "/v1/orders/{order_id}", operation_id = "order", tag = "orders", params(("order_id" = String, Path, description = "the exchange's number of the order", pattern = "^[1-9][0-9]{0,19}$")), responses(
    (status = 200, description = "The order", body = OrderShown)))]
pub(crate) async fn one(Path(id): Path<String>, call: Call) -> Answered {
    let status = status(&call.session, OrderKey::Id(order_id(&id)?)).await?;
    call.ok("order", &OrderShown::from(&status))
}

/// How an order is, by its name.
#[utoipa::path(get, path = "/v1/orders/by-name/{name}", operation_id = "order_by_name", tag = "orders",
    params(("name" = String, Path, description = "the name under which it was entered", pattern = "^[1-9][0-9]{0,19}$")), responses(
    (status = 200, description = "The order", body = OrderShown)))]
pub(crate) async fn one_by_name(Path(text): Path<String>, call: Call) -> Answered {
    let status = status(&call.session, OrderKey::Name(name("name", &text)?)).await?;
    call.ok("order", &OrderShown::from(&status))
}

/// How the order is.
pub(crate) async fn status(session: &Session, key: OrderKey) -> Result<OrderStatus, Problem> {
    match session.question(Question::Order(key)).await? {
        LineTold::Order(status) => status.ok_or_else(refused::no_order),
        _ => Err(refused::no_answer_yet()),
    }
}

/// The member's orders that are in flight or work.
#[utoipa::path(get, path = "/v1/orders", operation_id = "orders", tag = "orders", params(OfInstrument), responses(
    (status = 200, description = "They", body = OrdersShown)))]
pub(crate) async fn list(call: Call, Queried(asked): Queried<OfInstrument>) -> Answered {
    let orders = match &asked.symbol {
        None => working(&call.session, None).await?,
        Some(symbol) => working_of(&call, symbol).await?,
    };
    let orders = orders.iter().map(OrderShown::from).collect();
    call.ok("orders", &OrdersShown { orders })
}

/// The member's orders, of an instrument or all.
async fn working(session: &Session, of: Option<InstrumentId>) -> Result<Vec<OrderStatus>, Problem> {
    match session.question(Question::Orders(of)).await? {
        LineTold::Orders(orders) => Ok(orders),
        _ => Err(refused::no_answer_yet()),
    }
}

/// The member's orders of a symbol. If there are none, it may be because the symbol is another instrument's by now.
async fn working_of(call: &Call, symbol: &str) -> Result<Vec<OrderStatus>, Problem> {
    let Call { app, session, .. } = call;
    let came = Instant::now();
    let believed = app.instrument_id(session, symbol, came).await?;
    let orders = working(session, Some(believed)).await?;
    if orders.is_empty()
        && let Some(now) = app.renumbered(session, (symbol, believed), came).await?
    {
        return working(session, Some(now)).await;
    }
    Ok(orders)
}
