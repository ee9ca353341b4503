//! Drives a day through a running system: commands out in order, answers in, a window of them in flight.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_client::{Answer, Client, ClientError, Role, Trade, Update};
use pares_flow::{FlowCommand, Replay, TranslatorConfig};
use pares_load::{LabError, ScratchSystem};
use pares_text::progress;
use pares_types::{ClientOrderId, Event, MemberId, OrderId, Outcome, Quantity, Reason, RequestId, Status};

use crate::feed::Reception;

use super::day::{Day, Recording, Survey};
use super::ledger::{AnswerLedger, Fate, Place};
use super::schedule::{KillStats, Schedule};
use super::{Args, Speed};

/// All traders of the day trade as this member: one connection keeps the commands in order.
pub const MEMBER: MemberId = MemberId(1);
/// Without any answer for so long, what is in flight is given up as lost.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks after the nodes, and at most asleep.
const TICK: Duration = Duration::from_millis(1);
/// How long a dead node may take to be known as dead.
const DEATH_MAX: Duration = Duration::from_millis(300);

/// A day that was driven to its end.
pub struct Driven {
    /// The day as the client saw it.
    pub replay: Replay<Day>,
    /// What the client received.
    pub ledger: AnswerLedger,
    /// What the killing gave.
    pub toll: KillStats,
    /// What the recording holds.
    pub survey: Survey,
    /// From the first command to the last answer.
    pub took: Duration,
    /// Of that, how long the flow was held until a killed venue was back.
    pub held: Duration,
}

/// How the day is translated into commands.
pub fn translation(survey: &Survey) -> TranslatorConfig {
    TranslatorConfig {
        resting_member: MEMBER,
        incoming_member: MEMBER,
        first_client_order_id: AnswerLedger::FIRST,
        levels: survey.levels,
    }
}

/// Drives the day.
///
/// # Errors
/// If `stop` is set, a connection breaks, the recording cannot be read on or a node cannot be restarted.
pub fn drive(
    args: &Args,
    recording: &Recording,
    survey: &Survey,
    system: &mut ScratchSystem,
    (reception, stop): (Option<&mut Reception>, Arc<AtomicBool>),
) -> Result<Driven, LabError> {
    let in_flight_max = u64::from(args.in_flight);
    let driver = Driver {
        client: Client::connect(system.addresses()?[0], MEMBER)?,
        answers: Answers::new(Replay::new(recording.open()?, translation(survey))),
        schedule: Schedule::new(
            args.kill_venue_every.map(NonZeroU64::get),
            in_flight_max,
            &system.supervisor,
        ),
        system,
        reception,
        pace: Pace { speed: args.speed, first: None },
        next: None,
        ended: false,
        in_flight_max,
        stop,
        held: Duration::ZERO,
    };
    driver.run(survey)
}

struct Driver<'a> {
    system: &'a mut ScratchSystem,
    /// Those who receive the market data: one of them joins in the middle of the day.
    reception: Option<&'a mut Reception>,
    client: Client,
    answers: Answers,
    schedule: Schedule,
    pace: Pace,
    /// Handed out, not sent.
    next: Option<FlowCommand>,
    ended: bool,
    in_flight_max: u64,
    stop: Arc<AtomicBool>,
    held: Duration,
}

impl Driver<'_> {
    fn run(mut self, survey: &Survey) -> Result<Driven, LabError> {
        let bar = progress::rate("replaying", survey.events);
        let begun = Instant::now();
        let (mut heard, mut ticked) = (begun, begun);
        while !self.is_over() && heard.elapsed() < PATIENCE {
            let sent = self.send()?;
            let received = self.receive()?;
            if received > 0 || self.answers.replay.in_flight() == 0 {
                heard = Instant::now();
            }
            let events = self.answers.replay.events();
            if ticked.elapsed() >= TICK || events >= self.schedule.stop_before() {
                self.tick(ticked.elapsed(), events)?;
                if let Some(reception) = self.reception.as_mut().filter(|_| events > survey.events / 2) {
                    reception.join_late()?;
                }
                ticked = Instant::now();
                bar.set_position(events);
            }
            if sent == 0 && received == 0 {
                self.client.wait(TICK)?;
            }
        }
        let took = begun.elapsed();
        self.schedule.finish(&mut self.system.supervisor)?;
        bar.finish_and_clear();
        let Answers { replay, ledger, .. } = self.answers;
        Ok(Driven { replay, ledger, toll: self.schedule.toll, survey: survey.clone(), took, held: self.held })
    }

    fn is_over(&self) -> bool {
        self.ended && self.next.is_none() && self.answers.replay.in_flight() == 0
    }

    fn tick(&mut self, since_last: Duration, events: u64) -> Result<(), LabError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(self.stopped());
        }
        if self.schedule.is_held() {
            self.held += since_last;
        }
        self.schedule.tick(&mut self.system.supervisor, events)
    }

    /// Sends what may be sent. Says how many commands that was.
    fn send(&mut self) -> Result<usize, LabError> {
        let mut sent = 0;
        while self.answers.in_flight() < self.in_flight_max && self.fetch()? {
            let command = self.next.expect("just fetched");
            match self.client.send(&command.to_request()) {
                Ok(()) => self.answers.ledger.on_sent(command.client_order_id),
                Err(ClientError::Backlogged) => break,
                Err(error) => return Err(self.broken(&error)),
            }
            self.next = None;
            sent += 1;
        }
        match self.client.flush() {
            Ok(_) => Ok(sent),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// Whether there is a next command, and it may go now.
    fn fetch(&mut self) -> Result<bool, LabError> {
        let replay = &mut self.answers.replay;
        if self.next.is_none() && !self.ended && replay.events() < self.schedule.stop_before() {
            self.next = replay.next_command()?;
            self.ended = self.next.is_none();
        }
        Ok(self.next.is_some() && self.pace.is_due(replay.time_ns()))
    }

    fn receive(&mut self) -> Result<usize, LabError> {
        let answers = &mut self.answers;
        let received = self.client.poll(|update| answers.on_update(update));
        received.map_err(|error| self.broken(&error))
    }

    fn stopped(&self) -> LabError {
        LabError::Failed(format!("stopped after event {}", self.answers.replay.events()))
    }

    /// What to say of a lost connection: most likely the gateway died, and it says why.
    fn broken(&mut self, error: &ClientError) -> LabError {
        // Ctrl-C reaches the nodes too.
        if self.stop.load(Ordering::Relaxed) {
            return self.stopped();
        }
        let (event, open) = (self.answers.replay.events(), self.answers.in_flight());
        let death = self.wait_for_death().map_or(String::new(), |why| format!("; {why}"));
        LabError::Failed(format!(
            "the connection to the gateway broke at event {event}, with {open} commands in flight \
             ({error}){death}. A replay uses one connection: start it again"
        ))
    }

    /// A process that dies closes its connections before its parent can know.
    fn wait_for_death(&mut self) -> Option<String> {
        let begun = Instant::now();
        while begun.elapsed() < DEATH_MAX {
            // Best effort: the connection's own error is reported in any case.
            if let Some(death) = self.system.supervisor.tick().pop() {
                let complaint = death.complaint.as_deref().unwrap_or("it said nothing");
                return Some(format!("{} ended ({}): {complaint}", death.node, death.how));
            }
            std::thread::sleep(TICK);
        }
        None
    }
}

/// When each command may go.
struct Pace {
    speed: Speed,
    /// The first command: when it went, and when it happened in the recording.
    first: Option<(Instant, u64)>,
}

impl Pace {
    fn is_due(&mut self, time_ns: u64) -> bool {
        let Speed::Times(times) = self.speed else { return true };
        let (begun, first_ns) = *self.first.get_or_insert_with(|| (Instant::now(), time_ns));
        let recorded = Duration::from_nanos(time_ns.saturating_sub(first_ns));
        begun.elapsed().as_secs_f64() * times >= recorded.as_secs_f64()
    }
}

/// The receiving half: joins trades to answers, and keeps the ledger.
struct Answers {
    replay: Replay<Day>,
    ledger: AnswerLedger,
    /// Trades of positions whose answer is not in yet: they come just before it.
    fills: BTreeMap<Place, Vec<Event>>,
}

impl Answers {
    fn new(replay: Replay<Day>) -> Self {
        Self { replay, ledger: AnswerLedger::default(), fills: BTreeMap::new() }
    }

    /// Commands sent and not answered; the one handed out and not sent does not count.
    fn in_flight(&self) -> u64 {
        self.ledger.sent() - self.ledger.answered() - self.ledger.rejected()
    }

    fn on_update(&mut self, update: Update) {
        match update {
            Update::Trade(trade) if trade.role == Role::Resting => {
                self.fills.entry((trade.shard, trade.position)).or_default().push(fill(&trade));
            }
            Update::Answer(answer) => self.on_answer(&answer),
            Update::Rejected { client_order_id, reason } => self.on_rejected(client_order_id, reason),
            _ => {}
        }
    }

    fn on_answer(&mut self, answer: &Answer) {
        let place = (answer.shard, answer.position);
        let fills = self.fills.remove(&place).unwrap_or_default();
        self.ledger.on_fate(answer.client_order_id, Fate::Answered(place));
        let outcome = Outcome {
            status: answer.status,
            reason: answer.reason,
            order: answer.order,
            executed: answer.executed,
            remaining: answer.remaining,
        };
        self.replay.on_answer(answer.client_order_id, &outcome, &fills);
    }

    fn on_rejected(&mut self, name: ClientOrderId, reason: Reason) {
        self.ledger.on_fate(name, Fate::Rejected);
        let outcome = Outcome {
            status: Status::Refused,
            reason,
            order: OrderId(RequestId::NONE),
            executed: Quantity::ZERO,
            remaining: Quantity::ZERO,
        };
        self.replay.on_answer(name, &outcome, &[]);
    }
}

fn fill(trade: &Trade) -> Event {
    Event::Fill {
        resting: trade.order,
        resting_member: MEMBER,
        resting_client_order_id: trade.client_order_id,
        resting_side: trade.side,
        price: trade.price,
        quantity: trade.quantity,
        resting_remaining: trade.remaining,
    }
}
