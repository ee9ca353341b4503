//! Who asks, and in which form the answer is wanted.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use pares_http::headers::only;
use pares_http::problem::Problem;
use pares_http::sharing::ConnectionUse;
use pares_types::Answer;
use serde::Serialize;

use crate::app::Shared;
use crate::forms::Outcome;
use crate::refused;
use crate::session::Session;
use crate::spoken::Spoken;

/// What a path answers.
pub(crate) type Answered = Result<Response, Problem>;

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// A script in a browser cannot say `Authorization` for a socket, but which protocols it speaks.
fn bearer_of_socket(headers: &HeaderMap) -> Option<&str> {
    let spoken = only(headers, header::SEC_WEBSOCKET_PROTOCOL)?;
    spoken.split(',').find_map(|protocol| protocol.trim().strip_prefix("bearer."))
}

/// Who asks: the session of the bearer's token.
pub(crate) struct Caller(pub(crate) Arc<Session>);

impl FromRequestParts<Shared> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        let token = match parts.headers.contains_key(header::AUTHORIZATION) {
            true => bearer(&parts.headers),
            false => bearer_of_socket(&parts.headers),
        };
        let token = token.ok_or_else(refused::no_token)?;
        let session = app.sessions.find(token.trim()).ok_or_else(refused::sign_on_again)?;
        session.note_used();
        parts.extensions.get().inspect(|used: &&ConnectionUse| used.note_signed_on());
        Ok(Self(session))
    }
}

/// What the paths of a session have in common.
pub(crate) struct Call {
    pub(crate) app: Shared,
    pub(crate) session: Arc<Session>,
    pub(crate) spoken: Spoken,
}

impl FromRequestParts<Shared> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        let Caller(session) = Caller::from_request_parts(parts, app).await?;
        let spoken = Spoken::from_request_parts(parts, app).await?;
        Ok(Self { app: Arc::clone(app), session, spoken })
    }
}

impl Call {
    /// The answer, if all went well.
    pub(crate) fn ok(&self, root: &str, what: &impl Serialize) -> Answered {
        Ok(self.spoken.ok(root, what))
    }

    /// What became of a request.
    pub(crate) fn outcome(&self, status: StatusCode, answer: &Answer) -> Answered {
        Ok(self.spoken.answer(status, "outcome", &Outcome::from(answer)))
    }
}
