//! From recorded events to commands.
//!
//! | recorded | commanded |
//! |---|---|
//! | submission | day limit order |
//! | reduction, deletion | amend of the total, cancel |
//! | execution of the order that is next to trade | opposite IOC of that size at its price: must fill it |
//! | execution of any other order | that order is amended or cancelled: see below |
//! | replacement | cancel, then a day limit order |
//!
//! **Executions out of turn.** If the named order is not first in our queue, or a better price is open, an
//! IOC would rightly hit another order. Sending it and mending two orders afterwards would put trades on the
//! tape that never happened; so no IOC is sent, the named order gives up the executed shares by amend or
//! cancel, and the execution counts as one *not* at the head of its queue. In the published samples these are
//! 1 in 200 to 400: at the open, where LOBSTER shows a resting order's submission late, so that a seed stands
//! ahead of it; and pairs of orders that the exchange itself executed out of their order of arrival.
//!
//! **Orders never seen.** A recording of the best N levels starts in mid-day and says nothing about levels
//! outside the window, so shares appear that no submission explains. They are entered as one *seed* order
//! per level when the level enters the window: before anything submitted later, as time priority has it.
//! An event naming an unknown order falls on the seed of its level. A level that leaves the window is
//! dropped (all orders there are cancelled): what happens to it outside goes unrecorded.
//!
//! **What differs stays visible.** Levels inside the window are never adjusted before they are compared. If
//! they differ from the published row, the comparison fails, and only after it the shadow is repaired, so
//! that one difference counts once and not until the end of the day.

use std::collections::{BTreeMap, VecDeque};

use pares_types::{ClientOrderId, InstrumentId, MemberId, Price, Quantity, Side, TimeInForce};

use crate::command::{Action, Expectation, FlowAction, FlowCommand, FlowStep, RowCheck, limit};
use crate::recorded::{BookChange, Depth, DepthLevel, OrderRef, RecordedEvent, RecordedId, is_better};
use crate::shadow::{ShadowBook, ShadowOrder};

const SIDES: [Side; 2] = [Side::Buy, Side::Sell];

/// Who sends, and how names are given.
#[derive(Clone, Copy, Debug)]
pub struct TranslatorConfig {
    /// Owner of all resting orders.
    pub resting_member: MemberId,
    /// Owner of the incoming orders that stand for executions. May be the same member: names are unique
    /// over both, and one connection keeps their order without waiting.
    pub incoming_member: MemberId,
    /// The first client order id used; each command takes the next one.
    pub first_client_order_id: ClientOrderId,
    /// How many levels per side each row publishes; for recordings without rows, how many levels of the
    /// book the recording implies are compared after each event. At least 1.
    pub levels: usize,
}

/// What was translated so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events.
    pub events: u64,
    /// Executions of visible orders.
    pub executions: u64,
    /// Of those, of orders we entered as the recorded ones (not of seeds, not of unknown ones).
    pub executions_of_known_orders: u64,
    /// Of known orders, those not next to trade: no IOC was sent.
    pub executions_out_of_turn: u64,
    /// Executions of orders nobody sees.
    pub hidden_executions: u64,
    /// Events naming an order that neither we nor a seed stands for.
    pub events_of_unknown_orders: u64,
    /// Events taking more shares from an order than it has left.
    pub events_beyond_remaining: u64,
    /// Submissions that would have traded; what they crossed was cancelled first.
    pub crossing_submissions: u64,
    /// Levels entered as seeds.
    pub seeded_levels: u64,
    /// Levels cancelled as they left the window.
    pub dropped_levels: u64,
    /// Levels mended after a row that differed.
    pub repaired_levels: u64,
}

/// One instrument's state.
#[derive(Debug, Default)]
struct InstrumentState {
    shadow: ShadowBook,
    /// The row before, once there was one.
    published: Option<Depth>,
}

/// Turns recorded events into commands and comparisons.
#[derive(Debug)]
pub struct Translator {
    config: TranslatorConfig,
    next_client_order_id: u64,
    instruments: BTreeMap<InstrumentId, InstrumentState>,
    tally: Tally,
}

impl Translator {
    /// A translator that has seen nothing.
    ///
    /// # Panics
    /// If `config.levels` is 0.
    #[must_use]
    pub fn new(config: TranslatorConfig) -> Self {
        assert!(config.levels > 0, "at least one level must be compared");
        let next_client_order_id = config.first_client_order_id.0;
        Self { config, next_client_order_id, instruments: BTreeMap::new(), tally: Tally::default() }
    }

    /// What was translated so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Appends to `out` what the next event of the recording asks for: commands, one comparison, and
    /// (only where the recording contradicts itself) repairs.
    pub fn translate(&mut self, recorded: &RecordedEvent, out: &mut VecDeque<Action>) {
        let mut state = self.instruments.remove(&recorded.instrument).unwrap_or_default();
        let mut turn = Turn {
            config: &self.config,
            tally: &mut self.tally,
            next_client_order_id: &mut self.next_client_order_id,
            instrument: recorded.instrument,
            shadow: &mut state.shadow,
            out,
        };
        turn.tally.events += 1;
        match &recorded.published {
            Some(row) => {
                turn.with_row(recorded.change, state.published.as_ref(), row);
                state.published = Some(row.clone());
            }
            None => turn.without_row(recorded.change),
        }
        self.instruments.insert(recorded.instrument, state);
    }
}

/// The translation of one event: the translator's parts, and where the actions go.
struct Turn<'a> {
    config: &'a TranslatorConfig,
    tally: &'a mut Tally,
    next_client_order_id: &'a mut u64,
    instrument: InstrumentId,
    shadow: &'a mut ShadowBook,
    out: &'a mut VecDeque<Action>,
}

impl Turn<'_> {
    fn with_row(&mut self, change: BookChange, before: Option<&Depth>, row: &Depth) {
        self.seed_ahead_of_submission(change, row);
        self.apply(change);
        for side in SIDES {
            self.drop_left(side, row.side(side));
        }
        for side in SIDES {
            self.seed_entered(side, before.map(|depth| depth.side(side)), row.side(side));
        }
        self.check(row.clone());
        self.repair(row);
    }

    fn without_row(&mut self, change: BookChange) {
        self.apply(change);
        let implied = self.shadow.top(self.config.levels);
        self.check(implied);
    }

    fn check(&mut self, published: Depth) {
        let (instrument, levels) = (self.instrument, self.config.levels);
        self.out.push_back(Action::Check(RowCheck {
            event: self.tally.events,
            instrument,
            levels,
            published,
        }));
    }
}

/// The change itself.
impl Turn<'_> {
    fn apply(&mut self, change: BookChange) {
        match change {
            BookChange::Submit { id, side, price, quantity } => self.submit(Some(id), side, price, quantity),
            BookChange::Reduce { order, quantity } => self.cancel_shares(order, Some(quantity)),
            BookChange::Delete { order, quantity } => self.delete(order, quantity),
            BookChange::Execute { order, quantity } => self.execute(order, quantity),
            BookChange::Replace { old, new, price, quantity } => self.replace(old, new, price, quantity),
            BookChange::HiddenExecution => self.tally.hidden_executions += 1,
            BookChange::Nothing => {}
        }
    }

    fn submit(&mut self, recorded: Option<RecordedId>, side: Side, price: Price, quantity: Quantity) {
        self.make_way(side, price);
        let client_order_id = self.send(
            self.config.resting_member,
            limit(side, price, quantity, TimeInForce::Day),
            Expectation::Rests { remaining: quantity },
        );
        let executed = Quantity::ZERO;
        self.shadow.add(ShadowOrder { client_order_id, recorded, side, price, total: quantity, executed });
    }

    /// A recorded submission rested, so what it would hit here is not there any more.
    fn make_way(&mut self, side: Side, price: Price) {
        let opposite = side.opposite();
        while let Some(best) = self.shadow.best(opposite).filter(|&best| side.crosses(price, best)) {
            self.tally.crossing_submissions += 1;
            self.clear_level(opposite, best);
        }
    }

    fn delete(&mut self, order: OrderRef, quantity: Option<Quantity>) {
        match self.shadow.named(order.id) {
            Some(named) => self.cancel_order(&named, named.remaining()),
            None => self.cancel_shares(order, quantity),
        }
    }

    fn replace(&mut self, old: OrderRef, new: RecordedId, price: Price, quantity: Quantity) {
        match self.shadow.named(old.id) {
            Some(named) => {
                self.cancel_order(&named, named.remaining());
                self.submit(Some(new), named.side, price, quantity);
            }
            None => self.tally.events_of_unknown_orders += 1, // its side is unknown too
        }
    }

    /// Takes shares out of the named order, or out of the seed that stands for it. `None` (a deletion
    /// that does not say how many) only means something for named orders.
    fn cancel_shares(&mut self, order: OrderRef, quantity: Option<Quantity>) {
        match (self.stand_in(order), quantity) {
            (Some(held), Some(quantity)) => {
                let quantity = self.at_most_remaining(&held, quantity);
                self.cancel_order(&held, quantity);
            }
            _ => self.tally.events_of_unknown_orders += 1,
        }
    }

    fn execute(&mut self, order: OrderRef, quantity: Quantity) {
        self.tally.executions += 1;
        let Some(held) = self.stand_in(order) else {
            self.tally.events_of_unknown_orders += 1;
            return;
        };
        let known = held.recorded.is_some();
        self.tally.executions_of_known_orders += u64::from(known);
        let next = self.shadow.next_to_trade(held.side);
        if next == Some(held) && quantity <= held.remaining() {
            self.hit(&held, quantity, known);
        } else {
            self.tally.executions_out_of_turn += u64::from(known);
            let quantity = self.at_most_remaining(&held, quantity);
            self.cancel_order(&held, quantity);
        }
    }

    fn hit(&mut self, held: &ShadowOrder, quantity: Quantity, known: bool) {
        self.send(
            self.config.incoming_member,
            limit(held.side.opposite(), held.price, quantity, TimeInForce::Ioc),
            Expectation::Fills { resting: held.client_order_id, quantity, known },
        );
        self.shadow.take(held, quantity, true);
    }

    /// The order itself, or the seed at its level.
    fn stand_in(&self, order: OrderRef) -> Option<ShadowOrder> {
        self.shadow
            .named(order.id)
            .or_else(|| order.at.and_then(|(side, price)| self.shadow.seed_at(side, price)))
    }

    fn at_most_remaining(&mut self, held: &ShadowOrder, quantity: Quantity) -> Quantity {
        self.tally.events_beyond_remaining += u64::from(quantity > held.remaining());
        quantity.min(held.remaining())
    }

    /// Cancels `quantity` of an order: by amend, or by cancel if nothing would be left.
    fn cancel_order(&mut self, held: &ShadowOrder, quantity: Quantity) {
        let original = held.client_order_id;
        let remaining = held.remaining().minus(quantity);
        if remaining.is_zero() {
            let action = FlowAction::Cancel { original };
            self.send(self.config.resting_member, action, Expectation::Cancelled);
        } else {
            let (price, quantity) = (held.price, held.total.minus(quantity));
            let action = FlowAction::Amend { original, price, quantity };
            self.send(self.config.resting_member, action, Expectation::Rests { remaining });
        }
        self.shadow.take(held, quantity, false);
    }

    fn send(&mut self, member: MemberId, action: FlowAction, expect: Expectation) -> ClientOrderId {
        let client_order_id = ClientOrderId(*self.next_client_order_id);
        *self.next_client_order_id += 1;
        let command = FlowCommand { member, client_order_id, instrument: self.instrument, action };
        self.out.push_back(Action::Send(FlowStep { command, expect }));
        client_order_id
    }
}

/// The window.
impl Turn<'_> {
    /// What the first row shows at a submission's level beyond the submission was there before it.
    fn seed_ahead_of_submission(&mut self, change: BookChange, row: &Depth) {
        let BookChange::Submit { side, price, quantity, .. } = change else { return };
        let published = quantity_at(row.side(side), price);
        if self.shadow.quantity_at(side, price).is_zero() && published > quantity {
            self.seed(side, price, published.minus(quantity));
        }
    }

    fn is_full(&self, levels: &[DepthLevel]) -> bool {
        levels.len() == self.config.levels
    }

    /// Drops the levels beyond the worst published one.
    fn drop_left(&mut self, side: Side, published: &[DepthLevel]) {
        let Some(worst) = published.last().filter(|_| self.is_full(published)) else { return };
        for price in self.shadow.prices(side) {
            if is_better(side, worst.price, price) {
                self.tally.dropped_levels += 1;
                self.clear_level(side, price);
            }
        }
    }

    /// Seeds the published levels that lay beyond the window before.
    fn seed_entered(&mut self, side: Side, before: Option<&[DepthLevel]>, published: &[DepthLevel]) {
        for level in published {
            if self.lay_beyond(side, before, level.price)
                && self.shadow.quantity_at(side, level.price).is_zero()
            {
                self.seed(side, level.price, level.quantity);
            }
        }
    }

    fn lay_beyond(&self, side: Side, before: Option<&[DepthLevel]>, price: Price) -> bool {
        match before {
            None => true,
            Some(before) if !self.is_full(before) => false,
            Some(before) => before.last().is_some_and(|worst| is_better(side, worst.price, price)),
        }
    }

    fn seed(&mut self, side: Side, price: Price, quantity: Quantity) {
        self.tally.seeded_levels += 1;
        self.submit(None, side, price, quantity);
    }

    fn clear_level(&mut self, side: Side, price: Price) {
        while let Some(last) = self.shadow.last_at(side, price) {
            self.cancel_order(&last, last.remaining());
        }
    }

    /// Makes the shadow what was published, after the comparison. Does nothing on a row that agreed.
    fn repair(&mut self, row: &Depth) {
        for side in SIDES {
            for price in self.shadow.prices(side) {
                self.repair_surplus(side, price, quantity_at(row.side(side), price));
            }
        }
        for side in SIDES {
            for level in row.side(side) {
                let held = self.shadow.quantity_at(side, level.price);
                if level.quantity > held {
                    self.tally.repaired_levels += 1;
                    self.submit(None, side, level.price, level.quantity.minus(held));
                }
            }
        }
    }

    /// Cancels what a level holds beyond `published`, the last to trade first.
    fn repair_surplus(&mut self, side: Side, price: Price, published: Quantity) {
        let is_surplus = self.shadow.quantity_at(side, price) > published;
        self.tally.repaired_levels += u64::from(is_surplus);
        while let Some(last) = self.shadow.last_at(side, price) {
            let held = self.shadow.quantity_at(side, price);
            if held <= published {
                return;
            }
            self.cancel_order(&last, last.remaining().min(held.minus(published)));
        }
    }
}

fn quantity_at(levels: &[DepthLevel], price: Price) -> Quantity {
    levels.iter().find(|level| level.price == price).map_or(Quantity::ZERO, |level| level.quantity)
}
