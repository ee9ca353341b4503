//! `pares bench kill-switch`: how long it takes to cancel all orders of a member, everywhere at once.
//!
//! An operator pulls the switch because a program has run away, so it is measured in that state: the member has used up
//! what its session may send, and its orders are refused as Throttled. Half of the rounds are the member's own mass cancel through that
//! very session, half the exchange's `Block`. A round ends when the answer says that nothing is left and the member
//! has been told of every order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pares_client::{Client, Update};
use pares_load::{LabError, LabResult, ScratchSystem, check_patience, none_of, print_figures};
use pares_node::SystemConfig;
use pares_text::progress;
use pares_types::{
    ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, NewOrder, Price, Quantity, Reason, Side,
};
use serde::Serialize;

const EXCHANGE: MemberId = MemberId(0);
/// Orders beyond the session's share, to see it refused.
const BEYOND: u64 = 100;
/// Unanswered at one time.
const IN_FLIGHT: u64 = 1_000;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `pares bench kill-switch`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Orders to cancel in each round, spread over ten instruments
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..=100_000))]
    orders: u64,
    /// Rounds of each kind
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// Orders cancelled in each round.
    pub orders: u64,
    /// The member's own mass cancel: median and longest, milliseconds.
    pub mass_cancel_ms: [f64; 2],
    /// The exchange's block: median and longest, milliseconds.
    pub block_ms: [f64; 2],
    /// Orders refused as Throttled meanwhile, over all rounds.
    pub throttled: u64,
    /// Orders whose end was reported to no member, over all rounds.
    pub untold: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If the system does not come up, or an order was left.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    print_figures(args.json, &figures);
    none_of([(figures.untold, "orders without an end")])
}

fn measure(args: &Args) -> Result<Figures, LabError> {
    let config = SystemConfig {
        // What a member may enter is just what it will have to cancel.
        session_rate_max: 1,
        session_burst_max: u32::try_from(args.orders).expect("at most 100,000"),
        gateways: vec![([127, 0, 0, 1], 0).into()],
        ..SystemConfig::default()
    };
    let system = ScratchSystem::start(&config, None)?;
    let address = system.addresses()?[0];
    let instruments: Vec<u32> = system.supervisor.config().instruments.iter().map(|one| one.id).collect();
    let mut round =
        Round { address, instruments, member: MemberId(0), next_name: 1, throttled: 0, untold: 0 };
    let bar = progress::steps("cancelling", 2 * args.rounds);
    let (mut by_member, mut by_exchange) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        by_member.push(round.mass_cancel(args.orders)?);
        by_exchange.push(round.block(args.orders)?);
        bar.inc(2);
    }
    bar.finish_and_clear();
    Ok(Figures {
        orders: args.orders,
        mass_cancel_ms: median_and_longest(&mut by_member),
        block_ms: median_and_longest(&mut by_exchange),
        throttled: round.throttled,
        untold: round.untold,
    })
}

fn median_and_longest(times: &mut [Duration]) -> [f64; 2] {
    times.sort_unstable();
    [times[times.len() / 2], times[times.len() - 1]].map(|time| time.as_secs_f64() * 1e3)
}

/// What rounds share.
struct Round {
    address: std::net::SocketAddr,
    instruments: Vec<u32>,
    /// Whose orders are cancelled: each round another's, since the session has used up what it may send.
    member: MemberId,
    next_name: u64,
    throttled: u64,
    untold: u64,
}

impl Round {
    fn name(&mut self) -> ClientOrderId {
        self.next_name += 1;
        ClientOrderId(self.next_name)
    }

    /// The member cancels its orders itself.
    fn mass_cancel(&mut self, orders: u64) -> Result<Duration, LabError> {
        let mut member = self.enter(orders)?;
        let begun = Instant::now();
        let mut told = 0;
        loop {
            let client_order_id = self.name();
            let request =
                ClientRequest::MassCancel { client_order_id, instrument: InstrumentId(0), side: None };
            member.send(&request)?;
            if self.await_answer(&mut member, client_order_id, &mut told)? != Reason::Unfinished {
                break;
            }
        }
        self.await_told(&mut member, orders, &mut told)?;
        Ok(begun.elapsed())
    }

    /// The exchange blocks the member, and lets it in again.
    fn block(&mut self, orders: u64) -> Result<Duration, LabError> {
        let mut member = self.enter(orders)?;
        let mut exchange = Client::connect(self.address, EXCHANGE)?;
        let begun = Instant::now();
        let mut told = 0;
        loop {
            let client_order_id = self.name();
            exchange.exchange(client_order_id, InstrumentId(0), Command::Block { member: self.member })?;
            if self.await_answer(&mut exchange, client_order_id, &mut 0)? != Reason::Unfinished {
                break;
            }
        }
        self.await_told(&mut member, orders, &mut told)?;
        let took = begun.elapsed();
        let client_order_id = self.name();
        exchange.exchange(client_order_id, InstrumentId(0), Command::Unblock { member: self.member })?;
        self.await_answer(&mut exchange, client_order_id, &mut 0)?;
        Ok(took)
    }

    /// The session of a new member with so many orders, and no right to another one.
    fn enter(&mut self, orders: u64) -> Result<Client, LabError> {
        self.member = MemberId(self.member.0 + 1);
        let mut member = Client::connect(self.address, self.member)?;
        let (mut sent, mut settled) = (0, 0);
        let mut reasons: BTreeMap<u8, u64> = BTreeMap::new();
        let begun = Instant::now();
        while settled < orders + BEYOND {
            while sent < orders + BEYOND && sent - settled < IN_FLIGHT {
                member.send(&self.order(sent))?;
                sent += 1;
            }
            member.flush()?;
            member.poll(|update| match update {
                Update::Answer(_) => settled += 1,
                Update::Rejected { reason, .. } => {
                    settled += 1;
                    *reasons.entry(reason as u8).or_default() += 1;
                }
                _ => {}
            })?;
            wait(&member, begun)?;
        }
        self.throttled += reasons.remove(&(Reason::Throttled as u8)).unwrap_or_default();
        if reasons.is_empty() { Ok(member) } else { Err(LabError::Failed("an order was rejected".into())) }
    }

    fn order(&mut self, number: u64) -> ClientRequest {
        let instrument = self.instruments[number as usize % self.instruments.len()];
        // A hundred prices, none of which meets anything.
        let price = Price(1_000_000 - (number % 100) as i64 * 100);
        let order = NewOrder::limit(Side::Buy, price, Quantity(100));
        ClientRequest::Enter { client_order_id: self.name(), instrument: InstrumentId(instrument), order }
    }

    fn await_answer(
        &self,
        client: &mut Client,
        name: ClientOrderId,
        told: &mut u64,
    ) -> Result<Reason, LabError> {
        let begun = Instant::now();
        let mut found = None;
        while found.is_none() {
            client.flush()?;
            client.poll(|update| match update {
                Update::Answer(answer) if answer.client_order_id == name => found = Some(answer.reason),
                Update::Rejected { client_order_id, reason } if client_order_id == name => {
                    found = Some(reason)
                }
                Update::Cancelled(_) => *told += 1,
                _ => {}
            })?;
            wait(client, begun)?;
        }
        found.ok_or_else(|| LabError::Failed("no answer".into()))
    }

    /// Until the member has been told of all its orders' ends.
    fn await_told(&mut self, member: &mut Client, orders: u64, told: &mut u64) -> LabResult {
        let begun = Instant::now();
        while *told < orders && begun.elapsed() < PATIENCE {
            member.poll(|update| *told += u64::from(matches!(update, Update::Cancelled(_))))?;
            member.wait(Duration::from_millis(1))?;
        }
        self.untold += orders.saturating_sub(*told);
        Ok(())
    }
}

fn wait(client: &Client, begun: Instant) -> LabResult {
    client.wait(Duration::from_millis(1))?;
    check_patience(begun, PATIENCE, "nothing was answered")
}
