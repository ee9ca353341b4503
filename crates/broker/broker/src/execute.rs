//! One request.
//!
//! A refused command has its entry in the log and no other effect: what it wrote and noted before it was refused is dropped with its [draft](crate::draft).

use pares_wice::Value;

use crate::audit::{AuditNote, AuditRecord};
use crate::command::{StockSymbol, TradeWay, UserCommand, UserName, Verb, file_name};
use crate::draft::Draft;
use crate::heads::{self, LogHead};
use crate::ledger::{BrokerError, Executed, Ledger};
use crate::money::CENTS_MAX;
use crate::names::{FRONT_MAX, is_order};
use crate::people;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::request::{Asked, BrokerRequest, Named, QuoteBrought, WINDOW_MS};
use crate::rows::{self, Account, HOLDING, TIME_MAX_MS, UserRow};

/// Why a command ends.
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
pub fn execute<L: Ledger>(request: &BrokerRequest, ledger: &mut L) -> Executed<BrokerReply, L> {
    if request.time_ms > TIME_MAX_MS {
        return Err(BrokerError::Time(request.time_ms));
    }
    match &request.asked {
        Asked::Person { asked } => people::execute(asked, request.time_ms, ledger),
        Asked::BeginFront => begin_front(ledger),
        Asked::KeepHead { user, digest, elements } => {
            let (user, time_ms) = (user.clone(), request.time_ms);
            heads::keep(&LogHead { user, digest: *digest, elements: *elements, time_ms }, ledger)
        }
        _ if request.number == 0 || !is_order(request.number, request.after) => {
            Err(BrokerError::Order(request.number, request.after))
        }
        _ => execute_numbered(request, ledger),
    }
}

fn execute_numbered<L: Ledger>(request: &BrokerRequest, ledger: &mut L) -> Executed<BrokerReply, L> {
    let mut draft = Draft::of(ledger);
    let mut turn = Turn::begin(request, &mut draft)?;
    let before = turn.reply_before()?;
    if before == Some(BrokerReply::Early) {
        return Ok(BrokerReply::Early);
    }
    // Also of what was executed before: nobody else may bring that quote.
    turn.note_hit()?;
    let is_new = before.is_none();
    let reply = before.map_or_else(|| turn.answer_or_undo(), Ok)?;
    turn.finish(&reply, is_new);
    draft.keep();
    Ok(reply)
}

/// The next number of a front. Who repeats the request gets another: there are enough.
fn begin_front<L: Ledger>(ledger: &mut L) -> Executed<BrokerReply, L> {
    let latest: u64 = rows::take(ledger, &rows::front())?.unwrap_or_default();
    if latest >= FRONT_MAX {
        return Ok(BrokerReply::Refused { refusal: Refusal::FrontsSpent });
    }
    rows::put(ledger, &rows::front(), &(latest + 1));
    Ok(BrokerReply::FrontNumber { front: latest + 1 })
}

/// Whose log it is noted in; none: nobody's.
fn whose(asked: &Asked) -> Option<&UserName> {
    match asked {
        Asked::Command { command, .. } | Asked::Settle { command, .. } => command.user.as_ref(),
        Asked::Fire { user, .. } | Asked::Lapse { user, .. } => Some(user),
        Asked::Hit | Asked::BeginFront | Asked::KeepHead { .. } | Asked::Person { .. } => None,
        Asked::Order { asked } => asked.user(),
    }
}

/// The command as the log shows it: a file's name that is none is left out.
pub(crate) fn logged(request: &BrokerRequest) -> Option<UserCommand> {
    let (Asked::Command { command, .. } | Asked::Settle { command, .. }) = &request.asked else {
        return None;
    };
    let mut command = command.clone();
    command.file.take_if(|name| file_name(name) != Some(name.as_str()));
    Some(command)
}

/// A request being executed.
pub(crate) struct Turn<'a, L> {
    pub(crate) ledger: &'a mut L,
    pub(crate) request: &'a BrokerRequest,
    /// Whose log it is noted in.
    pub(crate) user: Option<&'a UserName>,
    /// The user's row, written when the entry is.
    pub(crate) row: UserRow,
    /// The row is to be written.
    pub(crate) has_advanced: bool,
    /// The time it has effect at: not before the user's latest.
    pub(crate) time_ms: u64,
    pub(crate) notes: Vec<AuditNote>,
    /// Stocks whose free shares have changed, of an account in debt.
    pub(crate) received: Vec<StockSymbol>,
}

/// What a command is about, once its fields are known to be there.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) user: &'a UserName,
    pub(crate) symbol: StockSymbol,
    pub(crate) cents: u64,
}

impl<L: Ledger> Turn<'_, Draft<'_, L>> {
    /// Answers. Of what is refused nothing stays, but that it was asked for: a command's entry says so itself.
    fn answer_or_undo(&mut self) -> Executed<BrokerReply, L> {
        self.ledger.keep();
        let (row, has_advanced, notes) = (self.row.clone(), self.has_advanced, self.notes.len());
        let reply = self.answer()?;
        if matches!(reply, BrokerReply::Refused { .. }) {
            self.ledger.forget();
            self.notes.truncate(notes);
            (self.row, self.has_advanced) = (row, has_advanced);
            if let Asked::Order { asked } = &self.request.asked
                && !asked.is_of_router()
            {
                self.notes.push(AuditNote::NotDone { asked: asked.clone() });
            }
        }
        Ok(reply)
    }
}

impl<'a, L: Ledger> Turn<'a, L> {
    fn begin(request: &'a BrokerRequest, ledger: &'a mut L) -> Executed<Self, L> {
        let user = whose(&request.asked);
        let row = match user {
            Some(user) => rows::take(ledger, &rows::account(user))?.unwrap_or_default(),
            None => UserRow::default(),
        };
        let time_ms = request.time_ms.max(row.account.latest_ms);
        Ok(Self {
            ledger,
            request,
            user,
            row,
            has_advanced: false,
            time_ms,
            notes: Vec::new(),
            received: Vec::new(),
        })
    }

    /// The log has a hit once, however many bring it.
    fn note_hit(&mut self) -> Executed<(), L> {
        let Some(QuoteBrought { quote, hit: Some(hit) }) = &self.request.quote else { return Ok(()) };
        let key = rows::hit(*hit);
        if self.ledger.get(&key).map_err(BrokerError::Items)?.is_none() {
            self.ledger.put(&key, Value::new(Vec::new()));
            self.notes.push(AuditNote::Hit { quote: quote.clone() });
        }
        Ok(())
    }

    /// Writes the entry, and what goes with it. What did nothing, and was no command that is executed now, leaves none.
    fn finish(mut self, reply: &BrokerReply, is_new: bool) {
        let request = self.request;
        let is_command = is_new && !request.asked.is_moment();
        if is_command || !self.notes.is_empty() {
            let place = self.user.map_or(request.number, |_| self.row.place);
            self.row.place += 1;
            if !request.asked.is_of_router() {
                self.row.account.latest_ms = self.time_ms;
            }
            self.has_advanced = true;
            let name = self.user.map_or("", UserName::as_str);
            if let Some(named) = request.name.as_ref().filter(|_| is_command) {
                let asked = request.asked.clone();
                rows::put(self.ledger, &rows::named(name, named), &Named { place, asked });
            }
            let command = if is_command { logged(request) } else { None };
            let (number, time_ms, reply, notes) = (request.number, self.time_ms, reply.clone(), self.notes);
            let record = AuditRecord { number, time_ms, command, reply, notes };
            rows::put(self.ledger, &rows::audit(name, place), &record);
        }
        if let Some(user) = self.user.filter(|_| self.has_advanced) {
            rows::put(self.ledger, &rows::account(user), &self.row);
        }
    }

    fn answer(&mut self) -> Executed<BrokerReply, L> {
        let request = self.request;
        let answered = match &request.asked {
            Asked::Command { command, fault } => {
                let wrong = fault.or_else(|| command.check().err());
                wrong.map_or_else(|| self.command(command), |refusal| Err(refusal.into()))
            }
            Asked::Settle { command, .. } => match command.check() {
                Ok(()) if command.verb.settles() => self.command(command),
                checked => Err(checked.err().unwrap_or(Refusal::Arity).into()),
            },
            Asked::Fire { way: TradeWay::Buy, user, symbol } => self.fire_buy(user, *symbol),
            Asked::Fire { way: TradeWay::Sell, user, symbol } => self.fire_sell(user, *symbol),
            Asked::Lapse { way, user } => self.lapse(*way, user),
            Asked::Hit | Asked::BeginFront | Asked::KeepHead { .. } | Asked::Person { .. } => {
                Ok(BrokerReply::Unchanged)
            }
            Asked::Order { asked } => self.order(asked),
        };
        let answered = match request.asked {
            Asked::Order { .. } => answered,
            _ => answered.and_then(|reply| self.repaid(reply)),
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
            Verb::CommitBuy => self.settle(TradeWay::Buy, true, user),
            Verb::CancelBuy => self.settle(TradeWay::Buy, false, user),
            Verb::Sell => self.sell(of),
            Verb::CommitSell => self.settle(TradeWay::Sell, true, user),
            Verb::CancelSell => self.settle(TradeWay::Sell, false, user),
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
        let mut account = Account { is_open: true, ..self.row.account };
        self.credit(&mut account, self.request.number, of.cents)?;
        self.row.account = account;
        Ok(BrokerReply::Cash { cash_cents: account.cash_cents })
    }

    /// The user's account.
    pub(crate) fn account(&self) -> Result<Account, Refusal> {
        let account = self.row.account;
        if account.is_open { Ok(account) } else { Err(Refusal::NoAccount) }
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
        if self.row.is_in_debt {
            self.received.push(symbol);
        }
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
