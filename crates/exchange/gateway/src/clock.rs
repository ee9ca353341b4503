//! The exchange's clock: when to tell which shard what time it is.
//!
//! Venues know no time but that of requests, so an order with a date would expire, and a trading day begin,
//! only when a member happens to ask for something. Telling every shard the time all day long would fill
//! the logs of exchanges where nothing ever is due. So a shard is *timed* once something in it can become
//! due; from then on each gateway tells it the time at a period of its own. Several gateways doing so is
//! harmless: time never goes back, and what is done is done.
//!
//! A step does no more than its limit allows and says [`Reason::Unfinished`] if there is more to do. The
//! gateway whose request has this answer continues at once, one request at a time.
//!
//! [`Reason::Unfinished`]: pares_types::Reason::Unfinished

use pares_types::{
    ClientOrderId, Command, InstrumentId, MemberId, OrderKind, Outcome, Phase, Reason, Request, RequestId,
    Rule, Status, TimeInForce, Timestamp,
};

use crate::route::Route;
use crate::{Gateway, GatewaySink};

/// Whether the exchange's name is one that only gateways use.
pub(crate) fn is_reserved(member: MemberId, name: ClientOrderId) -> bool {
    member == MemberId(0) && name.is_of_gateways()
}

/// Whether a gateway asks for it by itself. Nobody waits for it, so its name is not remembered.
pub(crate) fn is_unasked(request: &Request) -> bool {
    request.command.is_repeatable() && is_reserved(request.member, request.client_order_id)
}

impl Gateway {
    /// Journals what this gateway asks a shard by itself.
    pub(crate) fn journal_unasked(
        &mut self,
        now: Timestamp,
        shard: usize,
        command: Command,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        let route = Route::new(InstrumentId(0), None, command);
        let name = ClientOrderId::of_gateway(RequestId::new(self.config.id, self.sequence_last + 1));
        self.journal((now, MemberId(0), name), &route, shard, sink).map(|_| ())
    }
}

/// Whether something may become due in a shard that committed this: an order expires, a row of a timetable or a volatility call
/// may come, a call has an indicative price to tell, a step left something to do (an order, a stop, a phase),
/// or an opening became a call, since the book was crossed.
pub(crate) fn needed_after(request: &Request, outcome: &Outcome) -> bool {
    if outcome.status == Status::Refused {
        return false;
    }
    let dated = |time_in_force| matches!(time_in_force, TimeInForce::Gtd { .. });
    let unfinished = outcome.reason == Reason::Unfinished;
    match request.command {
        Command::Enter(order) => {
            let moves = order.trigger.is_some() || matches!(order.kind, OrderKind::Pegged { .. });
            dated(order.time_in_force) || moves || unfinished
        }
        Command::Amend(amendment) => amendment.time_in_force.is_some_and(dated) || unfinished,
        Command::SetRule(rule) => matches!(rule, Rule::Schedule { .. } | Rule::Call { .. }),
        Command::SetPhase(phase) => phase.is_call() || phase == Phase::Continuous || unfinished,
        Command::BeginDay { .. } | Command::EndDay { .. } => unfinished,
        _ => false,
    }
}

/// Whether the time continues what such a request has left undone; who asked for any other sends it again.
fn goes_on(command: &Command) -> bool {
    use Command::{Amend, BeginDay, EndDay, Enter, SetPhase, Time};
    matches!(command, Time { .. } | Enter(_) | Amend(_) | SetPhase(_) | BeginDay { .. } | EndDay { .. })
}

/// The clock of one gateway.
pub(crate) struct Clock {
    /// Between two requests to a shard; `None` if this gateway tells no time.
    every_ns: Option<u64>,
    shards: Box<[Dial]>,
}

/// What the clock knows of a shard.
#[derive(Clone, Copy, Default)]
struct Dial {
    timed: bool,
    /// The last step of this gateway left something to do.
    unfinished: bool,
    /// The sequence of the request in flight.
    in_flight: Option<u64>,
    /// When the next one is due.
    due: Timestamp,
}

impl Clock {
    /// A clock that tells no time yet.
    pub(crate) fn new(shards: usize) -> Self {
        Self { every_ns: None, shards: vec![Dial::default(); shards].into() }
    }

    pub(crate) fn start(&mut self, every_ns: u64) {
        self.every_ns = Some(every_ns);
    }

    /// Something may become due in the shard.
    pub(crate) fn watch(&mut self, shard: usize) {
        self.shards[shard].timed = true;
    }

    /// The request of that sequence tells the shard the time.
    pub(crate) fn on_journalled(&mut self, shard: usize, sequence: u64, now: Timestamp) {
        let dial = &mut self.shards[shard];
        dial.in_flight = Some(sequence);
        dial.due = now.plus_ns(self.every_ns.unwrap_or(0));
    }

    /// This gateway's request of that sequence is committed in the shard.
    pub(crate) fn on_own_committed(&mut self, shard: usize, request: &Request, reason: Reason) {
        let dial = &mut self.shards[shard];
        dial.in_flight = dial.in_flight.filter(|&sequence| sequence > request.id.sequence());
        let is_unfinished = reason == Reason::Unfinished;
        if is_unfinished && goes_on(&request.command) {
            (dial.unfinished, dial.due) = (true, Timestamp(0));
        } else if matches!(request.command, Command::Time { .. }) {
            dial.unfinished = false;
        }
    }

    /// The first shard that must be told now.
    pub(crate) fn due_now(&self, now: Timestamp) -> Option<usize> {
        self.every_ns?;
        self.shards.iter().position(|dial| dial.waits() && dial.due <= now)
    }

    /// When the next shard must be told, unless something is committed before.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.every_ns?;
        self.shards.iter().filter(|dial| dial.waits()).map(|dial| dial.due).min()
    }
}

impl Dial {
    fn waits(&self) -> bool {
        (self.timed || self.unfinished) && self.in_flight.is_none()
    }
}
