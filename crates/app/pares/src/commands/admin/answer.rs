//! The exchange's answer, for people and for programs.

use pares_client::Answer;
use pares_types::{Reason, Status};
use serde_json::json;

pub(super) fn as_line(answer: &Answer) -> String {
    let mut line = answer.status.to_string();
    if answer.reason != Reason::None {
        line.push_str(&format!(" ({})", answer.reason));
    }
    if answer.status == Status::MassCancelled {
        line.push_str(&format!(", {} orders cancelled", answer.executed));
    }
    line.push_str(&format!(
        ": request {} at position {} of shard {}",
        answer.request, answer.position, answer.shard
    ));
    line
}

pub(super) fn as_json(answer: &Answer, is_proposed: bool) -> String {
    json!({
        "proposed": is_proposed,
        "status": answer.status.word(),
        "reason": answer.reason.word(),
        "request": answer.request.to_string(),
        "shard": answer.shard.0,
        "position": answer.position.0,
        "instrument": answer.instrument.0,
        "executed": answer.executed.0,
        "remaining": answer.remaining.0,
        "events": answer.events,
    })
    .to_string()
}
