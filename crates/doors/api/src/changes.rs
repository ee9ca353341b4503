//! Orders changed and cancelled. Each change has a name of its own, so that it is done once however often it is asked for.

use std::time::Instant;

use axum::extract::Path;
use axum::http::StatusCode;
use pares_http::problem::Problem;
use pares_resources::{LineTold, Question, order_terms};
use pares_types::{Answer, ClientOrderId, ClientRequest, OrderId, OrderKey, Reason, Status};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::caller::{Answered, Call};
use crate::forms::{ALL, Outcome, TermsForm, name, order_id};
use crate::orders::{committed, status};
use crate::refused;
use crate::spoken::{Queried, Said};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Named {
    /// The name of this request.
    client_order_id: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Many {
    /// The name of this request.
    client_order_id: String,
    /// Only in this instrument.
    symbol: Option<String>,
    /// Only `buy`, or only `sell`.
    side: Option<String>,
}

/// Cancels an order, by our id.
#[utoipa::path(delete, path = "/v1/orders/{order_id}", operation_id = "cancel_order", tag = "orders", params(("order_id" = String, Path, description = "the exchange's number of the order", pattern = "^[1-9][0-9]{0,19}$"), Named), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn cancel(Path(id): Path<String>, call: Call, Queried(asked): Queried<Named>) -> Answered {
    let (target, order) = named(&call, &id).await?;
    cancelled(&call, &asked, target, Some(order)).await
}

/// Cancels an order, by its name.
#[utoipa::path(delete, path = "/v1/orders/by-name/{name}", operation_id = "cancel_order_by_name", tag = "orders",
    params(("name" = String, Path, description = "the name under which it was entered", pattern = "^[1-9][0-9]{0,19}$"), Named), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn cancel_by_name(
    Path(target): Path<String>,
    call: Call,
    Queried(asked): Queried<Named>,
) -> Answered {
    let target = name("name", &target)?;
    cancelled(&call, &asked, target, None).await
}

async fn cancelled(call: &Call, asked: &Named, target: ClientOrderId, order: Option<OrderId>) -> Answered {
    let client_order_id = name("client_order_id", &asked.client_order_id)?;
    changed(call, ClientRequest::Cancel { client_order_id, target }, target, order).await
}

/// Asks for it. An answer about another order is that of an earlier request of the same name. What was asked now or is an amend, whose digest has its target,
/// is known without a question; in a refusal, another gateway may have numbered the order otherwise.
async fn changed(
    call: &Call,
    request: ClientRequest,
    target: ClientOrderId,
    order: Option<OrderId>,
) -> Answered {
    let told = call.session.ask(request).await?;
    // What is refused before its order is looked for concerns no order but itself.
    if let LineTold::Answer(answer) = &told
        && answer.order.0 != answer.request
    {
        let is_refused = answer.status == Status::Refused;
        let is_same_amend = matches!(request, ClientRequest::Amend { .. }) && answer.asked == request.asked();
        let is_own = match order {
            Some(order) if order == answer.order || !is_refused => order == answer.order,
            None if !answer.repeat && !is_refused => true,
            _ => is_same_amend || is_named(call, answer, target).await?,
        };
        if !is_own {
            return Err(refused::refused(Reason::DuplicateRequest));
        }
    }
    call.outcome(StatusCode::OK, &committed(told)?)
}

/// Whether the order has that name. If the gateway knows it no more, it has ended long ago: then what is not refused was of another one, if one is known by the name.
async fn is_named(call: &Call, answer: &Answer, name: ClientOrderId) -> Result<bool, Problem> {
    let known = async |key| match call.session.question(Question::Order(key)).await? {
        LineTold::Order(status) => Ok(status),
        _ => Err(refused::no_answer_yet()),
    };
    match known(OrderKey::Id(answer.order)).await? {
        Some(status) => Ok(status.client_order_id == name),
        None => Ok(answer.status == Status::Refused || known(OrderKey::Name(name)).await?.is_none()),
    }
}

/// Changes an order, by our id.
#[utoipa::path(patch, path = "/v1/orders/{order_id}", operation_id = "amend_order", tag = "orders", request_body = TermsForm,
    params(("order_id" = String, Path, description = "the exchange's number of the order", pattern = "^[1-9][0-9]{0,19}$")), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn amend(Path(id): Path<String>, call: Call, Said(form): Said<TermsForm>) -> Answered {
    let (target, order) = named(&call, &id).await?;
    amended(&call, &form, target, Some(order)).await
}

/// Changes an order, by its name.
#[utoipa::path(patch, path = "/v1/orders/by-name/{name}", operation_id = "amend_order_by_name", tag = "orders", request_body = TermsForm,
    params(("name" = String, Path, description = "the name under which it was entered", pattern = "^[1-9][0-9]{0,19}$")), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn amend_by_name(
    Path(target): Path<String>,
    call: Call,
    Said(form): Said<TermsForm>,
) -> Answered {
    let target = name("name", &target)?;
    amended(&call, &form, target, None).await
}

async fn amended(call: &Call, form: &TermsForm, target: ClientOrderId, order: Option<OrderId>) -> Answered {
    let (client_order_id, terms) = (name("client_order_id", &form.client_order_id)?, form.terms()?);
    changed(call, ClientRequest::Amend { client_order_id, target, terms }, target, order).await
}

/// Cancels all the member's orders, or those of an instrument or a side.
#[utoipa::path(delete, path = "/v1/orders", operation_id = "cancel_orders", tag = "orders", params(Many), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn cancel_all(call: Call, Queried(asked): Queried<Many>) -> Answered {
    let Call { app, session, .. } = &call;
    let client_order_id = name("client_order_id", &asked.client_order_id)?;
    let side = asked.side.as_deref().map(order_terms::side).transpose().map_err(refused::bad_field)?;
    // Orders that are to go must not stay because the symbol was another instrument's a second ago.
    let instrument = match &asked.symbol {
        None => ALL,
        Some(symbol) => app.look_up(session, symbol, Instant::now()).await?.status.instrument,
    };
    let request = ClientRequest::MassCancel { client_order_id, instrument, side };
    let answer = app.ask_of(session, request).await?;
    call.outcome(StatusCode::OK, &answer)
}

/// The name of the order of that id, and the id.
async fn named(call: &Call, id: &str) -> Result<(ClientOrderId, OrderId), Problem> {
    let order = order_id(id)?;
    Ok((status(&call.session, OrderKey::Id(order)).await?.client_order_id, order))
}
