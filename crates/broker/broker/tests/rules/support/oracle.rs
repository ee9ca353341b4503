//! The commands once more, in the most obvious form: plain maps, one function, strings for everything.

use std::collections::BTreeMap;

use pares_broker::{
    AccountSummary, Asked, AuditNote, AuditRecord, BrokerReply, BrokerRequest, Refusal, StockQuote,
    StockSymbol, TradeWay, UserCommand, Verb,
};

/// What a user has, in one form for both sides.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) cash: u64,
    pub(crate) shares: Vec<(String, u64)>,
    /// Number, symbol, shares, cents, when.
    pub(crate) buys: Vec<(u64, String, u64, u64, u64)>,
    pub(crate) sells: Vec<(u64, String, u64, u64, u64)>,
    /// Symbol, cents, price and shares if it is armed.
    pub(crate) buy_triggers: Vec<(String, u64, ArmedAt)>,
    pub(crate) sell_triggers: Vec<(String, u64, ArmedAt)>,
}

type ArmedAt = Option<(u64, u64)>;

impl Seen {
    pub(crate) fn of(found: &AccountSummary) -> Self {
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
pub(crate) struct Lot {
    number: u64,
    symbol: StockSymbol,
    shares: u64,
    cents: u64,
    at: u64,
}

/// Price, number and shares.
type ToSell = (u64, u64, u64);

#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) cash: u64,
    pub(crate) added: u64,
    pub(crate) spent: u64,
    pub(crate) received: u64,
    pub(crate) shares: BTreeMap<String, u64>,
    latest: u64,
    buys: Vec<Lot>,
    sells: Vec<Lot>,
    /// Reserve; price and number.
    to_buy: BTreeMap<String, (u64, Option<(u64, u64)>)>,
    /// Amount, and what it waits for.
    to_sell: BTreeMap<String, (u64, Option<ToSell>)>,
}

impl User {
    pub(crate) fn held(&self) -> u64 {
        let holds: u64 = self.buys.iter().map(|lot| lot.cents).sum();
        holds + self.to_buy.values().map(|(reserve, _)| reserve).sum::<u64>()
    }

    pub(crate) fn seen(&self) -> Seen {
        let lots = |lots: &[Lot]| {
            lots.iter().map(|l| (l.number, l.symbol.to_string(), l.shares, l.cents, l.at)).collect()
        };
        Seen {
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
pub(crate) struct Oracle {
    pub(crate) users: BTreeMap<String, User>,
    /// By length of name, name and number: the order in which the rules keep it.
    pub(crate) log: BTreeMap<(usize, String, u64), AuditRecord>,
}

impl Oracle {
    pub(crate) fn run(&mut self, request: &BrokerRequest) -> BrokerReply {
        let mut notes = Vec::new();
        if let Some(brought) = request.quote.as_ref().filter(|brought| brought.is_hit) {
            notes.push(AuditNote::Hit { quote: brought.quote.clone() });
        }
        let (name, command) = match &request.asked {
            Asked::Command { command, .. } => (command.user.clone(), Some(command.clone())),
            Asked::Fire { user, .. } | Asked::Expire { user, .. } => (Some(user.clone()), None),
            Asked::Hit => (None, None),
        };
        let name = name.map_or(String::new(), |name| name.to_string());
        if request.after > 0 && !self.log.contains_key(&(name.len(), name.clone(), request.after)) {
            return BrokerReply::Early;
        }
        let mut user = self.users.get(&name).cloned();
        let time = request.time_ms.max(user.as_ref().map_or(0, |user| user.latest));
        let is_told = command.as_ref().is_some_and(|command| {
            matches!(command.verb, Verb::Quote | Verb::DisplaySummary | Verb::Dumplog)
        });
        let time = if is_told || is_faulty(request) { request.time_ms } else { time };
        let before = (user.clone(), notes.clone());
        let reply = match self::act(request, time, &mut user, &mut notes) {
            Ok(reply) => {
                if let Some(mut user) = user.filter(|_| !is_told && reply != BrokerReply::Unchanged) {
                    user.latest = time;
                    self.users.insert(name.clone(), user);
                }
                reply
            }
            Err(refusal) => {
                notes = before.1;
                if command.is_some() {
                    notes.push(AuditNote::Refused { refusal });
                }
                BrokerReply::Refused { refusal }
            }
        };
        if command.is_some() || !notes.is_empty() {
            let record = AuditRecord { time_ms: time, command, notes };
            self.log.insert((name.len(), name, request.number), record);
        }
        reply
    }
}

fn is_faulty(request: &BrokerRequest) -> bool {
    matches!(&request.asked, Asked::Command { command, fault } if fault.is_some() || command.check().is_err())
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
        Asked::Hit => Ok(BrokerReply::Unchanged),
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
        Asked::Expire { way, .. } => {
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
            Ok(if count == 0 { BrokerReply::Unchanged } else { BrokerReply::Expired { count } })
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
