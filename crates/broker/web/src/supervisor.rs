//! What a supervisor sees and says.
//!
//! Nobody changes rights of his own, and whether he may change those of others is looked at again where they are changed: his own row is held there, so of two supervisors who take the right from each other at the same moment,
//! at whatever sites, the second has it no more. So there is always one left, and a session that was stolen cannot make itself more than it is.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use pares_broker::{
    BrokerRead, PersonAsked, PersonRead, PersonRight, UserListed, UserName, UsersPage, dollars,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::Shared;
use crate::body::Said;
use crate::broker::Costs;
use crate::caller::Caller;
use crate::log::streamed;
use crate::people::{done, names};
use crate::problem::{Answer, Problem};

/// The log of all users.
#[utoipa::path(get, path = "/api/v1/supervisor/log", operation_id = "log_of_all", responses((status = 200, description = "the answer", body = String, content_type = "application/xml"),
    (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn log(State(app): State<Shared>, caller: Caller) -> Answer<Response> {
    caller.with(PersonRight::Supervisor)?;
    Ok(streamed(app, None))
}

/// Where a page of users begins.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// Behind this name: what the page before said.
    from: Option<String>,
}

/// A page of users, short names first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Users {
    /// 100 at most.
    users: Vec<UserShown>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

/// A user.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserShown {
    name: String,
    /// Absent if nobody can sign in by this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    rights: Option<Vec<&'static str>>,
    /// Free cash in dollars, if there is an account.
    #[serde(skip_serializing_if = "Option::is_none")]
    cash: Option<String>,
}

/// All who can sign in or have an account.
#[utoipa::path(get, path = "/api/v1/supervisor/users", params(After), responses(
    (status = 200, description = "the answer", body = Users), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn users(
    State(app): State<Shared>,
    caller: Caller,
    after: Result<Query<After>, axum::extract::rejection::QueryRejection>,
) -> Answer<Json<Users>> {
    caller.with(PersonRight::Supervisor)?;
    let Query(After { from }) = after.map_err(|why| Problem::bad(why.body_text()))?;
    let after = from.map(|from| UserName::new(&from).ok_or_else(|| Problem::bad("from is a user's name")));
    let read = BrokerRead::Person { read: PersonRead::Users { after: after.transpose()? } };
    let page: UsersPage = app.in_time(app.front.read(read)).await??;
    let last = page.users.last().filter(|_| page.has_more);
    let from = last.map(|user| user.name.to_string());
    Ok(Json(Users { users: page.users.into_iter().map(shown).collect(), from }))
}

fn shown(UserListed { name, rights, cash_cents }: UserListed) -> UserShown {
    let (rights, cash) = (rights.map(|rights| names(&rights)), cash_cents.map(dollars));
    UserShown { name: name.to_string(), rights, cash }
}

/// What quotes have cost that this front was given first; other fronts have their own.
#[derive(Serialize, ToSchema)]
pub(crate) struct CostsShown {
    /// Quotes that the server was asked for and that this front was given first, since it started. Questions that brought none are not among them.
    front_hits: u64,
    /// What they cost.
    front_dollars: String,
    /// By how much this front's clock is ahead of the quote server's at least, ms; behind, if below zero; 0 if it may be right.
    front_clock_ahead_ms: i64,
}

/// What quotes have cost that this front was given first, since it started. What all have cost is in the log of all, but for questions that brought none.
#[utoipa::path(get, path = "/api/v1/supervisor/costs", responses(
    (status = 200, description = "the answer", body = CostsShown), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn costs(State(app): State<Shared>, caller: Caller) -> Answer<Json<CostsShown>> {
    caller.with(PersonRight::Supervisor)?;
    let Costs { hits: front_hits, cents, clock_ahead_ms: front_clock_ahead_ms } = app.front.costs();
    Ok(Json(CostsShown { front_hits, front_dollars: dollars(cents), front_clock_ahead_ms }))
}

/// What a user may do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rights {
    /// `trader`, `supervisor`; none: nothing.
    rights: Vec<String>,
}

/// Sets what another user may do.
#[utoipa::path(post, path = "/api/v1/supervisor/people/{name}/rights", request_body = Rights, params(("name" = String, Path)),
    responses((status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn rights(
    State(app): State<Shared>,
    Path(name): Path<String>,
    caller: Caller,
    Said(Rights { rights }): Said<Rights>,
) -> Answer<StatusCode> {
    let caller = caller.with(PersonRight::Supervisor)?;
    let name = UserName::new(&name)
        .ok_or_else(|| Problem::unknown("there is no such person").reason("no-person"))?;
    if name == caller.name {
        return Err(Problem::forbidden("you cannot change your own rights").reason("own-rights"));
    }
    let right = |text: &String| PersonRight::ALL.into_iter().find(|right| right.name() == text);
    let rights: Option<Vec<PersonRight>> = rights.iter().map(right).collect();
    let rights = rights.ok_or_else(|| Problem::bad("rights must be trader or supervisor"))?;
    done(app.person(PersonAsked::SetRightsOf { by: caller.name, name, rights }).await?)?;
    Ok(StatusCode::NO_CONTENT)
}
