//! Which path is served by what, and what every answer has.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use pares_http::{asked, headers, origins};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{RefOr, Required};
use utoipa::{Modify, OpenApi};

use crate::app::Shared;
use crate::caller::COOKIE;
use crate::problem::Problem;
use crate::{
    account, commands, customers, history, log, notices, orders, pages, people, quotes, second_factor,
    supervisor,
};

/// The document that describes this interface.
#[derive(OpenApi)]
#[openapi(
    info(title = "Pares broker", version = "1"),
    servers(
        (url = "/", description = "the server that this document came from"),
        (url = "http://127.0.0.1:8080", description = "where `pares broker up` serves its pages if nothing else is said")
    ),
    paths(
        people::sign_up,
        people::sign_in,
        people::session,
        people::sign_out,
        people::sign_out_all,
        people::password,
        commands::command,
        orders::place,
        orders::list,
        orders::one,
        orders::cancel,
        account::account,
        history::history,
        quotes::quote,
        quotes::points,
        log::log,
        notices::notices,
        second_factor::begin,
        second_factor::confirm,
        second_factor::end,
        supervisor::log,
        supervisor::users,
        supervisor::costs,
        supervisor::rights,
        customers::limits,
        customers::set_limits,
        customers::kill,
        customers::release,
        health,
        document
    ),
    components(schemas(notices::Watch)),
    modifiers(&SignedIn),
    security(("bearer" = []), ("cookie" = []))
)]
struct Document;

/// How a request says who sends it.
struct SignedIn;

impl Modify for SignedIn {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemes = document.components.get_or_insert_default();
        schemes.add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        let cookie = ApiKey::Cookie(ApiKeyValue::new(COOKIE));
        schemes.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
        for item in document.paths.paths.values_mut() {
            // Without a word of its own an operation needs a session.
            let changing = [&mut item.post, &mut item.put, &mut item.delete].into_iter().flatten();
            for changing in changing.filter(|one| one.security.is_none()) {
                changing.parameters.get_or_insert_default().push(RefOr::T(csrf()));
            }
        }
    }
}

/// What browsers send beside the cookie.
fn csrf() -> Parameter {
    ParameterBuilder::new()
        .name("X-CSRF")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("with a cookie: the session's `csrf`; not needed with a bearer token"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

pub(crate) fn router(app: Shared) -> Router {
    let api = Router::new()
        .route("/people", post(people::sign_up))
        .route("/session", get(people::session).post(people::sign_in).delete(people::sign_out))
        .route("/sessions", delete(people::sign_out_all))
        .route("/password", post(people::password))
        .route("/commands/{command}", post(commands::command))
        .route("/orders", get(orders::list).post(orders::place))
        .route("/orders/{number}", get(orders::one).delete(orders::cancel))
        .route("/account", get(account::account))
        .route("/history", get(history::history))
        .route("/quotes/{symbol}", get(quotes::quote))
        .route("/quotes/{symbol}/points", get(quotes::points))
        .route("/log", get(log::log))
        .route("/notices", get(notices::notices))
        .route("/totp", post(second_factor::begin).delete(second_factor::end))
        .route("/totp/confirm", post(second_factor::confirm))
        .nest("/supervisor", of_supervisors())
        .route("/openapi.json", get(document))
        .route("/health", get(health))
        .fallback(nothing)
        .layer(middleware::map_response(not_kept));
    Router::new()
        .nest("/api/v1", api)
        .fallback_service(get(pages::page))
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

fn of_supervisors() -> Router<Shared> {
    Router::new()
        .route("/log", get(supervisor::log))
        .route("/users", get(supervisor::users))
        .route("/costs", get(supervisor::costs))
        .route("/people/{name}/rights", post(supervisor::rights))
        .route("/limits/{user}", get(customers::limits).put(customers::set_limits))
        .route("/kill/{user}", put(customers::kill).delete(customers::release))
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", security(()), responses((status = 200, description = "OpenAPI 3.1")))]
async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

/// Whether this process answers. It asks no site: 200 also while none is alive.
#[utoipa::path(get, path = "/api/v1/health", security(()), responses((status = 200, description = "It does; sites were not asked.")))]
async fn health() -> Json<serde_json::Value> {
    Json(serde_json::json!({ "status": "ok" }))
}

async fn nothing() -> Problem {
    Problem::unknown("there is no such resource")
}

async fn not_allowed() -> Problem {
    Problem::other_methods()
}

/// Answers of the API are nobody's but their caller's: nothing on the way keeps them.
async fn not_kept(mut response: Response) -> Response {
    headers::forbid_keeping(response.headers_mut());
    response
}

/// What browsers receive with every answer.
async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let names = app.looks_at_host.then_some(app.settings.hosts.as_slice());
    let origins = &app.settings.origins;
    let origin = origins::named(request.headers(), origins);
    let mut response = match asked::refusal(&request, names) {
        Some(problem) => not_kept(problem.into_response()).await,
        None if origins::is_preflight(&request, origins) => StatusCode::NO_CONTENT.into_response(),
        None => next.run(request).await.into_response(),
    };
    headers::add_headers(response.headers_mut(), app.is_secure);
    origins::add_headers(response.headers_mut(), origin.as_ref(), origins);
    response
}
