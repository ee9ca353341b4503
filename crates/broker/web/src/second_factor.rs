//! The second factor: codes that change each 30 seconds.
//!
//! A secret is given for the password, since who has stolen a session would lock its owner out. It counts when its owner has shown a code of it: a QR code that could not be read locks nobody out. From then on it goes only with the password and a code that was not used before.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use pares_broker::{PersonAsked, Refusal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::Shared;
use crate::body::Said;
use crate::caller::Caller;
use crate::codes;
use crate::people::{done, person, proved, step};
use crate::problem::{self, Answer, Problem};

/// A secret, told once.
#[derive(Serialize, ToSchema)]
pub(crate) struct Secret {
    /// In base 32, to be typed.
    secret: String,
    /// `otpauth://..`, to be shown as a QR code.
    uri: String,
}

/// What a secret is given for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnPassword {
    password: String,
}

/// A code.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Code {
    /// Six digits.
    #[schema(pattern = "^[0-9]{6}$")]
    code: String,
}

/// What proves that it is the owner.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Proof {
    password: String,
    /// Six digits; none is needed where the second factor is not confirmed.
    code: Option<String>,
}

/// A new secret, which counts once it is confirmed.
#[utoipa::path(post, path = "/api/v1/totp", request_body = OwnPassword, responses(
    (status = 200, description = "the answer", body = Secret), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn begin(
    State(app): State<Shared>,
    caller: Caller,
    Said(OwnPassword { password }): Said<OwnPassword>,
) -> Answer<Json<Secret>> {
    proved(&app, &caller, password).await?;
    let (secret, name) = (codes::new_secret(), caller.name);
    let (text, uri) = codes::shown(&secret, name.as_str())?;
    done(app.person(PersonAsked::SetCode { name, secret }).await?)?;
    Ok(Json(Secret { secret: text, uri }))
}

/// Its owner shows a code of the secret. All other sessions end.
#[utoipa::path(post, path = "/api/v1/totp/confirm", request_body = Code, responses(
    (status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn confirm(
    State(app): State<Shared>,
    caller: Caller,
    Said(Code { code }): Said<Code>,
) -> Answer<StatusCode> {
    let (name, session) = (caller.name, caller.session);
    let secret = person(&app, &name).await?.code.filter(|code| !code.is_confirmed);
    let secret = secret.ok_or_else(|| problem::refused(Refusal::PersonChanged))?.secret;
    let wrong = || Problem::of(StatusCode::UNPROCESSABLE_ENTITY, "the code is wrong").reason("wrong-code");
    let step = codes::step_of(&secret, &code, app.now_ms()).ok_or_else(wrong)?;
    done(app.person(PersonAsked::ConfirmCode { name, secret, step, session }).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// There is no second factor any more.
#[utoipa::path(delete, path = "/api/v1/totp", request_body = Proof, responses(
    (status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn end(
    State(app): State<Shared>,
    caller: Caller,
    Said(proof): Said<Proof>,
) -> Answer<StatusCode> {
    let person = proved(&app, &caller, proof.password).await?;
    let name = caller.name;
    let step = step(&app, &person, proof.code.as_deref())?;
    done(app.person(PersonAsked::DropCode { name, step }).await?)?;
    Ok(StatusCode::NO_CONTENT)
}
