//! One session too many: it sends as fast as it can. The promise: the others' latency stays about what it was.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, Update};
use pares_load::{LabError, LoadPlan, Worker};
use pares_types::{
    ClientOrderId, ClientRequest, InstrumentId, MemberId, NewOrder, Price, Quantity, Side, TimeInForce,
};

use super::round::Drill;

/// Members that share the load: one session of many floods, and what its pace lets through is a small part of the load.
pub(super) const MEMBERS: u32 = 10;
/// Requests buffered before answers are looked at.
const BATCH: usize = 256;
/// How long the last answers may take.
const DRAIN: Duration = Duration::from_secs(10);

/// What became of a flood's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Sent.
    pub(super) sent: u64,
    /// Answered.
    pub(super) answered: u64,
    /// Not taken in by the gateway.
    pub(super) rejected: u64,
    /// Times that the gateway closed the connection.
    pub(super) closed: u64,
}

/// Who floods, and with what.
#[derive(Clone, Debug)]
pub(super) struct Flooder {
    address: std::net::SocketAddr,
    member: MemberId,
    /// An order that executes nothing and leaves nothing behind, so that the others trade on the same books.
    instrument: InstrumentId,
    order: NewOrder,
    next_name: u64,
}

impl Flooder {
    /// A member besides those of the plan, at the first gateway.
    pub(super) fn new(plan: &LoadPlan) -> Self {
        let instrument = plan.instruments[0];
        let far_below = Price(instrument.start.0 / 10);
        let order = NewOrder::limit(Side::Buy, far_below, Quantity(instrument.lot.0));
        Self {
            address: plan.addresses[0],
            member: MemberId(plan.members + 1),
            instrument: instrument.id,
            order: NewOrder { time_in_force: TimeInForce::Ioc, ..order },
            next_name: 1,
        }
    }

    fn next(&mut self) -> ClientRequest {
        let client_order_id = ClientOrderId(self.next_name);
        self.next_name += 1;
        ClientRequest::Enter { client_order_id, instrument: self.instrument, order: self.order }
    }

    /// Floods until told to stop, once at least, and waits for the last answers.
    fn run(mut self, mut client: Client, stop: &AtomicBool) -> Result<(Self, Tally), ClientError> {
        let mut tally = Tally::default();
        let mut stopped: Option<Instant> = None;
        loop {
            match self.step(&mut client, stopped.is_none(), &mut tally) {
                Ok(()) => {}
                Err(ClientError::Closed) if stopped.is_some() => return Ok((self, tally)),
                Err(ClientError::Closed) => {
                    tally.closed += 1;
                    client = Client::connect(self.address, self.member)?;
                }
                Err(error) => return Err(error),
            }
            if stopped.is_none() && stop.load(Ordering::Relaxed) {
                stopped = Some(Instant::now());
            }
            let open = tally.sent - tally.answered - tally.rejected;
            if stopped.is_some_and(|since| open == 0 || since.elapsed() > DRAIN) {
                return Ok((self, tally));
            }
        }
    }

    fn step(&mut self, client: &mut Client, sending: bool, tally: &mut Tally) -> Result<(), ClientError> {
        for _ in 0..if sending { BATCH } else { 0 } {
            match client.send(&self.next()) {
                Ok(()) => tally.sent += 1,
                Err(ClientError::Backlogged) => break,
                Err(error) => return Err(error),
            }
        }
        client.flush()?;
        let received = client.poll(|update| match update {
            Update::Answer(_) => tally.answered += 1,
            Update::Rejected { .. } => tally.rejected += 1,
            _ => {}
        })?;
        if received == 0 {
            client.wait(Duration::from_millis(1))?;
        }
        Ok(())
    }
}

/// A flood under way.
pub(super) struct Flood(Worker<Result<(Flooder, Tally), ClientError>>);

impl Flood {
    /// Begins once the gateway has let the session in.
    pub(super) fn start(flooder: Flooder) -> Result<Self, LabError> {
        let client = Client::connect(flooder.address, flooder.member)?;
        Ok(Self(Worker::start("flood", move |stop| flooder.run(client, stop))?))
    }

    pub(super) fn end(self) -> Result<(Flooder, Tally), LabError> {
        Ok(self.0.finish()?)
    }
}

/// Floods for so long, and gives the longest gap of the others.
pub(super) fn flood(drill: &mut Drill, stretch: Duration) -> Result<u64, LabError> {
    drill.observed().take_gap_max_ns();
    let flood = Flood::start(drill.flooder.clone())?;
    let gap = drill.longest_gap(stretch);
    let (flooder, tally) = flood.end()?;
    drill.flooder = flooder;
    let sum = &mut drill.samples.flood;
    sum.sent += tally.sent;
    sum.answered += tally.answered;
    sum.rejected += tally.rejected;
    sum.closed += tally.closed;
    // What the others sent during the flood belongs to it, however late it is answered.
    let sent = drill.observed().sent.load(Ordering::Relaxed);
    let caught_up = |drill: &mut Drill| {
        let in_flight = drill.observed().in_flight();
        Ok(drill.observed().sent.load(Ordering::Relaxed) - in_flight >= sent)
    };
    let after = drill.wait_until("the others' last answer", caught_up)?;
    Ok(gap?.max(after).max(drill.observed().take_gap_max_ns()))
}
