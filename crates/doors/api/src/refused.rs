//! Refusals as problem documents.

use axum::http::StatusCode;
use pares_http::problem::Problem;
use pares_resources::order_terms::BadField;
use pares_resources::status;
use pares_types::{Answer, Reason};

/// The exchange refuses it.
pub(crate) fn refused(reason: Reason) -> Problem {
    let status = StatusCode::from_u16(status::of(reason)).expect("statuses of the table are statuses");
    let problem = Problem::of(status, reason.meaning()).reason(reason.word()).code(reason as u8);
    let problem = match status::limit(reason) {
        Some(limit) => problem.limit(limit),
        None => problem,
    };
    match status::retry_s(reason) {
        Some(after_s) => problem.retry(after_s),
        None => problem,
    }
}

/// The exchange has refused it, and its name is used.
pub(crate) fn recorded(answer: &Answer) -> Problem {
    refused(answer.reason).recorded((answer.shard.0, answer.position.0), answer.repeat)
}

/// No instrument has that symbol or number.
pub(crate) fn unknown_instrument() -> Problem {
    refused(Reason::UnknownInstrument)
}

/// The token is of no open session.
pub(crate) fn sign_on_again() -> Problem {
    let detail =
        "no open session has this token: sign on, and repeat the request under the same client_order_id";
    Problem::of(StatusCode::UNAUTHORIZED, detail).reason("sign_on_again")
}

/// The request has no token.
pub(crate) fn no_token() -> Problem {
    let detail =
        "no bearer token: sign on by `POST /v1/sign-on`, and send the token as `Authorization: Bearer TOKEN`";
    Problem::of(StatusCode::UNAUTHORIZED, detail).reason("sign_on_again")
}

/// No answer came in time.
pub(crate) fn no_answer_yet() -> Problem {
    let detail = "no answer yet: the request may have been executed. Repeat it under the same client_order_id: it is executed only once";
    Problem::of(StatusCode::GATEWAY_TIMEOUT, detail).reason("no_answer_yet").retry(1)
}

/// The timer is set, and no gateway has said so.
pub(crate) fn timer_without_gateway() -> Problem {
    let detail = "this server has the timer, but no gateway has confirmed it yet: check `GET /v1/cancel-after`, or set it again";
    Problem::of(StatusCode::GATEWAY_TIMEOUT, detail).reason("no_answer_yet").retry(1)
}

/// A stream has no message of that number yet.
pub(crate) fn not_used_yet(next: u64) -> Problem {
    let detail = format!("the stream has no message of that number: the next number is {next}");
    Problem::unknown(detail).reason("not_used_yet")
}

/// No gateway is there.
pub(crate) fn no_gateway() -> Problem {
    Problem::of(StatusCode::SERVICE_UNAVAILABLE, "no gateway answers: nothing was done")
        .reason("no_gateway")
        .retry(1)
}

/// This server has as many of them as it may.
pub(crate) fn full(what: &str) -> Problem {
    let detail = format!("this server has reached its limit of {what}: nothing was done");
    Problem::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("full").retry(1)
}

/// There is no such order, as far as the gateway knows.
pub(crate) fn no_order() -> Problem {
    Problem::of(StatusCode::NOT_FOUND, "this gateway knows no such order: never entered, or ended long ago")
        .reason(Reason::UnknownOrder.word())
        .code(Reason::UnknownOrder as u8)
}

/// A field is not as it should be.
pub(crate) fn bad_field(BadField { field, why }: BadField) -> Problem {
    Problem::bad(format!("{field}: {why}"))
}
