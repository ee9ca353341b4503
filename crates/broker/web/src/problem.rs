//! What goes wrong with the broker's commands, as [problem documents](pares_http::problem::Problem).

use axum::http::StatusCode;
use pares_broker::Refusal;
pub(crate) use pares_http::problem::Problem;

use crate::broker::Unavailable;

pub(crate) fn unavailable() -> Problem {
    let detail =
        "no answer in time: it may be done or not, and the same under the same Idempotency-Key is done once";
    Problem::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("unavailable").retry(1)
}

pub(crate) fn busy() -> Problem {
    let detail = "too much waits at this server: nothing was done, and later, or at another one, it may be";
    Problem::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("busy").retry(1)
}

fn many_files() -> Problem {
    let detail = "you have as many files of logs as anybody may: name one of them, and it is written anew";
    Problem::of(StatusCode::CONFLICT, detail).reason("too-many-files")
}

fn not_written() -> Problem {
    let detail = "the command was done, but the log could not be written: the same under the same Idempotency-Key writes it";
    Problem::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("log-not-written").retry(1)
}

/// The rules refuse it.
pub(crate) fn refused(refusal: Refusal) -> Problem {
    let status = match refusal {
        Refusal::PersonTaken | Refusal::PersonChanged | Refusal::OtherPending | Refusal::OrderEnded => {
            StatusCode::CONFLICT
        }
        Refusal::NoPerson | Refusal::NoOrder => StatusCode::NOT_FOUND,
        Refusal::NoRight | Refusal::OwnLimits => StatusCode::FORBIDDEN,
        Refusal::CodeUsed => StatusCode::UNAUTHORIZED,
        Refusal::TooManyTries => StatusCode::TOO_MANY_REQUESTS,
        Refusal::ClockOff => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let problem = Problem::of(status, refusal.to_string()).reason(&reason_of(refusal)).code(refusal as u8);
    if refusal == Refusal::ClockOff { problem.retry(10) } else { problem }
}

/// `InsufficientCash` is `insufficient-cash`.
pub(crate) fn reason_of(refusal: Refusal) -> String {
    let mut words = String::new();
    for letter in format!("{refusal:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

impl From<Unavailable> for Problem {
    fn from(why: Unavailable) -> Self {
        match why {
            Unavailable::Silent(_) => unavailable(),
            Unavailable::Busy(_) => busy(),
            Unavailable::ManyFiles => many_files(),
            Unavailable::Unwritten => not_written(),
        }
    }
}
