//! The sixteen commands.
//!
//! A field that makes no sense does not stop here: the command is handed on with what is wrong of it, is refused by the rules, and has its place in the user's log like any other. What would have the
//! quote server asked does: each question costs, so nobody asks without an account, and nobody without end.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use pares_broker::{
    Asked, BrokerRead, BrokerReply, CommandName, NamedCommand, PersonRight, Refusal, StockQuote, StockSymbol,
    UserCommand, UserName, Verb, WINDOW_MS, cents_of, dollars, file_name,
};
use pares_http::headers::only;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::Shared;
use crate::body::Said;
use crate::caller::Caller;
use crate::problem::{self, Answer, Problem};

/// A front asks again for a quote that has less left, ms.
const QUOTE_LEFT_MS: u64 = 3_000;

/// A command's fields: those of its verb and no others.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fields {
    /// 1 to 3 upper-case letters.
    symbol: Option<String>,
    /// Dollars, two decimals at most.
    #[schema(example = "12.34")]
    amount: Option<String>,
    /// Of a trigger: dollars, two decimals at most.
    #[schema(example = "12.34")]
    price: Option<String>,
    /// Of `dumplog`: a file's name.
    file: Option<String>,
    /// Of `commit-buy`, `cancel-buy`, `commit-sell`, `cancel-sell`: the `number` of what is meant, as the account shows it. Refused if the newest is another one.
    #[schema(pattern = "^[0-9]+$")]
    number: Option<String>,
}

/// What became of a command.
#[derive(Serialize, ToSchema)]
pub(crate) struct Told {
    command: String,
    outcome: Outcome,
}

/// What it came to. Money is dollars with two decimals.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// There is no more to tell.
    Done,
    /// Free cash now.
    Cash { cash: String },
    /// The quote.
    Price { price: String, server_ms: u64, usable_until_ms: u64 },
    /// Shares are to be committed until then.
    Pending { shares: u64, price: String, cost: String, until_ms: u64 },
    /// Bought, sold, cancelled, or fired at once.
    Settled { symbol: String, shares: u64, amount: String },
    /// A trigger waits; shares reserved for it.
    Armed { shares: u64 },
    /// It was done once, too long ago to say what it came to: the history says.
    Repeated,
}

/// `commit-buy` is `COMMIT_BUY`.
pub(crate) fn kebab(verb: Verb) -> String {
    verb.name().to_ascii_lowercase().replace('_', "-")
}

/// Does a command on the caller's account.
///
/// `add`: `amount`. `quote`, `cancel-set-buy`, `cancel-set-sell`: `symbol`. `buy`, `sell`, `set-buy-amount`, `set-sell-amount`: `symbol` and `amount`. `set-buy-trigger`, `set-sell-trigger`: `symbol` and
/// `price`. `commit-buy`, `cancel-buy`, `commit-sell`, `cancel-sell`: nothing, or `number`. `display-summary`: nothing. `dumplog`: `file`. A command with other fields is refused, and stands in the log.
#[utoipa::path(post, path = "/api/v1/commands/{command}", request_body = Fields,
    params(("command" = String, Path, description = "such as `buy`, `commit-buy`, `set-sell-trigger`"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 64 visible characters: a command is executed once per key")),
    responses((status = 200, description = "the answer", body = Told), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn command(
    State(app): State<Shared>,
    Path(command): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    Said(fields): Said<Fields>,
) -> Answer<Json<Told>> {
    let verb = Verb::ALL.into_iter().find(|verb| kebab(*verb) == command);
    let verb = verb.ok_or_else(|| Problem::unknown("there is no such command").reason("no-command"))?;
    let user = caller.with(PersonRight::Trader)?.name;
    app.commands.take(user.as_str(), app.now_ms()).map_err(Problem::too_many)?;
    let name = command_name(&headers)?;
    let asked = asked(verb, &user, &fields)?;
    let before = may_ask(&app, &user, name.as_ref(), &asked).await?;
    let reply = match before {
        Some(reply) => reply,
        None => app.in_time(app.front.ask(Some(user), name, asked)).await??,
    };
    Ok(Json(Told { command, outcome: outcome(reply)? }))
}

const KEY: &str = "idempotency-key";

/// The name that the request gives to what it asks for.
pub(crate) fn command_name(headers: &HeaderMap) -> Answer<Option<CommandName>> {
    if !headers.contains_key(KEY) {
        return Ok(None);
    }
    let name = only(headers, KEY).and_then(CommandName::new);
    let wrong = "a request may have one Idempotency-Key, of 1 to 64 visible ASCII characters";
    name.map(Some).ok_or_else(|| Problem::bad(wrong).reason("bad-key"))
}

/// Whether the quote server may be asked for it, where it would be. What was done already under this name needs no quote: the reply.
async fn may_ask(
    app: &Shared,
    user: &UserName,
    name: Option<&CommandName>,
    asked: &Asked,
) -> Answer<Option<BrokerReply>> {
    let Asked::Command { command, fault: None } = asked else { return Ok(None) };
    let Some(symbol) = command.symbol.filter(|_| command.verb.needs_quote() && command.check().is_ok())
    else {
        return Ok(None);
    };
    if !app.has_account(user).await? {
        return Err(problem::refused(Refusal::NoAccount));
    }
    let now_ms = app.now_ms();
    let is_usable = |quote: StockQuote| now_ms < quote.server_ms.saturating_add(WINDOW_MS - QUOTE_LEFT_MS);
    if app.front.quote(symbol).is_some_and(is_usable) {
        return Ok(None);
    }
    if let Some(name) = name
        && let Some(first) = done_before(app, user, name).await?
    {
        return Ok(Some(if first.asked == *asked { first.reply } else { BrokerReply::NameTaken }));
    }
    app.fresh_quotes.take(user.as_str(), now_ms).map_err(Problem::too_many).map(|()| None)
}

/// What was done under this name, as a site knows.
async fn done_before(app: &Shared, user: &UserName, name: &CommandName) -> Answer<Option<NamedCommand>> {
    let read = BrokerRead::Named { user: user.clone(), name: name.clone() };
    Ok(app.in_time(app.front.read(read)).await??)
}

/// The command as far as it can be read, with what is wrong of it.
fn asked(verb: Verb, user: &UserName, fields: &Fields) -> Answer<Asked> {
    let is_trigger = matches!(verb, Verb::SetBuyTrigger | Verb::SetSellTrigger);
    let (money, other) =
        if is_trigger { (&fields.price, &fields.amount) } else { (&fields.amount, &fields.price) };
    let mut fault = other.as_ref().map(|_| Refusal::Arity);
    let symbol = read(fields.symbol.as_deref(), StockSymbol::new, Refusal::BadSymbol, &mut fault);
    let cents = read(money.as_deref(), cents_of, Refusal::BadAmount, &mut fault);
    let plain = |name: &str| file_name(name).map(str::to_owned);
    let file = read(fields.file.as_deref(), plain, Refusal::BadFile, &mut fault);
    let command = UserCommand { verb, user: Some(user.clone()), symbol, cents, file };
    let wrong = || Problem::bad("number must be that of the pending command, as in the account");
    let number = fields.number.as_ref().map(|number| number.parse().map_err(|_| wrong()));
    Ok(match number.transpose()? {
        Some(number) if verb.settles() && fault.is_none() => Asked::Settle { command, number },
        Some(_) => Asked::Command { command, fault: fault.or(Some(Refusal::Arity)) },
        None => Asked::Command { command, fault },
    })
}

fn read<T>(
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Option<T>,
    refusal: Refusal,
    fault: &mut Option<Refusal>,
) -> Option<T> {
    let read = parse(text?);
    if read.is_none() {
        fault.get_or_insert(refusal);
    }
    read
}

fn outcome(reply: BrokerReply) -> Answer<Outcome> {
    Ok(match reply {
        BrokerReply::Cash { cash_cents } => Outcome::Cash { cash: dollars(cash_cents) },
        BrokerReply::Price { price_cents, server_ms } => {
            Outcome::Price { price: dollars(price_cents), server_ms, usable_until_ms: server_ms + WINDOW_MS }
        }
        BrokerReply::Held { shares, price_cents, until_ms } => {
            let cost = dollars(shares.saturating_mul(price_cents));
            Outcome::Pending { shares, price: dollars(price_cents), cost, until_ms }
        }
        BrokerReply::Settled { symbol, shares, cents } => {
            Outcome::Settled { symbol: symbol.to_string(), shares, amount: dollars(cents) }
        }
        BrokerReply::Armed { shares } => Outcome::Armed { shares },
        BrokerReply::Done => Outcome::Done,
        BrokerReply::Repeated => Outcome::Repeated,
        other => return Err(not_done(&other)),
    })
}

/// A reply that does not say that it was done.
pub(crate) fn not_done(reply: &BrokerReply) -> Problem {
    let conflict = |detail: &str, reason: &str| Problem::of(StatusCode::CONFLICT, detail).reason(reason);
    match reply {
        BrokerReply::Refused { refusal } => problem::refused(*refusal),
        BrokerReply::NameTaken => {
            conflict("another command was sent under this Idempotency-Key", "name-taken")
        }
        BrokerReply::Repeated => conflict(
            "the command was executed too long ago to repeat its outcome: see the history",
            "repeated",
        ),
        // Too many wait for one before them.
        BrokerReply::Early => problem::busy(),
        // No front answers a command with anything else.
        _ => Problem::of(StatusCode::BAD_GATEWAY, "the accounts gave no answer to this command")
            .reason("no-answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_without_room_is_refused_not_unanswered() {
        assert_eq!(not_done(&BrokerReply::Early), problem::busy());
    }
}
