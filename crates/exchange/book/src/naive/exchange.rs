//! Requests of the exchange: docs/rules.md, section 8.

use pares_types::{
    BustedTrade, CancelCause, Command, Event, EventSink, MemberId, OrderId, Outcome, Phase, Reason, Request,
    Rule,
};

use super::{NaiveBook, Step, accepted, refused};
use crate::doomed::Doomed;
use crate::{RestingOrder, Trading};

impl NaiveBook {
    pub(super) fn apply_of_the_exchange(
        &mut self,
        step: &mut Step<impl EventSink>,
        request: &Request,
    ) -> Outcome {
        let of_itself = matches!(request.command, Command::Block { member } if member == request.member);
        if request.member != MemberId(0) && !of_itself {
            return refused(OrderId(request.id), Reason::NotPermitted);
        }
        if let Some(doomed) = Doomed::by(request) {
            return self.mass_cancel(step, request, &doomed);
        }
        match request.command {
            Command::Time { draw } => self.tell_time(step, request, draw),
            Command::SetPhase(to) => self.set_phase(step, request, to),
            Command::SetRule(rule) => self.set_rule(request, rule),
            Command::RemoveInstrument => self.remove_instrument(step, request),
            Command::Bust(trade) => self.bust(step, request, &trade),
            Command::BeginDay { day } => self.begin_day(request, day),
            Command::EndDay { .. } => self.end_day(step, request),
            Command::AddInstrument(_) | Command::Unblock { .. } | Command::Register(_) => {
                accepted(request, false)
            }
            Command::Block { .. } | Command::CancelGuarded(_) => unreachable!("a mass cancel"),
            Command::Enter(_) | Command::Amend(_) | Command::Cancel { .. } | Command::MassCancel { .. } => {
                unreachable!("members ask for that")
            }
        }
    }

    fn set_rule(&mut self, request: &Request, rule: Rule) -> Outcome {
        let changed = match self.instrument.with_rule(rule, self.all().next().is_some()) {
            Ok(changed) => changed,
            Err(reason) => return refused(OrderId(request.id), reason),
        };
        if let Rule::Reference(price) = rule {
            if self.trading.reference == Some(price) && self.trading.last.is_none() {
                return refused(OrderId(request.id), Reason::NothingChanged);
            }
            self.trading.reference = Some(price);
            self.trading.last = None;
        }
        self.instrument = changed;
        accepted(request, false)
    }

    fn remove_instrument(&mut self, step: &mut Step<impl EventSink>, request: &Request) -> Outcome {
        if !matches!(self.trading.phase, Phase::Closed | Phase::Halted) || self.trading.is_busy() {
            return refused(OrderId(request.id), Reason::NotCloseable);
        }
        let orders: Vec<RestingOrder> = self.all().copied().collect();
        for order in orders {
            if step.is_spent(self.instrument.step_max) {
                return accepted(request, true);
            }
            self.cancel_whole(step, &order, CancelCause::Removed);
        }
        accepted(request, false)
    }

    fn bust(&mut self, step: &mut Step<impl EventSink>, request: &Request, trade: &BustedTrade) -> Outcome {
        let busted = (trade.position, trade.index);
        if self.trading.busts.contains(&busted) {
            return refused(OrderId(request.id), Reason::AlreadyBusted);
        }
        if self.trading.busts.len() >= Trading::BUSTS_MAX {
            return refused(OrderId(request.id), Reason::TooManyBusts);
        }
        self.trading.busts.push(busted);
        self.trading.busts.sort();
        let BustedTrade { position, index, resting, incoming, price, quantity, .. } = *trade;
        step.event(Event::Busted { resting, incoming, position, index, price, quantity });
        accepted(request, false)
    }
}
