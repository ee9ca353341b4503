//! The orders of a record that live, as far as messages need them: docs/rules.md, section 9.
//!
//! A reader of the record need not match. It must know what an amend leaves of an order's terms, and where it shows what.

use pares_book::Instrument;
use pares_table::{IndexTable, Slab, SlabIndex};
use pares_types::{Amendment, NewOrder, OrderId, OrderKind, Price, Quantity, Side};

/// An order that lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) id: OrderId,
    /// The locate of its instrument.
    pub(crate) locate: u16,
    pub(crate) side: Side,
    pub(crate) kind: OrderKind,
    pub(crate) display: Quantity,
    pub(crate) trigger: Option<Price>,
    pub(crate) executed: Quantity,
    pub(crate) remaining: Quantity,
    /// Where it is displayed.
    pub(crate) shown: Option<Shown>,
}

/// What the market sees of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) reference: u64,
    pub(crate) price: Price,
    /// Above zero.
    pub(crate) shares: Quantity,
    /// Whether the market knows it: its instrument is published.
    pub(crate) told: bool,
}

impl Shown {
    /// What is stored for an order that is not displayed.
    pub(crate) const NOWHERE: Self =
        Self { reference: 0, price: Price(0), shares: Quantity::ZERO, told: false };
}

/// What an amend does to an order.
pub(crate) enum Amended {
    /// It keeps its place, and shows so many shares less.
    Kept(Order, Quantity),
    /// It is off its place; it was shown so.
    Off(Order, Option<Shown>),
}

impl Order {
    /// An order as it was entered.
    pub(crate) fn entered(id: OrderId, locate: u16, new: &NewOrder) -> Self {
        Self {
            id,
            locate,
            side: new.side,
            kind: new.kind,
            display: new.display,
            trigger: new.trigger,
            executed: Quantity::ZERO,
            remaining: new.quantity,
            shown: None,
        }
    }

    /// Where it rests by its own terms, and what it shows there; nowhere at market.
    pub(crate) fn at_its_limit(&self) -> Option<(Price, Quantity)> {
        let OrderKind::Limit { price } = self.kind else { return None };
        let shown = if self.display.is_zero() { self.remaining } else { self.display.min(self.remaining) };
        Some((price, shown))
    }

    /// Whether it has no limit, and so is not displayed where it rests.
    pub(crate) fn is_at_market(&self) -> bool {
        self.kind == OrderKind::Market
    }

    /// It has a limit from now on.
    pub(crate) fn set_limit(&mut self, price: Price) {
        self.kind = OrderKind::Limit { price };
    }

    pub(crate) fn trade(&mut self, quantity: Quantity) {
        self.executed.0 = self.executed.0.saturating_add(quantity.0);
        self.lose(quantity);
    }

    pub(crate) fn lose(&mut self, quantity: Quantity) {
        self.remaining.0 = self.remaining.0.saturating_sub(quantity.0);
    }
}

/// The orders that live and are not matching just now. All of them have shares left.
pub(crate) struct Living {
    orders: Slab<Order>,
    table: IndexTable,
}

impl Default for Living {
    fn default() -> Self {
        Self { orders: Slab::with_capacity(0), table: IndexTable::new() }
    }
}

/// What the table knows an order by.
fn key(id: OrderId) -> u64 {
    id.0.to_bits()
}

impl Living {
    #[inline]
    fn slot(&self, id: OrderId) -> Option<SlabIndex<Order>> {
        self.table.get(key(id), |slot| self.orders[slot].id == id)
    }

    #[inline]
    pub(crate) fn find(&mut self, id: OrderId) -> Option<&mut Order> {
        let slot = self.slot(id)?;
        Some(&mut self.orders[slot])
    }

    pub(crate) fn take(&mut self, id: OrderId) -> Option<Order> {
        let slot = self.slot(id)?;
        self.table.remove(key(id), slot);
        self.orders.remove(slot);
        Some(self.orders[slot])
    }

    pub(crate) fn put(&mut self, order: Order) {
        if order.remaining.is_zero() {
            return;
        }
        if let Some(known) = self.find(order.id) {
            *known = order;
            return;
        }
        let slot = self.orders.insert(order);
        self.table.insert(key(order.id), slot, |slot| key(self.orders[slot].id));
    }

    pub(crate) fn remove(&mut self, id: OrderId) {
        self.take(id);
    }

    /// All, by id.
    pub(crate) fn sorted(&self) -> Vec<&Order> {
        let mut all: Vec<&Order> = self.table.slots().map(|slot| &self.orders[slot]).collect();
        all.sort_unstable_by_key(|order| order.id);
        all
    }

    /// All that are displayed, as they joined.
    pub(crate) fn displayed(&self) -> Vec<OrderId> {
        let all = self.sorted().into_iter();
        let mut displayed: Vec<_> =
            all.filter_map(|order| Some((order.shown?.reference, order.id))).collect();
        displayed.sort_unstable();
        displayed.into_iter().map(|(_, id)| id).collect()
    }

    /// The terms of an amend that was carried out (docs/rules.md, section 4). That it has fewer shares in all is an event of its own.
    pub(crate) fn amend(&mut self, amendment: &Amendment, rules: &Instrument) -> Option<Amended> {
        let order = self.find(amendment.target)?;
        let (old, total) = (*order, Quantity(order.executed.0.saturating_add(order.remaining.0)));
        order.kind = amendment.kind_of(order.kind);
        order.display = amendment.display.unwrap_or(order.display);
        order.trigger = amendment.trigger.or(order.trigger);
        let less = !order.display.is_zero() && (old.display.is_zero() || order.display < old.display);
        let display = order.display != old.display && !(less && rules.display_decrease_keeps);
        let larger = amendment.quantity > total;
        let loses = larger || order.kind != old.kind || display || order.trigger != old.trigger;
        if let (Some(shown), true) = (&mut order.shown, less) {
            shown.shares = shown.shares.min(order.display);
        }
        if amendment.quantity != total && order.display >= amendment.quantity {
            order.display = Quantity::ZERO;
        }
        if larger {
            order.remaining.0 = amendment.quantity.0.saturating_sub(order.executed.0);
        }
        if loses {
            let order = self.take(amendment.target)?;
            return Some(Amended::Off(Order { shown: None, ..order }, old.shown));
        }
        let shares = |shown: Option<Shown>| shown.map_or(0, |shown| shown.shares.0);
        Some(Amended::Kept(*order, Quantity(shares(old.shown) - shares(order.shown))))
    }
}
