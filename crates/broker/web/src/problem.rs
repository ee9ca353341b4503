//! What goes wrong with the broker's commands, as [problem documents](pares_http::problem::Problem).

use axum::http::StatusCode;
use pares_broker::{CENTS_MAX, Refusal, dollars};
pub(crate) use pares_http::problem::Problem;

use crate::broker::Unavailable;

/// An answer, or why there is none.
pub(crate) type Answer<T> = Result<T, Problem>;

pub(crate) fn unavailable() -> Problem {
    let detail = "no answer in time: the command may have been executed. Repeat it under the same Idempotency-Key: it is executed only once";
    Problem::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("unavailable").retry(1)
}

pub(crate) fn busy() -> Problem {
    let detail = "this server is overloaded, and nothing was done: try again later, or at another server";
    Problem::of(StatusCode::SERVICE_UNAVAILABLE, detail).reason("busy").retry(1)
}

fn many_files() -> Problem {
    let detail = "you have reached the limit of log files: name an existing one to overwrite it";
    Problem::of(StatusCode::CONFLICT, detail).reason("too-many-files")
}

fn not_written() -> Problem {
    let detail = "the command was executed, but the log could not be written: repeat it under the same Idempotency-Key to write it";
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
    let detail = match refusal {
        // Not in the refusal's own words: they are in logs, whose heads would change.
        Refusal::BadAmount => format!("{refusal}, up to {}", dollars(CENTS_MAX)),
        _ => refusal.to_string(),
    };
    let problem = Problem::of(status, detail).reason(&reason_of(refusal)).code(refusal as u8);
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
