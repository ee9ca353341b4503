//! Members that trade whatever dies, and remember what they were answered.

use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, OpenRequests, Options, Update};
use pares_load::{
    LabError, LabResult, LoadPlan, LogNotes, Numbers, Rate, ScratchSystem, check_patience, keep_if_connected,
};
use pares_node::SystemConfig;
use pares_types::{
    Answer, ClientOrderId, ClientRequest, InstrumentId, MemberId, NewOrder, Outcome, Position, Price,
    Quantity, Reason, Request, ShardId, Side, Status, TimeInForce,
};

use super::PATIENCE;

/// Instruments, each in a shard of its own.
pub(super) const INSTRUMENTS: u32 = 2;
const MEMBERS: u32 = 4;
/// Who sells to the orders that were carried over.
const LAST: MemberId = MemberId(MEMBERS + 1);
/// Of a member's orders in flight.
const IN_FLIGHT: usize = 64;
/// Of a member's orders, one in so many is good till cancelled: an odd number, so that instruments alternate.
const CARRIED_EVERY: u64 = 101;
/// And none behind that one: the number of open orders grows no further.
const CARRIED_LAST: u64 = 2_500;
/// So many ticks below all others.
const CARRIED_TICKS: i64 = 100;

/// A name of a member, as one number of all members' names; `None` of others.
fn number(member: MemberId, name: ClientOrderId) -> Option<u64> {
    let index = member.0.checked_sub(1).filter(|index| *index < MEMBERS)?;
    Some(name.0 * u64::from(MEMBERS) + u64::from(index))
}

/// What a log has of the members' orders.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    recorded: Numbers,
    pub(super) twice: u64,
}

impl Notes {
    pub(super) fn missing(&self, answered: &Numbers) -> u64 {
        answered.count_missing_in(&self.recorded)
    }
}

impl LogNotes for Notes {
    fn note(&mut self, _: (ShardId, Position), request: &Request, outcome: &Outcome) {
        if matches!(outcome.reason, Reason::DuplicateRequest | Reason::TooOld) {
            return;
        }
        if let Some(number) = number(request.member, request.client_order_id) {
            self.twice += u64::from(!self.recorded.insert(number));
        }
    }
}

/// An instrument, and what is carried over in it.
struct Traded {
    id: InstrumentId,
    price: Price,
    tick: i64,
    lot: Quantity,
    carried: u64,
}

/// All members.
pub(super) struct Members {
    all: Vec<Member>,
    traded: Vec<Traded>,
    answered: Numbers,
    told_twice: u64,
    count: u64,
}

struct Member {
    id: MemberId,
    client: Option<Client>,
    open: OpenRequests,
    names: u64,
}

impl Members {
    pub(super) fn new(config: &SystemConfig) -> Self {
        let member = |id| Member { id: MemberId(id), client: None, open: OpenRequests::new(), names: 0 };
        let plan = LoadPlan::new(config, config.gateways.clone(), Rate::Max);
        let traded = plan.instruments.iter().map(|one| Traded {
            id: one.id,
            price: one.start,
            tick: one.tick.0,
            lot: one.lot,
            carried: 0,
        });
        Self {
            all: (1..=MEMBERS).map(member).collect(),
            traded: traded.collect(),
            answered: Numbers::default(),
            told_twice: 0,
            count: 0,
        }
    }

    /// So many orders more of all together are entered; some are not answered yet in the end.
    pub(super) fn trade(&mut self, system: &mut ScratchSystem, orders: u64) -> LabResult {
        self.work(system, orders / u64::from(MEMBERS), IN_FLIGHT)
    }

    /// Everything is answered.
    pub(super) fn finish(&mut self, system: &mut ScratchSystem) -> LabResult {
        self.work(system, 0, 0)
    }

    fn work(&mut self, system: &mut ScratchSystem, orders: u64, open_max: usize) -> LabResult {
        let goals: Vec<u64> = self.all.iter().map(|member| member.names + orders).collect();
        let mut moved = Instant::now();
        loop {
            let (before, mut is_done) = (self.count, true);
            for (at, &goal) in goals.iter().enumerate() {
                let turn = self.turn(system, at, goal);
                let member = &mut self.all[at];
                if !keep_if_connected(turn)? {
                    member.client = None;
                }
                is_done &= member.names == goal && member.open.len() <= open_max;
            }
            if is_done {
                return Ok(());
            }
            if self.count > before {
                moved = Instant::now();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
            check_patience(moved, PATIENCE, "no order was answered")?;
            system.supervisor.tick();
        }
    }

    fn turn(&mut self, system: &ScratchSystem, at: usize, goal: u64) -> Result<(), ClientError> {
        let Self { all, traded, answered, told_twice, count } = self;
        let Member { id, client, open, names } = &mut all[at];
        let client = match client {
            Some(client) => client,
            None => {
                let connected = client.insert(system.connect(*id, id.0 as usize, &Options::default())?);
                open.repeat_all(connected)?;
                connected
            }
        };
        while *names < goal && open.len() < IN_FLIGHT {
            open.submit(client, &order(*id, *names + 1, traded))?;
            *names += 1;
        }
        client.flush()?;
        let mut rejected = Vec::new();
        client.poll(|update| {
            let closed = open.on_update(&update);
            match (update, closed) {
                (Update::Answer(answer), Some(request)) => {
                    let number = number(*id, answer.client_order_id).expect("a member's own name");
                    *told_twice += u64::from(!answered.insert(number));
                    *count += 1;
                    take_note(&answer, &request, traded);
                }
                (Update::Answer(answer), None) => *told_twice += u64::from(!answer.is_part()),
                (Update::Rejected { .. }, Some(request)) => rejected.push(request),
                _ => {}
            }
        })?;
        rejected.iter().try_for_each(|request| open.submit(client, request))
    }

    /// Sells to all orders that were carried over. How many lots of them are not there.
    pub(super) fn fill_carried(&mut self, system: &mut ScratchSystem) -> Result<u64, LabError> {
        let mut client = system.connect(LAST, 0, &Options::default())?;
        let mut missing = 0;
        for (name, one) in (1..).zip(self.traded.iter().filter(|one| one.carried > 0)) {
            let price = Price(one.price.0 - CARRIED_TICKS * one.tick);
            let order = NewOrder::limit(Side::Sell, price, Quantity(one.carried * one.lot.0));
            let request = ClientRequest::Enter {
                client_order_id: ClientOrderId(name),
                instrument: one.id,
                order: NewOrder { time_in_force: TimeInForce::Ioc, ..order },
            };
            let answer = client.submit_and_wait(&request)?;
            missing += one.carried - answer.executed.0 / one.lot.0;
        }
        Ok(missing)
    }

    pub(super) fn disconnect(&mut self) {
        self.all.iter_mut().for_each(|member| member.client = None);
    }

    /// All that was answered.
    pub(super) fn answered(&self) -> &Numbers {
        &self.answered
    }

    pub(super) fn told_twice(&self) -> u64 {
        self.told_twice
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// What a member enters under its next name: half of them buy and half sell at one price; some stay below.
fn order(member: MemberId, name: u64, traded: &[Traded]) -> ClientRequest {
    let one = &traded[name as usize % traded.len()];
    let carried = name.is_multiple_of(CARRIED_EVERY) && name <= CARRIED_LAST;
    let below = if carried { CARRIED_TICKS * one.tick } else { 0 };
    let side = if carried || member.0.is_multiple_of(2) { Side::Buy } else { Side::Sell };
    let order = NewOrder::limit(side, Price(one.price.0 - below), one.lot);
    let time_in_force = if carried { TimeInForce::Gtc } else { TimeInForce::Day };
    ClientRequest::Enter {
        client_order_id: ClientOrderId(name),
        instrument: one.id,
        order: NewOrder { time_in_force, ..order },
    }
}

/// Remembers what is carried over.
fn take_note(answer: &Answer, request: &ClientRequest, traded: &mut [Traded]) {
    let ClientRequest::Enter { instrument, order, .. } = request else { return };
    if order.time_in_force == TimeInForce::Gtc && answer.status == Status::Resting {
        let one = traded.iter_mut().find(|one| one.id == *instrument).expect("it was entered there");
        one.carried += 1;
    }
}
