//! Pages: of the log, of armed triggers, of stacks that will lapse. Reads of a snapshot, of any length in all, none of which is long.

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange, Value, fields};

use crate::audit::AuditRecord;
use crate::coded::{Text, encode_text};
use crate::command::{StockSymbol, TradeWay, UserName};
use crate::ledger::{BrokerError, Found, Shelf};
use crate::rows::{self, TIME_MAX_MS};
use crate::summary::user_row;

/// Most entries in a page of the log: it fits into a reply.
pub const AUDIT_PAGE_MAX: usize = 100;
/// Most triggers, or stacks, in a page.
pub const WATCH_PAGE_MAX: usize = 1_000;

/// An entry of the log, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Whose; empty for an entry of nobody.
    pub user: String,
    /// Its place in the user's log: 0 and on, in the order of execution. Of nobody's entries it is the request's number.
    pub place: u64,
    /// What happened.
    pub record: AuditRecord,
}

/// Entries of the log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// At most [`AUDIT_PAGE_MAX`].
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins; none after the last.
    pub next: Option<Key>,
}

/// A trigger that is armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmedTrigger {
    /// On which stock.
    pub symbol: StockSymbol,
    /// Which trigger.
    pub way: TradeWay,
    /// Whose.
    pub user: UserName,
    /// At this price or a better one, cents.
    pub price_cents: u64,
}

/// Armed triggers, by stock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmedPage {
    /// At most [`WATCH_PAGE_MAX`].
    pub triggers: Vec<ArmedTrigger>,
    /// Where the next page begins; none after the last.
    pub next: Option<Key>,
}

/// A stack in which something is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingExpiry {
    /// Whose.
    pub user: UserName,
    /// Which of the two.
    pub way: TradeWay,
    /// When the oldest was placed, ms.
    pub placed_ms: u64,
}

/// Stacks in which something is pending, by user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LapsingPage {
    /// At most [`WATCH_PAGE_MAX`].
    pub stacks: Vec<PendingExpiry>,
    /// Where the next page begins; none after the last.
    pub next: Option<Key>,
}

/// A page of the log of one user, or of all of it, user by user, each in the order of execution. What lies outside that log is never shown, wherever `from` is.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub fn audit_page<S: Shelf>(shelf: &S, user: Option<&UserName>, from: Option<&Key>) -> Found<AuditPage, S> {
    let all = user.map_or_else(rows::all_audit, |user| rows::all_of(rows::AUDIT, user.as_str()));
    let (entries, next) = page(shelf, all, from, AUDIT_PAGE_MAX, entry)?;
    Ok(AuditPage { entries, next })
}

/// The newest entries of a user's log before a place, or of all of it, the newest first. The next page is before the last one's place, unless that is 0.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub(crate) fn newest_page<S: Shelf>(shelf: &S, user: &UserName, before: Option<u64>) -> Found<AuditPage, S> {
    let end = user_row(shelf, user.as_str())?.map_or(0, |row| row.place);
    let to = before.map_or(end, |before| before.min(end));
    let range = rows::audit_between(user, to.saturating_sub(AUDIT_PAGE_MAX as u64), to);
    let (mut entries, _) = page(shelf, range, None, AUDIT_PAGE_MAX, entry)?;
    entries.reverse();
    Ok(AuditPage { entries, next: None })
}

/// Where an entry of a user's log lies: a page may begin there.
#[must_use]
pub fn audit_place(user: &UserName, place: u64) -> Key {
    rows::audit(user.as_str(), place)
}

/// A page of the armed triggers of all users.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub(crate) fn armed_page<S: Shelf>(shelf: &S, from: Option<&Key>) -> Found<ArmedPage, S> {
    let (triggers, next) = page(shelf, rows::all_armed(), from, WATCH_PAGE_MAX, |key, value| {
        let (letters, rest) = key.get(2..)?.split_first_chunk()?;
        let (way, user) = way_first(rest)?;
        let symbol = StockSymbol::of_padded(*letters)?;
        Some(ArmedTrigger { symbol, way, user, price_cents: u64::decode(&mut value.as_bytes()).ok()? })
    })?;
    Ok(ArmedPage { triggers, next })
}

/// A page of the stacks of all users in which something is pending.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub(crate) fn lapsing_page<S: Shelf>(shelf: &S, from: Option<&Key>) -> Found<LapsingPage, S> {
    let (stacks, next) = page(shelf, rows::all_lapsing(), from, WATCH_PAGE_MAX, |key, value| {
        let (way, user) = key.get(3..)?.split_last()?;
        let (way, user) = (way_of(*way)?, user_of(user)?);
        let placed_ms = u64::decode(&mut value.as_bytes()).ok().filter(|ms| *ms <= TIME_MAX_MS)?;
        Some(PendingExpiry { user, way, placed_ms })
    })?;
    Ok(LapsingPage { stacks, next })
}

/// What `row` makes of the first `limit` items of `all` that do not lie before `from`, and where the next page begins.
fn page<T, S: Shelf>(
    shelf: &S,
    all: KeyRange,
    from: Option<&Key>,
    limit: usize,
    row: impl Fn(&[u8], &Value) -> Option<T>,
) -> Found<(Vec<T>, Option<Key>), S> {
    let first = from.filter(|from| **from > all.from).unwrap_or(&all.from).clone();
    let range = KeyRange { from: first, to: all.to };
    let items = shelf.first(&range, limit).map_err(BrokerError::Items)?;
    let last = items.last().filter(|_| items.len() == limit);
    let next = last.map(|(key, _)| Key::new([key.as_bytes(), &[0]].concat()));
    let rows = items.iter().map(|(key, value)| row(key.as_bytes(), value));
    let rows: Option<Vec<T>> = rows.collect();
    Ok((rows.ok_or(BrokerError::Damaged(DecodeError::Length))?, next))
}

fn entry(key: &[u8], value: &Value) -> Option<AuditEntry> {
    let (user, place) = key.get(3..)?.split_last_chunk()?;
    let user = core::str::from_utf8(user).ok()?.to_owned();
    let record = AuditRecord::decode(&mut value.as_bytes()).ok()?;
    Some(AuditEntry { user, place: u64::from_be_bytes(*place), record })
}

fn way_first(bytes: &[u8]) -> Option<(TradeWay, UserName)> {
    let (way, user) = bytes.split_first()?;
    Some((way_of(*way)?, user_of(user)?))
}

fn way_of(byte: u8) -> Option<TradeWay> {
    [TradeWay::Buy, TradeWay::Sell].into_iter().find(|way| *way as u8 == byte)
}

fn user_of(bytes: &[u8]) -> Option<UserName> {
    core::str::from_utf8(bytes).ok().and_then(UserName::new)
}

impl Coded for AuditEntry {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_text(&self.user, to);
        self.place.encode(to);
        self.record.encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (user, place) = <(Text, u64)>::decode(from)?;
        Ok(Self { user: user.0, place, record: Coded::decode(from)? })
    }
}

fields! {
    AuditPage { entries, next }
    ArmedTrigger { symbol, way, user, price_cents }
    ArmedPage { triggers, next }
    PendingExpiry { user, way, placed_ms }
    LapsingPage { stacks, next }
}
