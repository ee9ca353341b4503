//! The log as the course's XML, page by page: of any length, and never in memory as a whole.
//!
//! A page is read when the one before has been taken, so a client that reads slowly holds up nobody. What fails on the way ends the document without its end: it is not taken for a whole one.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use pares_broker::{AuditPage, BrokerRead, LOG_BEGIN, LOG_END, UserName};
use pares_wice::Key;

use crate::app::Shared;
use crate::caller::Caller;
use crate::problem::Problem;

enum Next {
    Page { from: Option<Key>, is_first: bool },
    Nothing,
}

/// The caller's log.
#[utoipa::path(get, path = "/api/v1/log", responses((status = 200, description = "the answer", body = String, content_type = "application/xml"),
    (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn log(State(app): State<Shared>, caller: Caller) -> Response {
    streamed(app, Some(caller.name))
}

/// A user's log, or that of all.
pub(crate) fn streamed(app: Shared, user: Option<UserName>) -> Response {
    let first = Next::Page { from: None, is_first: true };
    let parts = stream::try_unfold(first, move |next| part(app.clone(), user.clone(), next));
    ([(header::CONTENT_TYPE, "application/xml")], Body::from_stream(parts)).into_response()
}

async fn part(
    app: Shared,
    user: Option<UserName>,
    next: Next,
) -> Result<Option<(Bytes, Next)>, std::io::Error> {
    let Next::Page { from, is_first } = next else { return Ok(None) };
    let reading = app.front.read(BrokerRead::Log { user, from });
    let page: AuditPage = app
        .in_time(reading)
        .await
        .and_then(|page| Ok(page?))
        .map_err(|_| std::io::Error::other("no site answers"))?;
    let mut text = String::new();
    if is_first {
        text.push_str(LOG_BEGIN);
    }
    page.entries.iter().for_each(|entry| entry.xml(&mut text));
    let next = match page.next {
        Some(next) => Next::Page { from: Some(next), is_first: false },
        None => {
            text.push_str(LOG_END);
            Next::Nothing
        }
    };
    Ok(Some((text.into(), next)))
}
