//! The commands once more, in the most obvious form: plain maps, one function, strings for everything.

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::{
    AccountSummary, Asked, AuditNote, AuditRecord, BrokerReply, BrokerRequest, HitName, Refusal, StockQuote,
    StockSymbol, TradeWay, UserCommand, Verb, number_in_session, session_of,
};

/// What a user has, in one form for both sides.
#[derive(Debug, PartialEq, Eq)]
pub struct SeenAccount {
    pub cash: u64,
    pub shares: Vec<(String, u64)>,
    /// Number, symbol, shares, cents, when.
    pub buys: Vec<(u64, String, u64, u64, u64)>,
    pub sells: Vec<(u64, String, u64, u64, u64)>,
    /// Symbol, cents, price and shares if it is armed.
    pub buy_triggers: Vec<(String, u64, ArmedAt)>,
    pub sell_triggers: Vec<(String, u64, ArmedAt)>,
}

type ArmedAt = Option<(u64, u64)>;

impl SeenAccount {
    pub fn of(found: &AccountSummary) -> Self {
        let pending = |list: &[pares_broker::Pending]| {
            let each = list.iter();
            each.map(|p| (p.number, p.symbol.to_string(), p.shares, p.cents, p.placed_ms)).collect()
        };
        let armed = |armed: Option<pares_broker::Armed>| armed.map(|armed| (armed.price_cents, armed.shares));
        let buy = |(symbol, t): &(StockSymbol, pares_broker::BuyTrigger)| {
            (symbol.to_string(), t.reserve_cents, armed(t.armed))
        };
        let sell = |(symbol, t): &(StockSymbol, pares_broker::SellTrigger)| {
            (symbol.to_string(), t.amount_cents, armed(t.armed))
        };
        Self {
            cash: found.account.cash_cents,
            shares: found.shares.iter().map(|(symbol, shares)| (symbol.to_string(), *shares)).collect(),
            buys: pending(&found.buys),
            sells: pending(&found.sells),
            buy_triggers: found.buy_triggers.iter().map(buy).collect(),
            sell_triggers: found.sell_triggers.iter().map(sell).collect(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Lot {
    number: u64,
    symbol: StockSymbol,
    shares: u64,
    cents: u64,
    at: u64,
}

/// Price, number and shares.
type ToSell = (u64, u64, u64);

#[derive(Clone, Debug, Default)]
pub struct User {
    pub cash: u64,
    pub added: u64,
    pub spent: u64,
    pub received: u64,
    pub shares: BTreeMap<String, u64>,
    buys: Vec<Lot>,
    sells: Vec<Lot>,
    /// Reserve; price and number.
    to_buy: BTreeMap<String, (u64, Option<(u64, u64)>)>,
    /// Amount, and what it waits for.
    to_sell: BTreeMap<String, (u64, Option<ToSell>)>,
}

impl User {
    pub fn held(&self) -> u64 {
        let holds: u64 = self.buys.iter().map(|lot| lot.cents).sum();
        holds + self.to_buy.values().map(|(reserve, _)| reserve).sum::<u64>()
    }

    pub fn seen(&self) -> SeenAccount {
        let lots = |lots: &[Lot]| {
            lots.iter().map(|l| (l.number, l.symbol.to_string(), l.shares, l.cents, l.at)).collect()
        };
        SeenAccount {
            cash: self.cash,
            shares: self.shares.clone().into_iter().collect(),
            buys: lots(&self.buys),
            sells: lots(&self.sells),
            buy_triggers: self
                .to_buy
                .iter()
                .map(|(symbol, (cents, armed))| (symbol.clone(), *cents, armed.map(|(price, _)| (price, 0))))
                .collect(),
            sell_triggers: self
                .to_sell
                .iter()
                .map(|(symbol, (cents, armed))| {
                    (symbol.clone(), *cents, armed.map(|(price, _, shares)| (price, shares)))
                })
                .collect(),
        }
    }

    fn own(&self, symbol: StockSymbol) -> u64 {
        self.shares.get(symbol.as_str()).copied().unwrap_or(0)
    }

    fn set_shares(&mut self, symbol: StockSymbol, shares: u64) {
        if shares == 0 {
            self.shares.remove(symbol.as_str());
        } else {
            self.shares.insert(symbol.to_string(), shares);
        }
    }
}

#[derive(Default)]
pub struct Oracle {
    pub users: BTreeMap<String, User>,
    /// By length of name, name and place: the order in which the rules keep it.
    pub log: BTreeMap<(usize, String, u64), AuditRecord>,
    /// By user: the next place in the log, and the time of the latest entry.
    marks: BTreeMap<String, (u64, u64)>,
    /// By user and session: the latest number.
    sessions: BTreeMap<(String, u64), u64>,
    replies: BTreeMap<(String, u64), (Option<UserCommand>, BrokerReply)>,
    names: BTreeMap<(String, String), (Asked, BrokerReply)>,
    hits: BTreeSet<HitName>,
    fronts: u64,
}

impl Oracle {
    pub fn run(&mut self, request: &BrokerRequest) -> BrokerReply {
        let (name, command) = match &request.asked {
            Asked::Command { command, .. } | Asked::Settle { command, .. } => {
                (command.user.clone(), Some(command.clone()))
            }
            Asked::Fire { user, .. } | Asked::Lapse { user, .. } => (Some(user.clone()), None),
            // Of people, orders and files it knows nothing.
            Asked::Hit | Asked::KeepHead { .. } | Asked::Person { .. } | Asked::Order { .. } => (None, None),
            Asked::BeginFront => {
                self.fronts += 1;
                return BrokerReply::FrontNumber { front: self.fronts };
            }
        };
        let name = name.map_or(String::new(), |name| name.to_string());
        let before = if command.is_some() { self.before(request, &name) } else { None };
        if before == Some(BrokerReply::Early) {
            return BrokerReply::Early;
        }
        let mut notes = Vec::new();
        if let Some((quote, hit)) = request.quote.as_ref().and_then(|q| Some((q.quote.clone(), q.hit?)))
            && self.hits.insert(hit)
        {
            notes.push(AuditNote::Hit { quote });
        }
        let (place, latest) = self.marks.get(&name).copied().unwrap_or_default();
        let time = request.time_ms.max(latest);
        let command = command.filter(|_| before.is_none());
        let reply = before.unwrap_or_else(|| self.now(request, &name, time, &mut notes));
        if command.is_some() || !notes.is_empty() {
            if let Some(named) = request.name.as_ref().filter(|_| command.is_some()) {
                let named = (name.clone(), named.as_str().to_owned());
                self.names.insert(named, (request.asked.clone(), reply.clone()));
            }
            let first = self.replies.entry((name.clone(), request.number));
            first.or_insert((command.clone(), reply.clone()));
            let record =
                AuditRecord { number: request.number, time_ms: time, command, reply: reply.clone(), notes };
            let place = if name.is_empty() {
                request.number
            } else {
                self.marks.insert(name.clone(), (place + 1, time));
                place
            };
            self.log.insert((name.len(), name, place), record);
        }
        reply
    }

    /// The reply to a command that is not executed now.
    fn before(&mut self, request: &BrokerRequest, name: &str) -> Option<BrokerReply> {
        let named = request.name.as_ref().and_then(|named| {
            let (asked, reply) = self.names.get(&(name.to_owned(), named.as_str().to_owned()))?;
            Some(if *asked == request.asked { reply.clone() } else { BrokerReply::NameTaken })
        });
        let first = self.replies.get(&(name.to_owned(), request.number));
        // What has a number and is no command (a hit that a repeat brought) is not its first.
        let first = first.filter(|(command, _)| command.is_some() || shown(request).is_none());
        let first = first.map(|(command, reply)| {
            if command.as_ref() == shown(request) { reply.clone() } else { BrokerReply::NameTaken }
        });
        if name.is_empty() {
            return first.or(named);
        }
        let session = session_of(request.number);
        let latest = self.sessions.entry((name.to_owned(), session)).or_insert(number_in_session(session, 0));
        if request.number <= *latest {
            return Some(named.or(first).unwrap_or(BrokerReply::Overtaken));
        }
        if request.after > *latest {
            return Some(BrokerReply::Early);
        }
        if request.after > 0 && request.after < *latest {
            return Some(BrokerReply::Overtaken);
        }
        *latest = request.number;
        named
    }

    fn now(
        &mut self,
        request: &BrokerRequest,
        name: &str,
        time: u64,
        notes: &mut Vec<AuditNote>,
    ) -> BrokerReply {
        let mut user = self.users.get(name).cloned();
        let before = notes.clone();
        match self::act(request, time, &mut user, notes) {
            Ok(reply) => {
                self.users.extend(user.map(|user| (name.to_owned(), user)));
                reply
            }
            Err(refusal) => {
                *notes = before;
                BrokerReply::Refused { refusal }
            }
        }
    }
}

fn shown(request: &BrokerRequest) -> Option<&UserCommand> {
    match &request.asked {
        Asked::Command { command, .. } | Asked::Settle { command, .. } => Some(command),
        _ => None,
    }
}

fn act(
    request: &BrokerRequest,
    now: u64,
    user: &mut Option<User>,
    notes: &mut Vec<AuditNote>,
) -> Result<BrokerReply, Refusal> {
    let quote = |symbol: StockSymbol| -> Result<StockQuote, Refusal> {
        let quote = request.quote.clone().ok_or(Refusal::NoQuote)?.quote;
        if quote.price_cents == 0 {
            return Err(Refusal::NoQuote);
        }
        if quote.symbol != symbol {
            return Err(Refusal::OtherSymbol);
        }
        if now >= quote.server_ms + 60_000 { Err(Refusal::StaleQuote) } else { Ok(quote) }
    };
    match &request.asked {
        Asked::Hit | Asked::BeginFront | Asked::KeepHead { .. } => Ok(BrokerReply::Unchanged),
        Asked::Person { .. } | Asked::Order { .. } => Ok(BrokerReply::Unchanged),
        Asked::Fire { way, symbol, .. } => {
            let user = user.as_mut().ok_or(Refusal::NoAccount)?;
            let is_armed = match way {
                TradeWay::Buy => user.to_buy.get(symbol.as_str()).is_some_and(|(_, armed)| armed.is_some()),
                TradeWay::Sell => user.to_sell.get(symbol.as_str()).is_some_and(|(_, armed)| armed.is_some()),
            };
            if !is_armed {
                return Ok(BrokerReply::Unchanged);
            }
            let price = quote(*symbol)?.price_cents;
            Ok(fire(*way, user, *symbol, price, notes).unwrap_or(BrokerReply::Unchanged))
        }
        Asked::Lapse { way, .. } => {
            let user = user.as_mut().ok_or(Refusal::NoAccount)?;
            let mut count = 0;
            loop {
                let lots = if *way == TradeWay::Buy { &mut user.buys } else { &mut user.sells };
                if count == 64 || lots.first().is_none_or(|lot| now <= lot.at + 60_000) {
                    break;
                }
                let lot = lots.remove(0);
                count += 1;
                let verb = if *way == TradeWay::Buy { Verb::Buy } else { Verb::Sell };
                notes.push(AuditNote::Done {
                    origin: lot.number,
                    verb,
                    symbol: lot.symbol,
                    cents: lot.cents,
                });
                if *way == TradeWay::Buy {
                    user.cash += lot.cents;
                    notes.push(AuditNote::Moved { origin: lot.number, is_add: true, cents: lot.cents });
                } else {
                    user.set_shares(lot.symbol, user.own(lot.symbol) + lot.shares);
                }
            }
            Ok(if count == 0 { BrokerReply::Unchanged } else { BrokerReply::Lapsed { count } })
        }
        Asked::Settle { command, number } => {
            command.check()?;
            let is_buy = match command.verb {
                Verb::CommitBuy | Verb::CancelBuy => true,
                Verb::CommitSell | Verb::CancelSell => false,
                _ => return Err(Refusal::Arity),
            };
            let user = user.as_mut().ok_or(Refusal::NoAccount)?;
            let lots = if is_buy { &user.buys } else { &user.sells };
            if lots.last().is_some_and(|lot| lot.number != *number) {
                return Err(Refusal::OtherPending);
            }
            trade(command, request.number, now, user, &quote, notes)
        }
        Asked::Command { command, fault } => {
            if let Some(fault) = fault {
                return Err(*fault);
            }
            command.check()?;
            match command.verb {
                Verb::Dumplog | Verb::DisplaySummary => Ok(BrokerReply::Done),
                Verb::Quote => {
                    let quote = quote(command.symbol.unwrap())?;
                    Ok(BrokerReply::Price { price_cents: quote.price_cents, server_ms: quote.server_ms })
                }
                Verb::Add => {
                    let user = user.get_or_insert_default();
                    let amount = command.cents.unwrap();
                    user.cash += amount;
                    user.added += amount;
                    notes.push(AuditNote::Moved { origin: request.number, is_add: true, cents: amount });
                    Ok(BrokerReply::Cash { cash_cents: user.cash })
                }
                _ => {
                    let user = user.as_mut().ok_or(Refusal::NoAccount)?;
                    trade(command, request.number, now, user, &quote, notes)
                }
            }
        }
    }
}

fn trade(
    command: &UserCommand,
    number: u64,
    now: u64,
    user: &mut User,
    quote: &dyn Fn(StockSymbol) -> Result<StockQuote, Refusal>,
    notes: &mut Vec<AuditNote>,
) -> Result<BrokerReply, Refusal> {
    let moved = |notes: &mut Vec<AuditNote>, is_add: bool, cents: u64| {
        if cents > 0 {
            notes.push(AuditNote::Moved { origin: number, is_add, cents });
        }
    };
    let symbol = || command.symbol.unwrap();
    let amount = command.cents.unwrap_or(0);
    let settled =
        |lot: Lot| BrokerReply::Settled { symbol: lot.symbol, shares: lot.shares, cents: lot.cents };
    match command.verb {
        Verb::Buy | Verb::Sell => {
            if command.verb == Verb::Buy && user.cash < amount {
                return Err(Refusal::InsufficientCash);
            }
            let price = quote(symbol())?.price_cents;
            let shares = amount / price;
            if shares == 0 {
                return Err(Refusal::BelowOneShare);
            }
            let lot = Lot { number, symbol: symbol(), shares, cents: shares * price, at: now };
            if command.verb == Verb::Buy {
                user.cash -= lot.cents;
                moved(notes, false, lot.cents);
                user.buys.push(lot);
            } else {
                if user.own(symbol()) < shares {
                    return Err(Refusal::InsufficientShares);
                }
                user.set_shares(symbol(), user.own(symbol()) - shares);
                user.sells.push(lot);
            }
            let (origin, verb) = (number, command.verb);
            notes.push(AuditNote::Deal { origin, verb, symbol: symbol(), shares, price_cents: price });
            Ok(BrokerReply::Held { shares, price_cents: price, until_ms: now + 60_000 })
        }
        Verb::CommitBuy => {
            let lot = newest(&mut user.buys, now)?;
            user.set_shares(lot.symbol, user.own(lot.symbol) + lot.shares);
            user.spent += lot.cents;
            Ok(settled(lot))
        }
        Verb::CancelBuy => {
            let lot = newest(&mut user.buys, now)?;
            user.cash += lot.cents;
            moved(notes, true, lot.cents);
            Ok(settled(lot))
        }
        Verb::CommitSell => {
            let lot = newest(&mut user.sells, now)?;
            user.cash += lot.cents;
            user.received += lot.cents;
            moved(notes, true, lot.cents);
            Ok(settled(lot))
        }
        Verb::CancelSell => {
            let lot = newest(&mut user.sells, now)?;
            user.set_shares(lot.symbol, user.own(lot.symbol) + lot.shares);
            Ok(settled(lot))
        }
        Verb::SetBuyAmount => {
            let old = user.to_buy.get(symbol().as_str()).map_or(0, |(reserve, _)| *reserve);
            if user.cash + old < amount {
                return Err(Refusal::InsufficientCash);
            }
            moved(notes, old > amount, old.abs_diff(amount));
            user.cash = user.cash + old - amount;
            user.to_buy.insert(symbol().to_string(), (amount, None));
            Ok(BrokerReply::Cash { cash_cents: user.cash })
        }
        Verb::SetBuyTrigger => {
            let set = user.to_buy.get_mut(symbol().as_str()).ok_or(Refusal::NoAmountSet)?;
            set.1 = Some((amount, number));
            let fired =
                quote(symbol()).ok().and_then(|q| fire(TradeWay::Buy, user, symbol(), q.price_cents, notes));
            Ok(fired.unwrap_or(BrokerReply::Armed { shares: 0 }))
        }
        Verb::CancelSetBuy => {
            let (reserve, _) = user.to_buy.remove(symbol().as_str()).ok_or(Refusal::NoAmountSet)?;
            user.cash += reserve;
            moved(notes, true, reserve);
            Ok(BrokerReply::Cash { cash_cents: user.cash })
        }
        Verb::SetSellAmount => {
            let old = user.to_sell.get(symbol().as_str()).and_then(|(_, armed)| *armed);
            let owned = user.own(symbol()) + old.map_or(0, |(_, _, shares)| shares);
            if owned == 0 {
                return Err(Refusal::InsufficientShares);
            }
            user.set_shares(symbol(), owned);
            user.to_sell.insert(symbol().to_string(), (amount, None));
            Ok(BrokerReply::Done)
        }
        Verb::SetSellTrigger => {
            let (dollars, old) = *user.to_sell.get(symbol().as_str()).ok_or(Refusal::NoAmountSet)?;
            let shares = dollars / amount;
            if shares == 0 {
                return Err(Refusal::BelowOneShare);
            }
            let owned = user.own(symbol()) + old.map_or(0, |(_, _, shares)| shares);
            if owned < shares {
                return Err(Refusal::InsufficientShares);
            }
            user.set_shares(symbol(), owned - shares);
            user.to_sell.insert(symbol().to_string(), (dollars, Some((amount, number, shares))));
            let fired =
                quote(symbol()).ok().and_then(|q| fire(TradeWay::Sell, user, symbol(), q.price_cents, notes));
            Ok(fired.unwrap_or(BrokerReply::Armed { shares }))
        }
        Verb::CancelSetSell => {
            let (_, old) = user.to_sell.remove(symbol().as_str()).ok_or(Refusal::NoAmountSet)?;
            user.set_shares(symbol(), user.own(symbol()) + old.map_or(0, |(_, _, shares)| shares));
            Ok(BrokerReply::Done)
        }
        Verb::Add | Verb::Quote | Verb::Dumplog | Verb::DisplaySummary => unreachable!("done before"),
    }
}

fn newest(lots: &mut Vec<Lot>, now: u64) -> Result<Lot, Refusal> {
    let lot = lots.last().ok_or(Refusal::NothingPending)?;
    if now > lot.at + 60_000 {
        return Err(Refusal::Lapsed);
    }
    Ok(lots.pop().unwrap())
}

/// Fires an armed trigger if the price is good enough.
fn fire(
    way: TradeWay,
    user: &mut User,
    symbol: StockSymbol,
    price: u64,
    notes: &mut Vec<AuditNote>,
) -> Option<BrokerReply> {
    let (verb, origin, shares, back) = match way {
        TradeWay::Buy => {
            let (reserve, armed) = *user.to_buy.get(symbol.as_str())?;
            let (limit, number) = armed?;
            let shares = reserve / price;
            if price > limit || shares == 0 {
                return None;
            }
            user.to_buy.remove(symbol.as_str());
            user.spent += shares * price;
            user.set_shares(symbol, user.own(symbol) + shares);
            (Verb::SetBuyTrigger, number, shares, reserve - shares * price)
        }
        TradeWay::Sell => {
            let (limit, number, shares) = user.to_sell.get(symbol.as_str())?.1?;
            if price < limit {
                return None;
            }
            user.to_sell.remove(symbol.as_str());
            user.received += shares * price;
            (Verb::SetSellTrigger, number, shares, shares * price)
        }
    };
    user.cash += back;
    notes.push(AuditNote::Done { origin, verb, symbol, cents: shares * price });
    notes.push(AuditNote::Deal { origin, verb, symbol, shares, price_cents: price });
    if back > 0 {
        notes.push(AuditNote::Moved { origin, is_add: true, cents: back });
    }
    Some(BrokerReply::Settled { symbol, shares, cents: shares * price })
}
