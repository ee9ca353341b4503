//! A member that is away while its orders are filled. The promise: at another gateway it receives every fill, once and in order,
//! while gateways are killed.
//!
//! ```text
//!  member:  rests orders | away ............................... | resumes from the number it has ... has all
//!  others:               | fill them, through killed gateways   |
//!  gateways:               kill, kill, kill ...                   killed again while it receives them
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, OpenRequests, Options, Update};
use pares_load::{
    LabError, LabResult, LoadPlan, Rate, ScratchSystem, check_patience, keep_if_connected, none_of,
    print_figures, setup,
};
use pares_node::{NodeId, SystemConfig};
use pares_types::{
    Answer, ClientOrderId, ClientRequest, GatewayId, InstrumentId, MemberId, NewOrder, Position, Price,
    Quantity, ShardId, Side, TimeInForce,
};
use rustix::process::Signal;
use serde::Serialize;

const AWAY: MemberId = MemberId(1);
const OTHER: MemberId = MemberId(2);
const GATEWAYS: u16 = 2;
/// Orders that the member leaves behind.
const ORDERS: u64 = 100;
/// Requests of the other member in flight.
const IN_FLIGHT: usize = 256;
/// Gateways killed while the orders are filled, and while the member receives the fills.
const KILLS: u64 = 4;
/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `pares drill away`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Number of fills while the member is disconnected
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(ORDERS..=1_000_000))]
    fills: u64,
    /// The directory for the system's files [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the drill gave.
#[derive(Clone, Copy, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    /// Fills of the member's orders while it was away.
    fills: u64,
    /// Of those, how many it was not told.
    missed: u64,
    /// Messages it received twice, or out of order.
    duplicated: u64,
    /// Gateways killed while it was away, and while it received what it missed.
    kills: u64,
    /// From asking for what it missed until it had all, milliseconds.
    told_ms: f64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or the promise was broken.
pub(super) fn run(args: &Args) -> LabResult {
    let config = SystemConfig {
        gateways: (0..GATEWAYS).map(|_| ([127, 0, 0, 1], 0).into()).collect(),
        instruments: vec![setup::instrument(1)],
        ..SystemConfig::default()
    };
    let mut drill = Away::start(&config, args)?;
    drill.rest()?;
    drill.fill()?;
    let begun = Instant::now();
    drill.come_back()?;
    let outcome = drill.outcome(begun.elapsed());
    print_figures(args.json, &outcome);
    none_of([(outcome.missed, "fills never told"), (outcome.duplicated, "told twice or out of order")])
}

/// The drill under way.
struct Away {
    system: ScratchSystem,
    fills: u64,
    kills: u64,
    instrument: InstrumentId,
    price: Price,
    lot: u64,
    /// Positions at which the orders were filled, as the other member was answered.
    filled: BTreeSet<Position>,
    /// Positions of the trades that the member received.
    told: BTreeSet<Position>,
    /// The number of the last message that the member received.
    last: u64,
    out_of_order: u64,
}

impl Away {
    fn start(config: &SystemConfig, args: &Args) -> Result<Self, LabError> {
        let system = ScratchSystem::start(config, args.dir.clone())?;
        let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::Max);
        let instrument = plan.instruments[0];
        Ok(Self {
            system,
            fills: args.fills.next_multiple_of(ORDERS),
            kills: 0,
            instrument: instrument.id,
            price: instrument.start,
            lot: instrument.lot.0,
            filled: BTreeSet::new(),
            told: BTreeSet::new(),
            last: 0,
            out_of_order: 0,
        })
    }

    fn order(&self, name: u64, side: Side, lots: u64) -> ClientRequest {
        let order = NewOrder::limit(side, self.price, Quantity(lots * self.lot));
        let time_in_force = if side == Side::Buy { TimeInForce::Ioc } else { TimeInForce::Day };
        ClientRequest::Enter {
            client_order_id: ClientOrderId(name),
            instrument: self.instrument,
            order: NewOrder { time_in_force, ..order },
        }
    }

    /// The member enters its orders at the first gateway and goes away.
    fn rest(&mut self) -> LabResult {
        let mut member = Client::connect(self.system.addresses()?[0], AWAY)?;
        for name in 1..=ORDERS {
            let answer = member.submit_and_wait(&self.order(name, Side::Sell, self.fills / ORDERS))?;
            self.last = answer.number;
        }
        Ok(())
    }

    /// The other member fills them, whatever happens to gateways.
    fn fill(&mut self) -> LabResult {
        let mut open = OpenRequests::new();
        let (mut client, mut sent, mut moved) = (None, 0, Instant::now());
        while (self.filled.len() as u64) < self.fills {
            self.kill_at(self.filled.len() as u64)?;
            let before = self.filled.len();
            let turn = self.fill_turn(&mut client, &mut open, &mut sent);
            client = if keep_if_connected(turn)? { client } else { None };
            if self.filled.len() > before {
                moved = Instant::now();
            }
            check_patience(moved, PATIENCE, "nothing was told")?;
        }
        Ok(())
    }

    fn fill_turn(
        &mut self,
        client: &mut Option<Client>,
        open: &mut OpenRequests,
        sent: &mut u64,
    ) -> Result<(), ClientError> {
        let connected = match client {
            Some(client) => client,
            None => {
                let connected = client.insert(self.connect(OTHER)?);
                open.repeat_all(connected)?;
                connected
            }
        };
        while open.len() < IN_FLIGHT && *sent < self.fills {
            open.submit(connected, &self.order(*sent + 1, Side::Buy, 1))?;
            *sent += 1;
        }
        connected.flush()?;
        connected.wait(Duration::from_millis(10))?;
        let filled = &mut self.filled;
        connected.poll(|update| {
            open.on_update(&update);
            if let Update::Answer(Answer { executed: Quantity(1..), position, .. }) = update {
                filled.insert(position);
            }
        })?;
        Ok(())
    }

    /// The member asks for what it missed, at another gateway whenever one dies.
    fn come_back(&mut self) -> LabResult {
        let mut moved = Instant::now();
        let all = self.last + self.fills;
        while self.last < all {
            let before = self.last;
            let read = self.read_until(all);
            keep_if_connected(read)?;
            if self.last > before {
                moved = Instant::now();
            }
            check_patience(moved, PATIENCE, "nothing was told")?;
            self.system.supervisor.tick();
        }
        Ok(())
    }

    /// At one gateway, until it dies or has sent all.
    fn read_until(&mut self, all: u64) -> Result<(), ClientError> {
        let mut client = self.connect(AWAY)?;
        client.resume(Some(ShardId(0)), self.last + 1)?;
        let mut is_live = false;
        while !is_live || self.last < all {
            client.flush()?;
            client.wait(Duration::from_millis(10))?;
            client.poll(|update| match update {
                Update::Trade(trade) => {
                    self.out_of_order += u64::from(trade.number != self.last + 1);
                    self.last = self.last.max(trade.number);
                    self.told.insert(trade.position);
                }
                Update::Resumed { next, .. } => {
                    self.out_of_order += u64::from(next != self.last + 1);
                    is_live = true;
                }
                _ => {}
            })?;
            let told = self.told.len() as u64;
            if self.kills < 2 * KILLS
                && told >= (self.kills + 1).saturating_sub(KILLS) * self.fills / (KILLS + 1)
            {
                let gateway = client.gateway();
                self.kills += 1;
                // If it died by itself, so much the better.
                let _ = self.system.supervisor.signal(NodeId::Gateway(gateway), Signal::KILL);
            }
        }
        Ok(())
    }

    fn connect(&mut self, member: MemberId) -> Result<Client, ClientError> {
        self.system.supervisor.tick();
        let options = Options { resumes: member == AWAY, ..Options::default() };
        // The other gateway than that of the last kill first.
        let connected = self.system.connect(member, (self.kills + 1) as usize, &options);
        if connected.is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        connected
    }

    /// Kills a gateway whenever a further part of the fills is done.
    fn kill_at(&mut self, filled: u64) -> LabResult {
        self.system.supervisor.tick();
        if self.kills < KILLS && filled >= (self.kills + 1) * self.fills / (KILLS + 1) {
            let victim = GatewayId((self.kills % u64::from(GATEWAYS)) as u16);
            self.kills += 1;
            self.system.supervisor.signal(NodeId::Gateway(victim), Signal::KILL)?;
        }
        Ok(())
    }

    fn outcome(&self, took: Duration) -> Outcome {
        let missed = self.filled.difference(&self.told).count();
        Outcome {
            drill: "away",
            fills: self.filled.len() as u64,
            missed: missed as u64,
            duplicated: self.out_of_order,
            kills: self.kills,
            told_ms: took.as_secs_f64() * 1e3,
        }
    }
}
