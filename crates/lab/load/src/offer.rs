//! More than the exchange takes, on a schedule that nothing changes.
//!
//! Request `n` is due at `start + n / rate` and goes to session `n` modulo their number; each session numbers its own, as members do. A load that waits for answers, or that sends
//! later what it could not send in time, offers less and less the slower the exchange is. Here what cannot be sent when it is
//! due is *withheld*: counted, and never sent. So latency, which counts from the time a request was due, is that of the
//! exchange and not that of a queue in this process.
//!
//! What is sent must leave the books as they are for as long as it runs, whatever part of it is refused: orders around one price
//! that trade with each other, and now and then a mass cancel of one instrument.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use pares_client::{Client, ClientError, Update};
use pares_flow::{FlowInstrument, Random};
use pares_os::clock::mono_ns;
use pares_types::{ClientOrderId, ClientRequest, MemberId, NewOrder, Price, Quantity, Side};

use crate::error::LabError;
use crate::numbers::Numbers;
use crate::worker::Worker;

/// Requests sent before answers are looked at.
const BATCH_MAX: u64 = 512;
/// Between two rounds of sending and looking. Sending each request as it becomes due took half a processor, and it is the exchange's.
const ROUND: Duration = Duration::from_micros(200);
/// What is later than this is withheld: this process had no processor.
const LATE_NS: u64 = 100_000_000;
/// What the kernel buffers of a session, about twice this: more would be a queue of this process, in another place.
const SEND_BYTES: usize = 32 << 10;
/// How long the last answers may take.
const DRAIN_NS: u64 = 30_000_000_000;
/// One request of so many is a mass cancel.
const CANCEL_EVERY: u64 = 100;
/// Prices are within so many ticks of the middle.
const TICKS: u64 = 5;

/// What to offer.
pub struct OpenLoopPlan {
    /// The gateways; session `k` uses gateway `k` modulo their number.
    pub addresses: Vec<SocketAddr>,
    /// What is traded.
    pub instruments: Vec<FlowInstrument>,
    /// One member each.
    pub sessions: u32,
    /// Requests per second.
    pub rate: u64,
    /// All chance comes from here.
    pub seed: u64,
}

/// Latencies of what was answered, nanoseconds from when it was due.
#[derive(Clone)]
pub struct Latencies {
    /// Of all requests.
    pub all: Histogram<u64>,
    /// Of cancels.
    pub cancels: Histogram<u64>,
}

/// What became of it so far.
#[derive(Default)]
pub struct OpenLoopTally {
    /// Requests sent.
    pub sent: AtomicU64,
    /// Of those, answered.
    pub answered: AtomicU64,
    /// Of those, not taken in, with a reason.
    pub rejected: AtomicU64,
    /// Of those rejected, cancels.
    pub cancels_rejected: AtomicU64,
    /// Requests told more than once what became of them.
    pub duplicated: AtomicU64,
    /// Due, and not sent: the connection was full, or this process late.
    pub withheld: AtomicU64,
}

/// An offer under way.
pub struct OpenLoopLoad {
    /// What became of it so far.
    pub tally: Arc<OpenLoopTally>,
    thread: Worker<Result<Latencies, ClientError>>,
}

impl OpenLoopLoad {
    /// Connects the sessions and begins.
    ///
    /// # Errors
    /// If a gateway cannot be reached.
    pub fn start(plan: OpenLoopPlan) -> Result<Self, LabError> {
        let tally = Arc::new(OpenLoopTally::default());
        let mut sender = Sender::new(plan, Arc::clone(&tally))?;
        let thread = Worker::start("offer", move |stop| sender.run(stop))?;
        Ok(Self { tally, thread })
    }

    /// Whether it has ended, which it does by itself if a connection is lost.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Sends no more, waits until all is answered (or has had thirty seconds), and gives the latencies of what was.
    ///
    /// # Errors
    /// If a connection was lost.
    pub fn finish(self) -> Result<Latencies, LabError> {
        Ok(self.thread.finish()?)
    }
}

impl Latencies {
    fn record(&mut self, n: u64, latency_ns: u64) {
        self.all.saturating_record(latency_ns);
        if is_cancel(n) {
            self.cancels.saturating_record(latency_ns);
        }
    }
}

/// Whether request `n` is one.
fn is_cancel(n: u64) -> bool {
    n.is_multiple_of(CANCEL_EVERY)
}

struct Sender {
    plan: OpenLoopPlan,
    tally: Arc<OpenLoopTally>,
    clients: Vec<Client>,
    /// Sessions whose connection did not take all it was given.
    full: Vec<bool>,
    random: Random,
    start_ns: u64,
    /// Requests that have been due.
    due: u64,
    /// Those that were answered or rejected.
    told: Numbers,
    latencies: Latencies,
}

impl Sender {
    fn new(plan: OpenLoopPlan, tally: Arc<OpenLoopTally>) -> Result<Self, ClientError> {
        let connect = |member: u32| {
            Client::connect(plan.addresses[member as usize % plan.addresses.len()], MemberId(member))
        };
        let clients = (1..=plan.sessions).map(connect).collect::<Result<Vec<_>, _>>()?;
        for client in &clients {
            rustix::net::sockopt::set_socket_send_buffer_size(client, SEND_BYTES)
                .map_err(|error| ClientError::Io(error.into()))?;
        }
        let full = vec![false; clients.len()];
        let random = Random::new(plan.seed);
        let latencies = Histogram::new_with_bounds(1, 120_000_000_000, 3).expect("constant bounds are valid");
        let latencies = Latencies { cancels: latencies.clone(), all: latencies };
        Ok(Self {
            plan,
            tally,
            clients,
            full,
            random,
            start_ns: 0,
            due: 0,
            told: Numbers::default(),
            latencies,
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<Latencies, ClientError> {
        pares_os::scheduling::short_slices();
        self.start_ns = mono_ns();
        let mut until_ns = None;
        loop {
            if until_ns.is_none() && stop.load(Ordering::Relaxed) {
                until_ns = Some(mono_ns() + DRAIN_NS);
            }
            if until_ns.is_none() {
                self.send_due(mono_ns())?;
            }
            for (client, full) in self.clients.iter_mut().zip(&mut self.full) {
                *full = !client.flush()?;
            }
            self.receive()?;
            let OpenLoopTally { sent: all, answered, rejected, .. } = &*self.tally;
            let told = answered.load(Ordering::Relaxed) + rejected.load(Ordering::Relaxed);
            let open = all.load(Ordering::Relaxed).saturating_sub(told);
            if until_ns.is_some_and(|until_ns| open == 0 || mono_ns() > until_ns) {
                return Ok(self.latencies.clone());
            }
            std::thread::sleep(ROUND);
        }
    }

    fn send_due(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let per_second = u128::from(self.plan.rate);
        let requests_in = |ns: u64| (u128::from(ns) * per_second / 1_000_000_000) as u64;
        let due = requests_in(now_ns - self.start_ns);
        let on_time = due.saturating_sub(requests_in(LATE_NS));
        if on_time > self.due {
            add(&self.tally.withheld, on_time - self.due);
            self.due = on_time;
        }
        let count = (due - self.due).min(BATCH_MAX);
        for n in self.due..self.due + count {
            let at = (n % self.clients.len() as u64) as usize;
            if self.full[at] {
                add(&self.tally.withheld, 1);
                continue;
            }
            let request = self.request(n);
            match self.clients[at].send(&request) {
                Ok(()) => add(&self.tally.sent, 1),
                Err(ClientError::Backlogged) => add(&self.tally.withheld, 1),
                Err(error) => return Err(error),
            }
        }
        self.due += count;
        Ok(())
    }

    fn request(&mut self, n: u64) -> ClientRequest {
        let client_order_id = ClientOrderId(n / self.clients.len() as u64 + 1);
        let instruments = &self.plan.instruments;
        if is_cancel(n) {
            let turn = (n / CANCEL_EVERY) as usize % instruments.len();
            return ClientRequest::MassCancel {
                client_order_id,
                instrument: instruments[turn].id,
                side: None,
            };
        }
        let instrument = instruments[self.random.below(instruments.len() as u64) as usize];
        let side = if self.random.percent(50) { Side::Buy } else { Side::Sell };
        let ticks = self.random.below(2 * TICKS + 1) as i64 - TICKS as i64;
        let price = Price(instrument.start.0 + ticks * instrument.tick.0);
        let order = NewOrder::limit(side, price, Quantity(instrument.lot.0 * (1 + self.random.below(10))));
        ClientRequest::Enter { client_order_id, instrument: instrument.id, order }
    }

    fn receive(&mut self) -> Result<(), ClientError> {
        let Self { clients, tally, told, latencies, start_ns, plan, .. } = self;
        let due_ns = |n: u64| *start_ns + (u128::from(n) * 1_000_000_000 / u128::from(plan.rate)) as u64;
        let sessions = clients.len() as u64;
        for (client, session) in clients.iter_mut().zip(0..) {
            let mut now_ns = 0;
            client.poll(|update| {
                if now_ns == 0 {
                    now_ns = mono_ns();
                }
                let (name, counted) = match update {
                    Update::Answer(answer) => (answer.client_order_id, &tally.answered),
                    Update::Rejected { client_order_id, .. } => (client_order_id, &tally.rejected),
                    _ => return,
                };
                let n = (name.0 - 1) * sessions + session;
                if !told.insert(n) {
                    return add(&tally.duplicated, 1);
                }
                add(counted, 1);
                let answered = matches!(update, Update::Answer(_));
                if answered {
                    latencies.record(n, now_ns.saturating_sub(due_ns(n)).max(1));
                } else if is_cancel(n) {
                    add(&tally.cancels_rejected, 1);
                }
            })?;
        }
        Ok(())
    }
}

/// Only the sender's thread writes these.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
