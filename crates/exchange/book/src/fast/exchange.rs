//! Requests of the exchange, and those that end more than one order (docs/rules.md, sections 4, 6 and 8).

use super::store::Store;
use super::{FastBook, Step, refused};
use crate::Trading;
use crate::doomed::Doomed;
use pares_types::{
    BustedTrade, CancelCause, Command, Event, EventSink, MemberId, OrderId, Outcome, Phase, Quantity, Reason,
    Request, Rule, Status,
};

const EXCHANGE: MemberId = MemberId(0);

impl FastBook {
    /// Everything but entering, amending and cancelling an order.
    #[cold]
    pub(super) fn apply_rare<S: EventSink>(&mut self, request: &Request, step: &mut Step<'_, S>) -> Outcome {
        let permitted = match request.command {
            Command::MassCancel { .. } => true,
            Command::Block { member } => request.member == member || request.member == EXCHANGE,
            _ => request.member == EXCHANGE,
        };
        if !permitted {
            return refused(OrderId(request.id), Reason::NotPermitted);
        }
        if let Some(doomed) = Doomed::by(request) {
            return self.mass_cancel(request, &doomed, step);
        }
        let result = match request.command {
            Command::Time { draw } => return self.pass_time(request, draw, step),
            Command::SetPhase(phase) => self.set_phase(phase, step),
            Command::SetRule(rule) => {
                let result = self.set_rule(rule);
                step.events_max = self.instrument.step_max;
                result
            }
            Command::RemoveInstrument => self.remove_all(step),
            Command::Bust(bust) => self.bust(&bust, step),
            Command::BeginDay { day } => {
                self.begin_day(day, request.stamp);
                Ok(Reason::None)
            }
            Command::EndDay { .. } => Ok(self.end_day(step)),
            Command::AddInstrument(_) | Command::Unblock { .. } | Command::Register(_) => Ok(Reason::None),
            Command::Enter(_)
            | Command::Amend(_)
            | Command::Cancel { .. }
            | Command::MassCancel { .. }
            | Command::Block { .. }
            | Command::CancelGuarded(_) => unreachable!("applied elsewhere"),
        };
        match result {
            Ok(reason) => Self::accepted(request, reason),
            Err(reason) => refused(OrderId(request.id), reason),
        }
    }

    pub(super) fn accepted(request: &Request, reason: Reason) -> Outcome {
        Outcome {
            status: Status::Accepted,
            reason,
            order: OrderId(request.id),
            executed: Quantity::ZERO,
            remaining: Quantity::ZERO,
        }
    }

    fn set_phase<S: EventSink>(&mut self, to: Phase, step: &mut Step<'_, S>) -> Result<Reason, Reason> {
        match self.trading.is_busy() {
            false if to == self.trading.phase => return Err(Reason::NothingChanged),
            true if to != Phase::Halted => return Err(Reason::InTransition),
            _ if to == Phase::VolatilityCall => return Err(Reason::InvalidRule),
            _ if self.is_kept_shut(to) => return Err(Reason::BookCrossed),
            _ => {}
        }
        self.begin_transition(to, step);
        Ok(if self.trading.is_busy() { Reason::Unfinished } else { Reason::None })
    }

    fn set_rule(&mut self, rule: Rule) -> Result<Reason, Reason> {
        let changed = self.instrument.with_rule(rule, !self.store.nodes.is_empty())?;
        if let Rule::Reference(price) = rule {
            if self.trading.reference == Some(price) && self.trading.last.is_none() {
                return Err(Reason::NothingChanged);
            }
            (self.trading.reference, self.trading.last) = (Some(price), None);
        }
        if matches!(rule, Rule::PriceRange { .. } | Rule::Tick { .. }) {
            self.store = Store::new(&changed);
        }
        *self.instrument = changed;
        Ok(Reason::None)
    }

    fn remove_all<S: EventSink>(&mut self, step: &mut Step<'_, S>) -> Result<Reason, Reason> {
        if !matches!(self.trading.phase, Phase::Closed | Phase::Halted) || self.trading.is_busy() {
            return Err(Reason::NotCloseable);
        }
        let empty = self.cancel_where(step, |_| Some(CancelCause::Removed));
        Ok(if empty { Reason::None } else { Reason::Unfinished })
    }

    fn bust<S: EventSink>(&mut self, bust: &BustedTrade, step: &mut Step<'_, S>) -> Result<Reason, Reason> {
        let BustedTrade { position, index, resting, incoming, price, quantity, .. } = *bust;
        let Err(place) = self.trading.busts.binary_search(&(position, index)) else {
            return Err(Reason::AlreadyBusted);
        };
        if self.trading.busts.len() >= Trading::BUSTS_MAX {
            return Err(Reason::TooManyBusts);
        }
        self.trading.busts.insert(place, (position, index));
        step.emit(Event::Busted { resting, incoming, position, index, price, quantity });
        Ok(Reason::None)
    }
}
