//! One request.
//!
//! A refused command has its entry in the log and no other effect. So every part first reads and decides, and writes when nothing can be refused any more.

use pares_wice::Key;

use crate::audit::{AuditNote, AuditRecord};
use crate::command::{StockSymbol, UserCommand, UserName, Verb, file_name};
use crate::ledger::{BrokerError, Ledger};
use crate::money::CENTS_MAX;
use crate::orders::OrderAsked;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::request::{Asked, BrokerRequest, QuoteBrought, TIME_MAX_MS, TradeWay, WINDOW_MS};
use crate::rows::{self, Account, HOLDING};

/// Why a command does not go on.
pub(crate) enum Stop<E> {
    /// It is refused.
    Refused(Refusal),
    /// It cannot be executed.
    Failed(BrokerError<E>),
}

impl<E> From<Refusal> for Stop<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<E> From<BrokerError<E>> for Stop<E> {
    fn from(error: BrokerError<E>) -> Self {
        Self::Failed(error)
    }
}

pub(crate) type Stopped<T, L> = Result<T, Stop<<L as Ledger>::Error>>;

/// Executes a request, and writes what it did to the log.
///
/// # Errors
/// If it cannot be executed; nothing may be committed of it then.
pub fn execute<L: Ledger>(
    request: &BrokerRequest,
    ledger: &mut L,
) -> Result<BrokerReply, BrokerError<L::Error>> {
    if request.time_ms > TIME_MAX_MS {
        return Err(BrokerError::Time(request.time_ms));
    }
    let name = whose(request).map_or("", UserName::as_str);
    let place = rows::audit(name, request.number);
    if request.number == 0 || is_there(&place, ledger)? {
        return Err(BrokerError::Taken(request.number));
    }
    if request.after > 0 && !is_there(&rows::audit(name, request.after), ledger)? {
        return Ok(BrokerReply::Early);
    }
    let mut turn = Turn { ledger, request, time_ms: request.time_ms, notes: Vec::new() };
    turn.note_hit();
    let reply = turn.answer()?;
    let Turn { time_ms, mut notes, .. } = turn;
    if let BrokerReply::Refused { refusal } = reply
        && is_from_user(request)
    {
        notes.push(AuditNote::Refused { refusal });
    }
    let record = AuditRecord { time_ms, command: logged(request), notes };
    if record.command.is_some() || !record.notes.is_empty() {
        rows::put(ledger, &place, &record);
    }
    Ok(reply)
}

/// Whose log it is noted in; none: nobody's.
fn whose(request: &BrokerRequest) -> Option<&UserName> {
    match &request.asked {
        Asked::Command { command, .. } => command.user.as_ref(),
        Asked::Fire { user, .. } | Asked::Expire { user, .. } => Some(user),
        Asked::Hit => None,
        Asked::Order { asked } => asked.user(),
    }
}

fn is_there<L: Ledger>(key: &Key, ledger: &mut L) -> Result<bool, BrokerError<L::Error>> {
    Ok(ledger.get(key).map_err(BrokerError::Items)?.is_some())
}

/// Whether a refusal belongs into the user's log: it is the answer to what he asked for.
fn is_from_user(request: &BrokerRequest) -> bool {
    matches!(request.asked, Asked::Command { .. } | Asked::Order { asked: OrderAsked::Place { .. } })
}

/// The command as the log shows it: a file's name that is none is left out.
fn logged(request: &BrokerRequest) -> Option<UserCommand> {
    let Asked::Command { command, .. } = &request.asked else { return None };
    let mut command = command.clone();
    command.file.take_if(|name| file_name(name) != Some(name.as_str()));
    Some(command)
}

/// A request being executed.
pub(crate) struct Turn<'a, L> {
    pub(crate) ledger: &'a mut L,
    pub(crate) request: &'a BrokerRequest,
    /// The time it has effect at: not before that of the account's latest change.
    pub(crate) time_ms: u64,
    pub(crate) notes: Vec<AuditNote>,
}

/// What a command is about, once its fields are known to be there.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) user: &'a UserName,
    pub(crate) symbol: StockSymbol,
    pub(crate) cents: u64,
}

impl<L: Ledger> Turn<'_, L> {
    fn note_hit(&mut self) {
        if let Some(QuoteBrought { quote, is_hit: true }) = &self.request.quote {
            self.notes.push(AuditNote::Hit { quote: quote.clone() });
        }
    }

    fn answer(&mut self) -> Result<BrokerReply, BrokerError<L::Error>> {
        let request = self.request;
        let answered = match &request.asked {
            Asked::Command { command, fault } => {
                let wrong = fault.or_else(|| command.check().err());
                wrong.map_or_else(|| self.command(command), |refusal| Err(refusal.into()))
            }
            Asked::Fire { way: TradeWay::Buy, user, symbol } => self.fire_buy(user, *symbol),
            Asked::Fire { way: TradeWay::Sell, user, symbol } => self.fire_sell(user, *symbol),
            Asked::Expire { way, user } => self.expire(*way, user),
            Asked::Hit => Ok(BrokerReply::Unchanged),
            Asked::Order { asked } => self.order(asked),
        };
        match answered {
            Ok(reply) => Ok(reply),
            Err(Stop::Refused(refusal)) => Ok(BrokerReply::Refused { refusal }),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// A command whose fields are those of its verb.
    fn command(&mut self, command: &UserCommand) -> Stopped<BrokerReply, L> {
        let Some(user) = &command.user else { return Ok(BrokerReply::Done) };
        // Verbs without a symbol or an amount look at neither.
        let symbol = command.symbol.unwrap_or(StockSymbol::new("A").expect("a letter"));
        let of = Subject { user, symbol, cents: command.cents.unwrap_or_default() };
        match command.verb {
            Verb::Add => self.add(of),
            Verb::Quote => {
                let quote = self.quote(symbol)?;
                Ok(BrokerReply::Price { price_cents: quote.price_cents, server_ms: quote.server_ms })
            }
            Verb::Buy => self.buy(of),
            Verb::CommitBuy => self.commit_buy(user),
            Verb::CancelBuy => self.cancel_buy(user),
            Verb::Sell => self.sell(of),
            Verb::CommitSell => self.commit_sell(user),
            Verb::CancelSell => self.cancel_sell(user),
            Verb::SetBuyAmount => self.set_buy_amount(of),
            Verb::CancelSetBuy => self.cancel_set_buy(of),
            Verb::SetBuyTrigger => self.set_buy_trigger(of),
            Verb::SetSellAmount => self.set_sell_amount(of),
            Verb::SetSellTrigger => self.set_sell_trigger(of),
            Verb::CancelSetSell => self.cancel_set_sell(of),
            Verb::Dumplog | Verb::DisplaySummary => Ok(BrokerReply::Done),
        }
    }

    fn add(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        let mut account = match self.account(of.user) {
            Err(Stop::Refused(Refusal::NoAccount)) => Account::default(),
            other => other?,
        };
        self.credit(&mut account, self.request.number, of.cents)?;
        self.put_account(of.user, account);
        Ok(BrokerReply::Cash { cash_cents: account.cash_cents })
    }

    /// The user's account. From here on the time is not before that of its latest change.
    pub(crate) fn account(&mut self, user: &UserName) -> Stopped<Account, L> {
        let account: Account = rows::take(self.ledger, &rows::account(user))?.ok_or(Refusal::NoAccount)?;
        self.time_ms = self.time_ms.max(account.latest_ms);
        Ok(account)
    }

    pub(crate) fn put_account(&mut self, user: &UserName, account: Account) {
        rows::put(self.ledger, &rows::account(user), &Account { latest_ms: self.time_ms, ..account });
    }

    /// Cash comes, and the log says so. Of 0 there is nothing to say.
    pub(crate) fn credit(&mut self, account: &mut Account, origin: u64, cents: u64) -> Result<(), Refusal> {
        let sum = account.cash_cents.checked_add(cents).filter(|sum| *sum <= CENTS_MAX);
        account.cash_cents = sum.ok_or(Refusal::TooMuch)?;
        if cents > 0 {
            self.notes.push(AuditNote::Moved { origin, is_add: true, cents });
        }
        Ok(())
    }

    /// Cash goes, if there is as much, and the log says so.
    pub(crate) fn debit(&mut self, account: &mut Account, cents: u64) -> Result<(), Refusal> {
        account.cash_cents = account.cash_cents.checked_sub(cents).ok_or(Refusal::InsufficientCash)?;
        if cents > 0 {
            self.notes.push(AuditNote::Moved { origin: self.request.number, is_add: false, cents });
        }
        Ok(())
    }

    /// Free shares: none are held by a sell or reserved for one.
    pub(crate) fn shares(&mut self, user: &UserName, symbol: StockSymbol) -> Stopped<u64, L> {
        Ok(rows::take(self.ledger, &rows::of_symbol(HOLDING, user, symbol))?.unwrap_or_default())
    }

    pub(crate) fn put_shares(&mut self, user: &UserName, symbol: StockSymbol, shares: u64) {
        let key = rows::of_symbol(HOLDING, user, symbol);
        match shares {
            0 => self.ledger.delete(&key),
            shares => rows::put(self.ledger, &key, &shares),
        }
    }

    /// More shares.
    pub(crate) fn receive(&mut self, user: &UserName, symbol: StockSymbol, shares: u64) -> Stopped<(), L> {
        let sum = self.shares(user, symbol)?.checked_add(shares).ok_or(Refusal::TooMuch)?;
        self.put_shares(user, symbol, sum);
        Ok(())
    }

    /// The quote that was brought, if it may be used for `symbol` now.
    pub(crate) fn quote(&self, symbol: StockSymbol) -> Result<crate::StockQuote, Refusal> {
        let brought = self.request.quote.as_ref().ok_or(Refusal::NoQuote)?;
        let quote = &brought.quote;
        if quote.price_cents == 0 || quote.price_cents > CENTS_MAX {
            Err(Refusal::NoQuote)
        } else if quote.symbol != symbol {
            Err(Refusal::OtherSymbol)
        } else if self.time_ms >= quote.server_ms.saturating_add(WINDOW_MS) {
            Err(Refusal::StaleQuote)
        } else {
            Ok(quote.clone())
        }
    }
}
