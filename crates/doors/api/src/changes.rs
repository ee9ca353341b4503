//! Orders changed and cancelled. Each change has a name of its own, so that it is done once however often it is asked for.

use std::time::Instant;

use axum::extract::{Path, State};
use axum::response::Response;
use pares_http::problem::Problem;
use pares_resources::order_terms;
use pares_types::{ClientOrderId, ClientRequest, OrderKey};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::{Caller, Shared};
use crate::forms::{ALL, Outcome, TermsForm, name, order_id};
use crate::orders::{committed, status};
use crate::refused;
use crate::session::Session;
use crate::spoken::{Queried, Said, Spoken};

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
#[utoipa::path(delete, path = "/v1/orders/{order_id}", operation_id = "cancel_order", tag = "orders", params(("order_id" = String, Path, description = "the exchange's number of the order", pattern = "^[0-9]{1,20}$"), Named), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn cancel(
    Path(id): Path<String>,
    Caller(session): Caller,
    spoken: Spoken,
    Queried(asked): Queried<Named>,
) -> Result<Response, Problem> {
    let target = named(&session, &id).await?;
    cancelled(&session, spoken, &asked, target).await
}

/// Cancels an order, by its name.
#[utoipa::path(delete, path = "/v1/orders/by-name/{name}", operation_id = "cancel_order_by_name", tag = "orders",
    params(("name" = String, Path, description = "the name under which it was entered", pattern = "^[0-9]{1,20}$"), Named), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn cancel_by_name(
    Path(target): Path<String>,
    Caller(session): Caller,
    spoken: Spoken,
    Queried(asked): Queried<Named>,
) -> Result<Response, Problem> {
    let target = name("name", &target)?;
    cancelled(&session, spoken, &asked, target).await
}

async fn cancelled(
    session: &Session,
    spoken: Spoken,
    asked: &Named,
    target: ClientOrderId,
) -> Result<Response, Problem> {
    let client_order_id = name("client_order_id", &asked.client_order_id)?;
    let answer = committed(session.ask(ClientRequest::Cancel { client_order_id, target }).await?)?;
    Ok(spoken.ok("outcome", &Outcome::from(&answer)))
}

/// Changes an order, by our id.
#[utoipa::path(patch, path = "/v1/orders/{order_id}", operation_id = "amend_order", tag = "orders", request_body = TermsForm,
    params(("order_id" = String, Path, description = "the exchange's number of the order", pattern = "^[0-9]{1,20}$")), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn amend(
    Path(id): Path<String>,
    Caller(session): Caller,
    spoken: Spoken,
    Said(form): Said<TermsForm>,
) -> Result<Response, Problem> {
    let target = named(&session, &id).await?;
    amended(&session, spoken, &form, target).await
}

/// Changes an order, by its name.
#[utoipa::path(patch, path = "/v1/orders/by-name/{name}", operation_id = "amend_order_by_name", tag = "orders", request_body = TermsForm,
    params(("name" = String, Path, description = "the name under which it was entered", pattern = "^[0-9]{1,20}$")), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn amend_by_name(
    Path(target): Path<String>,
    Caller(session): Caller,
    spoken: Spoken,
    Said(form): Said<TermsForm>,
) -> Result<Response, Problem> {
    let target = name("name", &target)?;
    amended(&session, spoken, &form, target).await
}

async fn amended(
    session: &Session,
    spoken: Spoken,
    form: &TermsForm,
    target: ClientOrderId,
) -> Result<Response, Problem> {
    let (client_order_id, terms) = (name("client_order_id", &form.client_order_id)?, form.terms()?);
    let answer = committed(session.ask(ClientRequest::Amend { client_order_id, target, terms }).await?)?;
    Ok(spoken.ok("outcome", &Outcome::from(&answer)))
}

/// Cancels all the member's orders, or those of an instrument or a side.
#[utoipa::path(delete, path = "/v1/orders", operation_id = "cancel_orders", tag = "orders", params(Many), responses(
    (status = 200, description = "Committed", body = Outcome)))]
pub(crate) async fn cancel_all(
    State(app): State<Shared>,
    Caller(session): Caller,
    spoken: Spoken,
    Queried(asked): Queried<Many>,
) -> Result<Response, Problem> {
    let client_order_id = name("client_order_id", &asked.client_order_id)?;
    let side = asked.side.as_deref().map(order_terms::side).transpose().map_err(refused::bad_field)?;
    // Orders that are to go must not stay because the symbol was another instrument's a second ago.
    let instrument = match &asked.symbol {
        None => ALL,
        Some(symbol) => app.look_up(&session, symbol, Instant::now()).await?.status.instrument,
    };
    let request = ClientRequest::MassCancel { client_order_id, instrument, side };
    let answer = app.ask_of(&session, request).await?;
    Ok(spoken.ok("outcome", &Outcome::from(&answer)))
}

/// The name of the order of that id.
async fn named(session: &Session, id: &str) -> Result<ClientOrderId, Problem> {
    Ok(status(session, OrderKey::Id(order_id(id)?)).await?.client_order_id)
}
