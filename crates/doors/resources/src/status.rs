//! A refusal as an HTTP status: what a client that knows no word of the exchange has to do.

use pares_types::Reason;

/// The status of a request that was refused for `reason`.
#[must_use]
pub fn of(reason: Reason) -> u16 {
    use Reason as R;
    match reason {
        R::MalformedRequest => 400,
        R::NotSignedOn | R::WrongKey | R::WrongClock | R::Revoked | R::TakenOver => 401,
        R::NoRight | R::NotPermitted | R::OtherSeries | R::SecondOperator | R::Blocked => 403,
        R::UnknownInstrument | R::UnknownOrder | R::UnknownClientOrderId | R::UnknownShard => 404,
        R::DuplicateRequest | R::TooOld | R::TooManySeries | R::Overtaken => 409,
        R::NotKept => 410,
        R::Throttled | R::Overloaded | R::TooManyAttempts | R::AlreadyAsked => 429,
        R::TooManyConnections | R::TooManySessions => 429,
        R::StorageUnavailable | R::NotRecorded | R::TlsRequired => 503,
        _ => 422,
    }
}

/// In how many seconds the same again makes sense, if waiting is what is asked of the client.
#[must_use]
pub fn retry_s(reason: Reason) -> Option<u64> {
    matches!(of(reason), 429 | 503).then_some(1)
}

/// The name of the limit that is used up, if that is why.
#[must_use]
pub fn limit(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::Throttled => Some("rate"),
        Reason::Overloaded => Some("in-flight"),
        Reason::OrdersLimit => Some("orders"),
        _ => None,
    }
}
