//! The system and the load of the demonstration: ten instruments at ten prices, five members.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use pares_flow::FlowInstrument;
use pares_load::{LabError, LoadPlan, Rate, ScratchSystem};
use pares_node::SystemConfig;
use pares_types::{InstrumentId, MemberId, Price, Quantity};

use super::Args;
use super::day::plan::Plan;

/// Members that trade, one connection each.
const MEMBERS: u32 = 5;
/// Shares per lot: sizes look as they do on a stock exchange.
const LOT: u64 = 100;
/// Of a trading day: how often the gateways tell the time, and how far, in hundredths of a percent, trades may be from
/// the last trade and from the last auction.
const CLOCK_MS: u64 = 50;
const DYNAMIC_BAND: u32 = 100;
const STATIC_BAND: u32 = 1_000;
/// Of a trading day: orders that rest per instrument, about.
const DAY_RESTING_ORDERS: usize = 400;
/// Where the instruments' prices start, in cents; one after the other, and from the front again.
const STARTS_CENTS: [i64; 10] = [18_250, 4_210, 9_975, 31_640, 2_755, 6_480, 12_930, 5_115, 22_305, 7_860];

/// Starts the system.
///
/// # Errors
/// If it does not come up, or lies in a directory whose system has no second venue.
pub fn start(args: &Args, plan: Option<&Plan>) -> Result<ScratchSystem, LabError> {
    let mut config =
        SystemConfig { gateways: vec![SocketAddr::from(([127, 0, 0, 1], 0))], ..SystemConfig::default() };
    config.instruments.iter_mut().for_each(|instrument| instrument.lot = LOT);
    if let Some(plan) = plan {
        if args.dir.as_ref().is_some_and(|dir| dir.exists()) {
            return Err(LabError::Usage(
                "a trading day needs a new system, because of its timetable: use a --dir that does not exist"
                    .into(),
            ));
        }
        set_rules(&mut config, plan);
    }
    let system = ScratchSystem::start(&config, args.dir.clone())?;
    match system.supervisor.config().venues {
        0 | 1 if !args.kill_every.is_zero() => Err(LabError::Usage(
            "the system in that directory has only one venue, so a kill leaves none: use another --dir, or \
             --kill-every 0"
                .into(),
        )),
        _ => Ok(system),
    }
}

/// The rules of a trading day.
fn set_rules(config: &mut SystemConfig, plan: &Plan) {
    config.clock_ms = CLOCK_MS;
    for instrument in &mut config.instruments {
        instrument.timetable = plan.timetable();
        instrument.dynamic_band = DYNAMIC_BAND;
        instrument.static_band = STATIC_BAND;
        let [call_ms, extension_ms] = [plan.call, plan.extension]
            .map(|time| u64::try_from(time.as_millis()).expect("a call is a few seconds"));
        (instrument.call_ms, instrument.extension_ms) = (call_ms, extension_ms);
    }
}

/// The members that make a day's story, who take no part in the load: the buyer and the seller.
pub fn story_members() -> (MemberId, MemberId) {
    (MemberId(MEMBERS + 1), MemberId(MEMBERS + 2))
}

/// What is offered to it.
///
/// # Errors
/// If a gateway has not said where it listens.
pub fn load(args: &Args, system: &ScratchSystem) -> Result<LoadPlan, LabError> {
    let config = system.supervisor.config();
    let plan = LoadPlan::new(config, system.addresses()?, Rate::PerSecond(args.rate()));
    let instruments = config.instruments.iter().zip(STARTS_CENTS.iter().cycle());
    Ok(LoadPlan {
        members: MEMBERS,
        seed: args.seed,
        instruments: instruments
            .map(|(instrument, cents)| FlowInstrument {
                id: InstrumentId(instrument.id),
                tick: Price(instrument.tick),
                lot: Quantity(instrument.lot),
                start: Price((cents * 100 / instrument.tick).max(1_000) * instrument.tick),
            })
            .collect(),
        first_client_order_id: first_client_order_id(args),
        resting_orders: if args.day { DAY_RESTING_ORDERS } else { plan.resting_orders },
        ..plan
    })
}

/// Client order ids are for life: a system that lasts has seen those of earlier demonstrations.
pub fn first_client_order_id(args: &Args) -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match args.dir {
        Some(_) => u64::try_from(since_1970.as_micros()).expect("the year is below 500,000"),
        None => 1,
    }
}
