//! What a user's commands came to, the newest first.

use axum::Json;
use axum::extract::{Query, State};
use pares_broker::{
    AuditEntry, AuditNote, AuditPage, AuditRecord, BrokerRead, BrokerReply, OrderAsked, OrderHappened,
    OrderNote, OrderReply, StockSymbol, UserName, Verb, dollars, supervised, wished,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::{App, Shared};
use crate::caller::Caller;
use crate::commands::kebab;
use crate::problem::{Answer, Problem, reason_of};

/// Most entries in an answer.
const ENTRIES_MAX: usize = 200;
/// Entries in an answer, unless told.
const ENTRIES: usize = 50;
/// Most pages of the log that one answer is looked for in.
const PAGES_MAX: usize = 20;

/// Which part of the history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// Entries before this place.
    before: Option<u64>,
    /// So many, 1 to 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// Of this command only.
    command: Option<String>,
    /// Not before this, ms since 1970.
    since_ms: Option<u64>,
    /// Not behind this, ms since 1970.
    until_ms: Option<u64>,
}

/// A part of the history.
#[derive(Serialize, ToSchema)]
pub(crate) struct History {
    /// The newest first.
    entries: Vec<EntryShown>,
    /// There may be more before this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

/// What happened once.
#[derive(Serialize, ToSchema)]
pub(crate) struct EntryShown {
    /// Its place in the user's log, from 0 on.
    place: u64,
    /// As text: it may be above 2^53, which a script would round.
    number: String,
    time_ms: u64,
    /// One of the sixteen; absent where a trigger fires, something lapses, or an order on the exchange is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    /// The number of its order on the exchange, as text; of several the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<String>,
    /// Dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    /// `done` or `refused`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    notes: Vec<NoteShown>,
}

/// What came of it.
#[derive(Serialize, ToSchema)]
pub(crate) struct NoteShown {
    /// `hit`, `moved`, `fired`, `lapsed`, `deal`, `order`, `supervised`, `refused`.
    pub(crate) kind: &'static str,
    /// In words.
    pub(crate) text: String,
    /// Dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) amount: Option<String>,
}

/// What the caller's commands came to, and what happened without one.
#[utoipa::path(get, path = "/api/v1/history", params(Part), responses(
    (status = 200, description = "the answer", body = History), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn history(
    State(app): State<Shared>,
    caller: Caller,
    part: Result<Query<Part>, axum::extract::rejection::QueryRejection>,
) -> Answer<Json<History>> {
    let Query(part) = part.map_err(|why| Problem::bad(why.body_text()))?;
    let limit = part.limit.unwrap_or(ENTRIES);
    if !(1..=ENTRIES_MAX).contains(&limit) {
        return Err(Problem::bad("limit is 1 to 200"));
    }
    if [part.before, part.since_ms, part.until_ms]
        .iter()
        .flatten()
        .any(|number| i64::try_from(*number).is_err())
    {
        return Err(Problem::bad("places and times are below 2^63"));
    }
    let verb = part.command.as_deref().map(verb_of).transpose()?;
    Ok(Json(find(&app, &caller.name, &part, verb, limit).await?))
}

fn verb_of(name: &str) -> Answer<Verb> {
    Verb::ALL
        .into_iter()
        .find(|verb| kebab(*verb) == name)
        .ok_or_else(|| Problem::bad("there is no such command"))
}

/// The newest entries before a place of the log.
pub(crate) async fn newest(app: &App, user: &UserName, before: Option<u64>) -> Answer<Vec<AuditEntry>> {
    let read = BrokerRead::Newest { user: user.clone(), before };
    let page: AuditPage = app.in_time(app.front.read(read)).await??;
    Ok(page.entries)
}

async fn find(app: &App, user: &UserName, part: &Part, verb: Option<Verb>, limit: usize) -> Answer<History> {
    let (mut entries, mut before) = (Vec::new(), part.before);
    for _ in 0..PAGES_MAX {
        let page = newest(app, user, before).await?;
        // Times of one log never go back: before the first that is too old, all are.
        let too_old = |entry: &AuditEntry| part.since_ms.is_some_and(|since| entry.record.time_ms < since);
        let Some(last) = page.last().map(|entry| entry.place) else {
            return Ok(History { entries, before: None });
        };
        for entry in page {
            if too_old(&entry) {
                return Ok(History { entries, before: None });
            }
            let place = entry.place;
            if is_wanted(&entry, part, verb) {
                entries.push(shown(entry));
            }
            if entries.len() == limit {
                return Ok(History { entries, before: (place > 0).then_some(place) });
            }
        }
        if last == 0 {
            return Ok(History { entries, before: None });
        }
        before = Some(last);
    }
    Ok(History { entries, before })
}

fn is_wanted(entry: &AuditEntry, part: &Part, verb: Option<Verb>) -> bool {
    let of = entry.record.command.as_ref().map(|command| command.verb);
    part.until_ms.is_none_or(|until| entry.record.time_ms <= until) && (verb.is_none() || of == verb)
}

fn shown(AuditEntry { place, record, .. }: AuditEntry) -> EntryShown {
    let command = record.command.as_ref();
    let refusal = match record.reply {
        BrokerReply::Refused { refusal } => Some(refusal),
        _ => None,
    };
    EntryShown {
        place,
        number: record.number.to_string(),
        time_ms: record.time_ms,
        command: command.map(|command| kebab(command.verb)),
        symbol: symbol_of(&record).map(|symbol| symbol.to_string()),
        order: record.notes.iter().find_map(order_noted).map(|order| order.to_string()),
        amount: command
            .and_then(|command| command.cents.or(settled(&record.reply).map(|deal| deal.2)))
            .map(dollars),
        outcome: if refusal.is_some() { "refused" } else { "done" },
        reason: refusal.map(reason_of),
        notes: record.notes.iter().map(note).chain(wish(&record.reply)).chain(deal_of(&record)).collect(),
    }
}

/// The stock of a buy or sell that was committed or cancelled, its shares and cents; of a trigger that has fired too.
fn settled(reply: &BrokerReply) -> Option<(StockSymbol, u64, u64)> {
    match reply {
        BrokerReply::Settled { symbol, shares, cents } => Some((*symbol, *shares, *cents)),
        _ => None,
    }
}

/// What it is about, wherever the entry says so.
fn symbol_of(record: &AuditRecord) -> Option<StockSymbol> {
    let told = record.command.as_ref().and_then(|command| command.symbol);
    let told = told.or(settled(&record.reply).map(|deal| deal.0));
    told.or_else(|| {
        record.notes.iter().find_map(|note| match note {
            AuditNote::Order { note } => Some(note.symbol),
            AuditNote::NotDone { asked: OrderAsked::Place { terms, .. } } => Some(terms.symbol),
            _ => None,
        })
    })
}

/// Shares that a command has committed or cancelled, of which nothing is noted.
fn deal_of(record: &AuditRecord) -> Option<NoteShown> {
    let (symbol, shares, _) = settled(&record.reply).filter(|_| record.command.is_some())?;
    Some(NoteShown { kind: "deal", text: format!("{shares} {symbol}"), amount: None })
}

/// A cancel that is on its way has changed nothing yet, so nothing is noted of it.
fn wish(reply: &BrokerReply) -> Option<NoteShown> {
    let is_wish = matches!(reply, BrokerReply::Order { reply: OrderReply::Cancelling });
    is_wish.then(|| NoteShown { kind: "order", text: "a cancel was sent".into(), amount: None })
}

fn order_noted(note: &AuditNote) -> Option<u64> {
    match note {
        AuditNote::Order { note } => order_of(note),
        _ => None,
    }
}

/// Money that is repaid belongs to no order.
pub(crate) fn order_of(note: &OrderNote) -> Option<u64> {
    (note.happened != OrderHappened::Repaid).then_some(note.order)
}

fn order_note(note: &OrderNote) -> NoteShown {
    let OrderNote { symbol, shares, cents, happened, .. } = note;
    let text = match order_of(note) {
        Some(order) => format!("{shares} {symbol} of order {order} {}", happened.word()),
        None if *shares > 0 => format!("{shares} {symbol} of a void trade {}", happened.word()),
        None => format!("cash of a void trade in {symbol} {}", happened.word()),
    };
    NoteShown { kind: "order", text, amount: Some(dollars(*cents)).filter(|_| *cents > 0) }
}

pub(crate) fn note(of: &AuditNote) -> NoteShown {
    match of {
        AuditNote::Hit { quote } => {
            let text = format!("quote of {} requested", quote.symbol);
            NoteShown { kind: "hit", text, amount: Some(dollars(quote.price_cents)) }
        }
        AuditNote::Moved { is_add, cents, .. } => {
            let text = if *is_add { "cash credited" } else { "cash debited" };
            NoteShown { kind: "moved", text: text.into(), amount: Some(dollars(*cents)) }
        }
        AuditNote::Done { verb, symbol, cents, .. } => {
            let (kind, what) = done(*verb);
            NoteShown { kind, text: format!("{what} of {symbol}"), amount: Some(dollars(*cents)) }
        }
        AuditNote::Deal { symbol, shares, price_cents, .. } => {
            let text = format!("{shares} {symbol} at {}", dollars(*price_cents));
            NoteShown { kind: "deal", text, amount: Some(dollars(shares.saturating_mul(*price_cents))) }
        }
        AuditNote::Order { note } => order_note(note),
        AuditNote::Limited { .. } | AuditNote::Blocked { .. } => {
            NoteShown { kind: "supervised", text: supervised(of).unwrap_or_default(), amount: None }
        }
        AuditNote::NotDone { asked } => NoteShown { kind: "refused", text: wished(asked), amount: None },
    }
}

/// What a note of something done without a command is about.
pub(crate) fn done(verb: Verb) -> (&'static str, &'static str) {
    match verb {
        Verb::SetBuyTrigger => ("fired", "a buy trigger"),
        Verb::SetSellTrigger => ("fired", "a sell trigger"),
        Verb::Buy => ("lapsed", "a pending buy"),
        _ => ("lapsed", "a pending sell"),
    }
}
