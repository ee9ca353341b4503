//! One user's account, as the log tells it.

use std::collections::BTreeMap;

use super::element::{Element, cents, quoted};
use super::orders::{OrderStep, PlacedOrder, order_step};
use crate::command::{StockSymbol, Verb};
use crate::summary::AccountSummary;
use crate::xml::SUPERVISED;

/// Nothing is wrong, or what is.
pub(super) type Checked = Result<(), String>;

/// What a command, or an event of the system, and the elements behind it say together.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) user: Option<String>,
    pub(super) number: u64,
    is_system: bool,
    pub(super) verb: Verb,
    pub(super) symbol: Option<String>,
    funds: Option<u64>,
    /// Cents that came, less those that went.
    moved: i128,
    /// Shares, and the price of one.
    deal: Option<(u64, u64)>,
    /// What it says of an order on the exchange.
    order: Option<OrderStep>,
    is_refused: bool,
}

impl Step {
    pub(super) fn of(element: &Element, is_system: bool) -> Result<Self, String> {
        let verb = element.need("command")?;
        let funds = element.field("funds").map(cents).transpose()?;
        Ok(Self {
            user: element.field("username").map(str::to_owned),
            number: element.number()?,
            is_system,
            verb: Verb::of_name(verb).ok_or_else(|| format!("there is no command {}", quoted(verb)))?,
            symbol: element.field("stockSymbol").map(str::to_owned),
            funds,
            moved: 0,
            deal: None,
            order: None,
            is_refused: false,
        })
    }

    /// An element that belongs to it.
    pub(super) fn more(&mut self, element: &Element) -> Checked {
        if element.number()? != self.number || element.field("username") != self.user.as_deref() {
            return Err(format!("{} belongs to another command", element.name));
        }
        match element.name.as_str() {
            "accountTransaction" => {
                let cents = i128::from(element.cents("funds")?);
                self.moved += if element.need("action")? == "add" { cents } else { -cents };
            }
            "debugEvent" => {
                let message = element.need("debugMessage")?;
                self.order = order_step(message);
                if self.order.is_some() || message.starts_with(SUPERVISED) {
                    return Ok(());
                }
                let deal = message.split_once(" at ");
                let deal = deal.and_then(|(shares, price)| Some((shares.parse().ok()?, cents(price).ok()?)));
                self.deal = Some(deal.ok_or("a deal is shares and a price")?);
            }
            _ => self.is_refused = true,
        }
        Ok(())
    }

    pub(super) fn moves_nothing(&self) -> Checked {
        self.moves(0)
    }

    pub(super) fn moves(&self, cents: i128) -> Checked {
        let (verb, number, moved) = (self.verb.name(), self.number, self.moved);
        if moved == cents { Ok(()) } else { Err(format!("{verb} {number} moves {moved} cents, not {cents}")) }
    }

    pub(super) fn wrong<T>(&self, why: &str) -> Result<T, String> {
        Err(format!("{} {}: {why}", self.verb.name(), self.number))
    }

    pub(super) fn stock(&self) -> Result<String, String> {
        self.symbol.clone().map_or_else(|| self.wrong("of no stock"), Ok)
    }

    fn amount(&self) -> Result<u64, String> {
        self.funds.map_or_else(|| self.wrong("without an amount"), Ok)
    }

    fn deal(&self) -> Result<(u64, u64), String> {
        let deal = self.deal.filter(|(shares, _)| *shares > 0);
        deal.map_or_else(|| self.wrong("at no price"), Ok)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    number: u64,
    symbol: String,
    shares: u64,
    cents: u64,
}

/// An account, as the log leaves it. Sums are in cents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayedAccount {
    /// Free cash.
    pub cash_cents: i128,
    /// All that was ever added.
    pub added_cents: i128,
    /// Paid for shares.
    pub spent_cents: i128,
    /// Received for shares.
    pub received_cents: i128,
    /// Free shares.
    pub shares: BTreeMap<String, u64>,
    buys: Vec<Held>,
    sells: Vec<Held>,
    reserves: BTreeMap<String, Trigger>,
    sales: BTreeMap<String, Trigger>,
    pub(super) orders: BTreeMap<u64, PlacedOrder>,
    /// What void sales on the exchange left owed.
    pub(super) owed_cents: i128,
    /// What void purchases there left owed.
    pub(super) owed_shares: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trigger {
    /// What was set, cents; of a buy it is reserved.
    amount: u64,
    /// Reserved for a sell that is armed.
    shares: u64,
    /// The price that arms it: of a buy the highest, of a sell the lowest.
    price: Option<u64>,
}

impl Trigger {
    const fn of(amount: u64) -> Self {
        Self { amount, shares: 0, price: None }
    }
}

impl ReplayedAccount {
    /// Cash held by pending buys and orders on the exchange, and reserved for triggers.
    #[must_use]
    pub fn held_cents(&self) -> i128 {
        let holds = self.buys.iter().map(|held| i128::from(held.cents));
        let orders = self.orders.values().map(PlacedOrder::held_cents);
        let reserves = self.reserves.values().map(|trigger| i128::from(trigger.amount));
        holds.chain(orders).chain(reserves).sum()
    }

    /// Whether all that was put in is still there or was spent.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let there =
            self.cash_cents + self.held_cents() + self.spent_cents - self.received_cents - self.owed_cents;
        self.added_cents == there && self.cash_cents >= 0
    }

    /// Whether an account agrees with the log in cash, holds, free shares and shares that orders hold, and the money adds up.
    #[must_use]
    pub fn is(&self, found: &AccountSummary) -> bool {
        let holds = found.buys.iter().map(|pending| i128::from(pending.cents));
        let reserves = found.buy_triggers.iter().map(|(_, trigger)| i128::from(trigger.reserve_cents));
        let by_symbol = |all: &[(StockSymbol, u64)]| -> BTreeMap<String, u64> {
            all.iter().map(|(symbol, shares)| (symbol.to_string(), *shares)).collect()
        };
        let orders = i128::from(found.orders_held_cents);
        i128::from(found.account.cash_cents) == self.cash_cents
            && holds.chain(reserves).chain([orders]).sum::<i128>() == self.held_cents()
            && by_symbol(&found.shares) == self.shares
            && by_symbol(&found.orders_held_shares) == self.held_by_orders()
            && self.is_conserved()
    }

    pub(super) fn apply(&mut self, step: &Step) -> Checked {
        if step.is_refused {
            return if step.deal.is_none() { step.moves(0) } else { step.wrong("refused, and dealt") };
        }
        self.cash_cents += step.moved;
        if self.cash_cents < 0 {
            return step.wrong("spends more cash than the account has");
        }
        if let Some(order) = step.order.filter(|_| step.is_system) {
            return self.order_happened(step, order);
        }
        if step.is_system { self.happened(step) } else { self.commanded(step) }
    }

    fn happened(&mut self, step: &Step) -> Checked {
        match step.verb {
            Verb::Buy => {
                let held = lapsed(&mut self.buys, step)?;
                step.moves(held.cents.into())
            }
            Verb::Sell => {
                let held = lapsed(&mut self.sells, step)?;
                self.receive(&held.symbol, held.shares);
                step.moves(0)
            }
            Verb::SetBuyTrigger | Verb::SetSellTrigger => self.fired(step, step.stock()?, step.deal()?),
            Verb::DisplaySummary => step.moves(0),
            _ => step.wrong("no event of the system"),
        }
    }

    fn fired(&mut self, step: &Step, symbol: String, (shares, price): (u64, u64)) -> Checked {
        let worth = i128::from(shares) * i128::from(price);
        let is_sell = step.verb == Verb::SetSellTrigger;
        let triggers = if is_sell { &mut self.sales } else { &mut self.reserves };
        let trigger = triggers.remove(&symbol);
        let Some(Trigger { amount, shares: reserved, price: Some(armed) }) = trigger else {
            return step.wrong("fires a trigger that is not armed");
        };
        if is_sell {
            if reserved != shares || price < armed {
                return step.wrong("sells other shares than were reserved, or below its price");
            }
            self.received_cents += worth;
            return step.moves(worth);
        }
        if price > armed || !is_all_of(amount, shares, price) {
            return step.wrong("buys above its price, or not what was reserved for it");
        }
        self.receive(&symbol, shares);
        self.spent_cents += worth;
        step.moves(i128::from(amount) - worth)
    }

    fn commanded(&mut self, step: &Step) -> Checked {
        if step.deal.is_some() && !matches!(step.verb, Verb::Buy | Verb::Sell) {
            return step.wrong("deals in no share");
        }
        match step.verb {
            Verb::Add => {
                self.added_cents += step.moved;
                step.moves(step.amount()?.into())
            }
            Verb::Buy => {
                let held = held(step)?;
                let cost = i128::from(held.cents);
                if i128::from(step.amount()?) > self.cash_cents - step.moved {
                    return step.wrong("for more cash than the account has");
                }
                self.buys.push(held);
                step.moves(-cost)
            }
            Verb::Sell => {
                let held = held(step)?;
                self.give(step, &held.symbol, held.shares)?;
                self.sells.push(held);
                step.moves(0)
            }
            Verb::CommitBuy | Verb::CancelBuy => self.close_buy(step),
            Verb::CommitSell | Verb::CancelSell => self.close_sell(step),
            Verb::SetBuyAmount | Verb::SetBuyTrigger | Verb::CancelSetBuy => self.buy_trigger(step),
            Verb::SetSellAmount | Verb::SetSellTrigger | Verb::CancelSetSell => self.sell_trigger(step),
            Verb::Quote | Verb::Dumplog | Verb::DisplaySummary => step.moves(0),
        }
    }

    fn close_buy(&mut self, step: &Step) -> Checked {
        let held = self.buys.pop().map_or_else(|| step.wrong("nothing was pending"), Ok)?;
        if step.verb == Verb::CancelBuy {
            return step.moves(held.cents.into());
        }
        self.spent_cents += i128::from(held.cents);
        self.receive(&held.symbol, held.shares);
        step.moves(0)
    }

    fn close_sell(&mut self, step: &Step) -> Checked {
        let held = self.sells.pop().map_or_else(|| step.wrong("nothing was pending"), Ok)?;
        if step.verb == Verb::CancelSell {
            self.receive(&held.symbol, held.shares);
            return step.moves(0);
        }
        self.received_cents += i128::from(held.cents);
        step.moves(held.cents.into())
    }

    fn buy_trigger(&mut self, step: &Step) -> Checked {
        let symbol = step.stock()?;
        let before = self.reserves.get(&symbol).copied();
        match (step.verb, before) {
            (Verb::SetBuyAmount, before) => {
                let amount = step.amount()?;
                self.reserves.insert(symbol, Trigger::of(amount));
                step.moves(before.map_or(0, |before| i128::from(before.amount)) - i128::from(amount))
            }
            (Verb::CancelSetBuy, Some(before)) => {
                self.reserves.remove(&symbol);
                step.moves(before.amount.into())
            }
            (_, Some(before)) => {
                self.reserves.insert(symbol, Trigger { price: Some(step.amount()?), ..before });
                step.moves(0)
            }
            (_, None) => step.wrong("no amount was set"),
        }
    }

    fn sell_trigger(&mut self, step: &Step) -> Checked {
        let symbol = step.stock()?;
        let sale = self.sales.remove(&symbol);
        self.receive(&symbol, sale.map_or(0, |sale| sale.shares));
        match (step.verb, sale) {
            (Verb::SetSellAmount, _) if self.shares.get(&symbol).copied().unwrap_or_default() > 0 => {
                self.sales.insert(symbol, Trigger::of(step.amount()?));
            }
            (Verb::SetSellAmount, _) => return step.wrong("of no share"),
            (Verb::SetSellTrigger, Some(Trigger { amount, .. })) => {
                let price = step.amount()?;
                let shares = amount.checked_div(price).unwrap_or_default();
                self.give(step, &symbol, shares)?;
                self.sales.insert(symbol, Trigger { amount, shares, price: Some(price) });
            }
            (_, Some(_)) => {}
            (_, None) => return step.wrong("no amount was set"),
        }
        step.moves(0)
    }

    pub(super) fn receive(&mut self, symbol: &str, shares: u64) {
        if shares > 0 {
            let has = self.shares.entry(symbol.to_owned()).or_default();
            *has = has.saturating_add(shares);
        }
    }

    pub(super) fn give(&mut self, step: &Step, symbol: &str, shares: u64) -> Checked {
        let has = self.shares.get(symbol).copied().unwrap_or_default();
        match has.checked_sub(shares) {
            Some(0) => drop(self.shares.remove(symbol)),
            Some(left) => drop(self.shares.insert(symbol.to_owned(), left)),
            None => return step.wrong("sells more shares than the account has"),
        }
        Ok(())
    }
}

fn held(step: &Step) -> Result<Held, String> {
    let (shares, price) = step.deal()?;
    let cents =
        shares.checked_mul(price).filter(|_| is_all_of(step.funds.unwrap_or_default(), shares, price));
    let cents = cents.map_or_else(|| step.wrong("deals for another amount than its own"), Ok)?;
    Ok(Held { number: step.number, symbol: step.stock()?, shares, cents })
}

/// Whether an amount buys so many shares at that price, and no more.
fn is_all_of(cents: u64, shares: u64, price: u64) -> bool {
    cents.checked_div(price) == Some(shares)
}

/// The oldest, which must be the one that is named.
fn lapsed(stack: &mut Vec<Held>, step: &Step) -> Result<Held, String> {
    if stack.first().is_none_or(|held| held.number != step.number) {
        return step.wrong("the oldest that was pending is another");
    }
    Ok(stack.remove(0))
}
