//! The rows that a result writes and changes.

use pares_text::name;
use pares_types::{Amendment, Command, NewOrder, OrderId, OrderKind, Price, Quantity, TimeInForce};
use rusqlite::params;

use super::{Party, Reading, Step};

/// SQLite's integers are signed: the same 64 bits.
pub(super) fn word(order: OrderId) -> i64 {
    order.0.to_bits().cast_signed()
}

pub(super) fn shares(quantity: Quantity) -> i64 {
    quantity.0.cast_signed()
}

impl Step<'_> {
    pub(super) fn insert_request(&self) -> rusqlite::Result<()> {
        let (command, order, price, quantity) = match self.request.command {
            Command::Enter(order) => {
                ("enter", word(OrderId(self.request.id)), limit(&order), Some(shares(order.quantity)))
            }
            Command::Amend(Amendment { target, price, quantity, reduces, .. }) => {
                ("amend", word(target), (!reduces).then_some(price.0), Some(shares(quantity)))
            }
            Command::Cancel { target } => ("cancel", word(target), None, None),
            command => (without_order(&command), 0, None, None),
        };
        let (request, outcome) = (&self.request, &self.outcome);
        self.execute(
            "INSERT INTO requests VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                self.place.shard,
                self.place.position,
                request.id.to_bits().cast_signed(),
                order,
                self.stamp(),
                request.member.0,
                request.client_order_id.0.cast_signed(),
                command,
                price,
                quantity,
                outcome.status.to_string(),
                outcome.reason.to_string(),
                shares(outcome.executed),
                shares(outcome.remaining),
            ],
        )
    }

    pub(super) fn insert_order(&self, order: &NewOrder) -> rusqlite::Result<()> {
        let (request, outcome) = (&self.request, &self.outcome);
        let kind = match order.kind {
            OrderKind::Limit { .. } => "limit",
            OrderKind::Market => "market",
            OrderKind::Pegged { .. } => "pegged",
        };
        self.execute(
            "INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?16, ?17, ?18, ?19, ?20, ?21)",
            params![
                request.id.to_bits().cast_signed(),
                request.member.0,
                request.client_order_id.0.cast_signed(),
                request.instrument.0,
                name(&order.side),
                kind,
                name(&order.time_in_force),
                order.post_only,
                limit(order),
                shares(order.quantity),
                shares(outcome.executed),
                shares(outcome.remaining),
                outcome.status.to_string(),
                outcome.reason.to_string(),
                self.place.shard,
                self.place.position,
                self.stamp(),
                wish(order.display),
                wish(order.minimum),
                order.trigger.map(|price| price.0),
                until(order.time_in_force),
            ],
        )
    }

    /// The order's totals and status become those of the outcome.
    pub(super) fn settle(&self, order: OrderId) -> rusqlite::Result<()> {
        let outcome = &self.outcome;
        self.execute(
            "UPDATE orders SET executed = ?2, remaining = ?3, status = ?4, reason = ?5, changed_position = ?6, \
             changed_stamp = ?7 WHERE id = ?1",
            params![
                word(order),
                shares(outcome.executed),
                shares(outcome.remaining),
                outcome.status.to_string(),
                outcome.reason.to_string(),
                self.place.position,
                self.stamp(),
            ],
        )
    }

    /// An order at a market price keeps it, whatever the amend says, and so does one that is only reduced.
    pub(super) fn set_terms(&self, amendment: &Amendment) -> rusqlite::Result<()> {
        let Amendment { target, quantity, display, trigger, time_in_force: force, .. } = *amendment;
        let price = (!amendment.reduces).then_some(amendment.price.0);
        self.execute(
            "UPDATE orders SET price = CASE kind WHEN 'market' THEN price ELSE COALESCE(?2, price) END, \
             quantity = ?3 WHERE id = ?1",
            params![word(target), price, shares(quantity)],
        )?;
        if let Some(display) = display {
            let set = "UPDATE orders SET display = ?2 WHERE id = ?1";
            self.execute(set, params![word(target), wish(display)])?;
        }
        if let Some(trigger) = trigger {
            let set = "UPDATE orders SET trigger = ?2 WHERE id = ?1";
            self.execute(set, params![word(target), trigger.0])?;
        }
        if let Some(force) = force {
            let set = "UPDATE orders SET time_in_force = ?2, until = ?3 WHERE id = ?1";
            self.execute(set, params![word(target), name(&force), until(force)])?;
        }
        Ok(())
    }

    /// An order that was not asked about traded.
    pub(super) fn fill(&self, order: OrderId, quantity: Quantity, left: Quantity) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE orders SET executed = executed + ?2, remaining = ?3, \
             status = CASE ?3 WHEN 0 THEN 'filled' ELSE status END, changed_position = ?4, changed_stamp = ?5 \
             WHERE id = ?1",
            params![word(order), shares(quantity), shares(left), self.place.position, self.stamp()],
        )
    }

    pub(super) fn insert_trade(
        &self,
        reading: &Reading,
        [buy, sell]: [Party; 2],
        aggressor: String,
        price: Price,
        quantity: Quantity,
    ) -> rusqlite::Result<()> {
        self.execute(
            "INSERT INTO trades VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0)",
            params![
                self.place.shard,
                self.place.position,
                reading.number,
                reading.instrument,
                price.0,
                shares(quantity),
                word(buy.order),
                buy.member,
                word(sell.order),
                sell.member,
                aggressor,
                self.stamp(),
            ],
        )
    }

    pub(super) fn execute(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.db.prepare_cached(sql)?.execute(values).map(|_| ())
    }
}

/// The limit price; a market order has none.
fn limit(order: &NewOrder) -> Option<i64> {
    match order.kind {
        OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => Some(price.0),
        OrderKind::Market => None,
    }
}

/// Zero says that there is no such wish.
fn wish(quantity: Quantity) -> Option<i64> {
    (!quantity.is_zero()).then(|| shares(quantity))
}

fn until(force: TimeInForce) -> Option<i64> {
    match force {
        TimeInForce::Gtd { until } => Some(until.0.cast_signed()),
        _ => None,
    }
}

/// What a request that names no order is called.
fn without_order(command: &Command) -> &'static str {
    match command {
        Command::Enter(_) => "enter",
        Command::Amend(_) => "amend",
        Command::Cancel { .. } => "cancel",
        Command::MassCancel { .. } => "mass_cancel",
        Command::Time { .. } => "time",
        Command::SetPhase(_) => "set_phase",
        Command::SetRule(_) => "set_rule",
        Command::AddInstrument(_) => "add_instrument",
        Command::RemoveInstrument => "remove_instrument",
        Command::Block { .. } => "block",
        Command::Unblock { .. } => "unblock",
        Command::Bust(_) => "bust",
        Command::BeginDay { .. } => "begin_day",
        Command::EndDay { .. } => "end_day",
        Command::Register(_) => "register",
        Command::CancelGuarded(_) => "cancel_guarded",
    }
}
