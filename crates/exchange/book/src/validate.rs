//! What can be told of a command without the book: docs/rules.md, section 3, checks 1 to 4.

use pares_types::{Command, NewOrder, OrderKind, Price, Quantity, Reason, Side, TimeInForce};

use crate::Instrument;

impl Instrument {
    /// Checks everything about a command that can be told without the book. A command that passes
    /// can still be refused by the book (unknown order, phase, post-only that would trade, book full ...).
    ///
    /// # Errors
    /// The reason to refuse it with.
    pub fn validate(&self, command: &Command) -> Result<(), Reason> {
        match command {
            Command::Enter(order) => self.validate_enter(order),
            _ => Ok(()),
        }
    }

    fn validate_enter(&self, order: &NewOrder) -> Result<(), Reason> {
        self.validate_quantity(order.quantity)?;
        if let OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } = order.kind {
            self.validate_price(price)?;
            self.validate_trigger(order)?;
            self.validate_value(price, order.quantity)?;
        } else {
            self.validate_trigger(order)?;
        }
        // Most orders wish for nothing special.
        let special = order.post_only || order.trigger.is_some() || !order.display.is_zero();
        if special || !order.minimum.is_zero() || !is_plain(order) {
            self.validate_wishes(order)?;
        }
        Ok(())
    }

    fn validate_trigger(&self, order: &NewOrder) -> Result<(), Reason> {
        order.trigger.map_or(Ok(()), |trigger| self.validate_price(trigger))
    }

    fn validate_wishes(&self, order: &NewOrder) -> Result<(), Reason> {
        if !is_combination(order) {
            return Err(Reason::InvalidCombination);
        }
        self.validate_display(order.display, order.quantity)?;
        if order.minimum > order.quantity || !self.on_lot(order.minimum) {
            return Err(Reason::InvalidMinimum);
        }
        Ok(())
    }

    /// Checks what an iceberg of `total` shares shows; zero is no iceberg.
    pub(crate) fn validate_display(&self, display: Quantity, total: Quantity) -> Result<(), Reason> {
        let enough = u128::from(display.0) * 100 >= u128::from(total.0);
        let legal = display.is_zero() || (display < total && self.on_lot(display) && enough);
        if legal { Ok(()) } else { Err(Reason::InvalidDisplay) }
    }

    /// The price at which a market order waits in a call: nobody can offer more.
    pub(crate) fn market_price(&self, side: Side) -> Price {
        match side {
            Side::Buy => self.price_max,
            Side::Sell => self.price_min,
        }
    }
}

/// Limit or market, to stay for the day or not at all.
fn is_plain(order: &NewOrder) -> bool {
    let kind = matches!(order.kind, OrderKind::Limit { .. } | OrderKind::Market);
    kind && matches!(order.time_in_force, TimeInForce::Day | TimeInForce::Ioc | TimeInForce::Fok)
}

/// The table of docs/rules.md, section 3, check 4.
fn is_combination(order: &NewOrder) -> bool {
    use TimeInForce::{AtClose, AtOpen, Day, Fok, Gtc, Gtd, Ioc};
    let (post, display) = (order.post_only, !order.display.is_zero());
    let (minimum, trigger) = (!order.minimum.is_zero(), order.trigger.is_some());
    match (order.kind, order.time_in_force) {
        (OrderKind::Limit { .. }, Day | Gtc | Gtd { .. }) => {
            !(post && (minimum || trigger) || trigger && (display || minimum))
        }
        (OrderKind::Limit { .. }, Ioc) => !post && !display && !trigger,
        (OrderKind::Market, Day) => !(post || display || minimum && trigger),
        (OrderKind::Market, Ioc) => !post && !display && !trigger,
        (OrderKind::Market, Gtc | Gtd { .. }) => !post && !display && !minimum && trigger,
        (OrderKind::Limit { .. } | OrderKind::Market, Fok | AtOpen | AtClose)
        | (OrderKind::Pegged { .. }, Day | Gtc | Gtd { .. }) => !post && !display && !minimum && !trigger,
        (OrderKind::Pegged { .. }, Ioc | Fok | AtOpen | AtClose) => false,
    }
}
