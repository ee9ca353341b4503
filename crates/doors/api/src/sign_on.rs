//! Signing on. The gateway's challenge goes there, the member's proof comes back; nothing of the key ever is here.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use pares_http::problem::Problem;
use pares_keys::to_hex;
use pares_resources::deeds::EXCHANGE;
use pares_table::Origin;
use pares_types::{MemberId, Reason};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::Shared;
use crate::caller::{Answered, Caller};
use crate::refused;
use crate::session::Session;
use crate::sessions::SessionPlace;
use crate::spoken::{Said, Spoken};
use crate::wire::{Agreed, SignedOn, Wire};

/// Who signs on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignOnForm {
    /// The member.
    #[schema(value_type = u64, maximum = 4_294_967_295_u64, example = 7)]
    member: u32,
    /// Which of its sessions, from 1; where sign-on is open 0 will do.
    #[serde(default)]
    session: u16,
}

/// A proof.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProofForm {
    /// 64 bytes as 128 hex digits.
    #[schema(pattern = "^[0-9a-fA-F]{128}$")]
    proof: String,
}

impl ProofForm {
    /// The bytes, if that is what the digits are.
    pub(crate) fn bytes(&self) -> Option<[u8; 64]> {
        let (first, second) = self.proof.split_at_checked(64)?;
        let halves = [pares_keys::from_hex(first)?, pares_keys::from_hex(second)?];
        halves.concat().try_into().ok()
    }
}

/// A session that is signed on.
#[derive(Serialize, ToSchema)]
pub(crate) struct Session201 {
    /// To be sent as `Authorization: Bearer TOKEN`.
    token: String,
    /// The member.
    #[schema(value_type = u64)]
    member: u32,
    /// Its session.
    session: u16,
    /// The member whose orders and streams it receives; 0: its own.
    #[schema(value_type = u64)]
    copied: u32,
    /// The gateway that took it.
    gateway: u16,
    /// Requests that it may have unanswered.
    in_flight_max: u16,
}

/// What the gateway asks to be proved.
#[derive(Serialize, ToSchema)]
pub(crate) struct Challenge {
    /// The path of the proof: `POST /v1/sign-on/{sign_on}`, within ten seconds, once.
    sign_on: String,
    /// The gateway that asks.
    gateway: u16,
    /// What it has made up, 32 bytes in hex.
    nonce: String,
    /// To be signed: 64 bytes in hex: docs/protocols/order-entry.md, *Sign-on*.
    transcript: String,
}

/// Signs a session on, or asks for a proof.
#[utoipa::path(post, path = "/v1/sign-on", operation_id = "sign_on", tag = "session", security(()), request_body = SignOnForm, responses(
    (status = 201, description = "Signed on: this exchange requires no proof", body = Session201),
    (status = 202, description = "Prove it", body = Challenge)))]
pub(crate) async fn begin(
    State(app): State<Shared>,
    Extension(network): Extension<Origin>,
    spoken: Spoken,
    Said(form): Said<SignOnForm>,
) -> Answered {
    let place = app.sessions.place().ok_or_else(|| refused::full("sessions"))?;
    let who = (MemberId(form.member), form.session);
    let full = || refused::full("sign-ons");
    if !app.sessions.has_room(network) {
        return Err(full());
    }
    if !app.sessions.may_prove(network, app.sessions.now_ns()) {
        return Err(refused::refused(Reason::TooManyAttempts));
    }
    // Members are spread over the gateways.
    let first = form.member as usize % 65_536 + usize::from(form.session);
    match Wire::sign_on(&app.settings, first, who).await.map_err(|_| refused::no_gateway())? {
        (wire, SignedOn::Done(agreed)) => Ok(signed_on(&app, spoken, (who, place), wire, agreed, false)),
        (wire, SignedOn::Challenged(transcript)) => {
            let challenge = Challenge {
                gateway: transcript.gateway.0,
                nonce: to_hex(&transcript.nonce),
                transcript: to_hex(&transcript.bytes()),
                sign_on: app.sessions.keep(network, wire, transcript).ok_or_else(full)?,
            };
            Ok(spoken.answer(StatusCode::ACCEPTED, "challenge", &challenge))
        }
        (_, SignedOn::Refused(reason)) => Err(refused::refused(reason)),
    }
}

/// Passes a proof on to the gateway that asked for it.
#[utoipa::path(post, path = "/v1/sign-on/{sign_on}", operation_id = "prove", tag = "session", security(()), request_body = ProofForm,
    params(("sign_on" = String, Path, description = "of the challenge")), responses(
    (status = 201, description = "Signed on", body = Session201)))]
pub(crate) async fn prove(
    State(app): State<Shared>,
    Path(id): Path<String>,
    spoken: Spoken,
    Said(form): Said<ProofForm>,
) -> Answered {
    let proof = form.bytes().ok_or_else(|| Problem::bad("proof must be 64 bytes as 128 hex digits"))?;
    let gone = || Problem::unknown("no sign-on of that name waits for a proof: start again");
    let place = app.sessions.place().ok_or_else(|| refused::full("sessions"))?;
    let mut pending = app.sessions.take(&id).ok_or_else(gone)?;
    if !app.sessions.try_proof(pending.of, app.sessions.now_ns()) {
        return Err(refused::refused(Reason::TooManyAttempts));
    }
    let proved = pending.wire.prove(&proof, pending.transcript).await;
    if !matches!(proved, Ok(SignedOn::Refused(Reason::WrongKey))) {
        app.sessions.was_not_wrong(pending.of, app.sessions.now_ns());
    }
    // The gateway may have the proof.
    match proved.map_err(|_| refused::no_answer_yet())? {
        SignedOn::Done(agreed) => {
            let who = (pending.transcript.member, pending.transcript.session);
            Ok(signed_on(&app, spoken, (who, place), pending.wire, agreed, true))
        }
        SignedOn::Refused(reason) => Err(refused::refused(reason)),
        SignedOn::Challenged(_) => Err(refused::no_gateway()),
    }
}

/// Ends the session: its connection to the gateway is closed, and what it guards is cancelled.
#[utoipa::path(delete, path = "/v1/session", operation_id = "sign_off", tag = "session", responses(
    (status = 204, description = "It has ended")))]
pub(crate) async fn end(Caller(session): Caller) -> StatusCode {
    session.end();
    StatusCode::NO_CONTENT
}

fn signed_on(
    app: &Shared,
    spoken: Spoken,
    ((member, number), place): ((MemberId, u16), SessionPlace),
    wire: Wire,
    agreed: Agreed,
    needs_proof: bool,
) -> Response {
    let session = Session::new((member, number), agreed.copied, app.settings.patience);
    // What an operator asks for is done soon or never: it does not wait for another gateway.
    let ends_with_gateway = needs_proof || member == EXCHANGE;
    let running = Arc::clone(&session).run(app.settings.clone(), wire, agreed, ends_with_gateway);
    let token = app.sessions.add(session, place);
    tokio::spawn(running);
    let Agreed { gateway, in_flight_max, copied, .. } = agreed;
    let told =
        Session201 { token, member: member.0, session: number, copied, gateway: gateway.0, in_flight_max };
    spoken.answer(StatusCode::CREATED, "session", &told)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use pares_http::connections::WebTransport;
    use serde_json::json;

    use super::*;
    use crate::app::App;
    use crate::sessions::STRANGERS_MAX;
    use crate::sessions::tests::TRANSCRIPT;
    use crate::settings::ApiSettings;

    #[test]
    fn client_without_room_is_refused_before_gateway_call() {
        let calls = Arc::new(AtomicUsize::new(0));
        let called = Arc::clone(&calls);
        let gateways = Arc::new(move || {
            called.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        });
        let settings = ApiSettings { sessions_max: 1, ..ApiSettings::new(gateways) };
        let app = App::new(settings, &WebTransport::Loopback);
        let here: Origin = None;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = || {
            let form = Said(serde_json::from_value(json!({ "member": 7 })).unwrap());
            let caller = Extension(here);
            let begun = begin(State(Arc::clone(&app)), caller, Spoken::Json, form);
            serde_json::to_value(runtime.block_on(begun).unwrap_err()).unwrap()["reason"].clone()
        };
        assert_eq!((refused(), calls.load(Ordering::Relaxed)), (json!("no_gateway"), 1));
        let place = app.sessions.place();
        assert_eq!((refused(), calls.load(Ordering::Relaxed)), (json!("full"), 1), "sessions");
        drop(place);
        // However long the test takes, none of them has had its time.
        let later = Instant::now() + Duration::from_secs(3_600);
        (0..STRANGERS_MAX).for_each(|_| _ = app.sessions.keep_at(later, here, Wire::of_nobody(), TRANSCRIPT));
        assert_eq!((refused(), calls.load(Ordering::Relaxed)), (json!("full"), 1), "sign-ons");
    }
}
