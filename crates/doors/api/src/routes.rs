//! Which path is served by what, and what every answer has.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use pares_http::problem::Problem;
use pares_http::{asked, headers, origins};
use utoipa::openapi::path::PathItem;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Content, Ref, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use crate::app::Shared;
use crate::{
    asyncapi, batches, changes, fills, instruments, operator, orders, pages, positions, sign_on, socket,
    spoken, standing, timer, trades,
};

/// The document that describes this interface.
#[derive(OpenApi)]
#[openapi(
    info(title = "Pares exchange", version = "1", description = "docs/protocols/http.md says what a document of fields cannot."),
    servers(
        (url = "/", description = "the server that this document came from"),
        (url = "http://127.0.0.1:8420", description = "where `pares web` listens if nothing else is said")
    ),
    components(schemas(Problem)),
    paths(
        sign_on::begin,
        sign_on::prove,
        sign_on::end,
        orders::enter,
        orders::list,
        orders::one,
        orders::one_by_name,
        changes::cancel,
        changes::cancel_by_name,
        changes::amend,
        changes::amend_by_name,
        changes::cancel_all,
        batches::enter,
        timer::cancel_after,
        timer::timer,
        fills::fills,
        positions::positions,
        instruments::list,
        instruments::one,
        trades::book,
        trades::trades,
        trades::candles,
        trades::ticker,
        operator::phase,
        operator::block,
        operator::unblock,
        operator::four_eyes_on,
        operator::four_eyes_off,
        standing::status,
        socket::socket,
        health,
        served_document,
        asyncapi::served
    ),
    modifiers(&SignedOn, &Problems),
    security(("bearer" = []))
)]
struct Document;

/// How a request says whose it is.
struct SignedOn;

impl Modify for SignedOn {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemes = document.components.get_or_insert_default();
        schemes.add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// What every path may answer, but for those that ask no gateway.
struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let content = || Content::new(Some(Ref::from_schema_name("Problem")));
        let problem = ResponseBuilder::new()
            .description("a problem")
            .content("application/problem+json", content())
            .content("application/problem+xml", content())
            .build();
        for (path, item) in &mut document.paths.paths {
            if ["/v1/health", "/v1/openapi.json", "/v1/asyncapi.json"].contains(&path.as_str()) {
                continue;
            }
            let PathItem { get, post, put, delete, patch, .. } = item;
            for operation in [get, post, put, delete, patch].into_iter().flatten() {
                operation.responses.responses.insert("default".into(), problem.clone().into());
            }
        }
    }
}

/// What this interface has, as OpenAPI 3.1.
#[must_use]
pub fn document() -> String {
    Document::openapi().to_pretty_json().expect("the document is plain") + "\n"
}

pub(crate) fn router(app: Shared) -> Router {
    let api = of_orders()
        .merge(of_market())
        .route("/sign-on", post(sign_on::begin))
        .route("/sign-on/{sign_on}", post(sign_on::prove))
        .route("/session", delete(sign_on::end))
        .route("/status", get(standing::status))
        .route("/members/{member}/block", put(operator::block).delete(operator::unblock))
        .route("/four-eyes", put(operator::four_eyes_on).delete(operator::four_eyes_off))
        .route("/socket", get(socket::socket))
        .route("/openapi.json", get(served_document))
        .route("/asyncapi.json", get(asyncapi::served))
        .route("/health", get(health))
        .fallback(async || Problem::unknown("there is no such resource"))
        .layer(middleware::map_response(not_kept));
    Router::new()
        .nest("/v1", api)
        .fallback_service(get(pages::page))
        .method_not_allowed_fallback(async || Problem::other_methods())
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

fn of_orders() -> Router<Shared> {
    let one = get(orders::one).delete(changes::cancel).patch(changes::amend);
    let by_name = get(orders::one_by_name).delete(changes::cancel_by_name).patch(changes::amend_by_name);
    Router::new()
        .route("/orders", get(orders::list).post(orders::enter).delete(changes::cancel_all))
        .route("/orders/batch", post(batches::enter))
        .route("/orders/{order_id}", one)
        .route("/orders/by-name/{name}", by_name)
        .route("/cancel-after", get(timer::timer).post(timer::cancel_after))
        .route("/fills", get(fills::fills))
        .route("/positions", get(positions::positions))
}

fn of_market() -> Router<Shared> {
    Router::new()
        .route("/instruments", get(instruments::list))
        .route("/instruments/{symbol}", get(instruments::one))
        .route("/instruments/{symbol}/book", get(trades::book))
        .route("/instruments/{symbol}/trades", get(trades::trades))
        .route("/instruments/{symbol}/candles", get(trades::candles))
        .route("/instruments/{symbol}/ticker", get(trades::ticker))
        .route("/instruments/{symbol}/phase/{phase}", put(operator::phase))
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "openapi", tag = "server", security(()), responses((status = 200, description = "OpenAPI 3.1")))]
async fn served_document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

/// Whether this process answers. It asks no gateway.
#[utoipa::path(get, path = "/v1/health", tag = "server", security(()), responses((status = 200, description = "It does; gateways were not asked.")))]
async fn health() -> Json<serde_json::Value> {
    Json(serde_json::json!({ "status": "ok" }))
}

/// Answers are their caller's alone: nothing on the way keeps them.
async fn not_kept(mut response: Response) -> Response {
    headers::forbid_keeping(response.headers_mut());
    response
}

/// What no request may be, and what every answer tells browsers.
async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (wanted, origins) = (spoken::wanted(request.headers()), &app.settings.origins);
    let origin = origins::named(request.headers(), origins);
    let response = match asked::refusal(&request, app.names()) {
        Some(problem) => not_kept(problem.into_response()).await,
        None if origins::is_preflight(&request, origins) => StatusCode::NO_CONTENT.into_response(),
        None => next.run(request).await,
    };
    let mut response = spoken::problem_in(wanted, response);
    headers::add_headers(response.headers_mut(), app.is_secure);
    origins::add_headers(response.headers_mut(), origin.as_ref(), origins);
    response
}
