//! The state that is to be checkpointed: orders that rest.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pares_flow::{FlowAction, FlowCommand};
use pares_load::{LabError, Load, LoadPlan, Rate, RequestSource, ScratchSystem};
use pares_text::progress;
use pares_types::{ClientOrderId, InstrumentId, MemberId, NewOrder, Price, Quantity, Side};

use super::Args;

/// Prices a side has orders at, so that no level is long.
const LEVELS: i64 = 4_000;

/// Orders that meet nothing, all over so many instruments.
fn resting(symbols: u64) -> impl RequestSource {
    let mut next = 0;
    move || {
        let number = next;
        next += 1;
        let (instrument, turn) = (number % symbols, (number / symbols) as i64);
        // The flow trades around 10,000 ticks of 100.
        let (side, ticks) = match turn % 2 {
            0 => (Side::Buy, 1_000 + turn / 2 % LEVELS),
            _ => (Side::Sell, 15_000 + turn / 2 % LEVELS),
        };
        FlowCommand {
            member: MemberId(1),
            client_order_id: ClientOrderId(number + 1),
            instrument: InstrumentId(instrument as u32 + 1),
            action: FlowAction::Enter(NewOrder::limit(side, Price(ticks * 100), Quantity(100))),
        }
    }
}

/// Enters the orders through the gateway; how many, a few more than asked for.
pub(super) fn fill(args: &Args, system: &mut ScratchSystem) -> Result<u64, LabError> {
    let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::Max);
    let wanted = args.orders();
    let load = Load::start_with(plan, Box::new(resting(args.symbols.into())))?;
    let bar = progress::rate("filling", wanted);
    let answered = |load: &Load| load.observed().completed.load(Ordering::Relaxed);
    while answered(&load) < wanted && !load.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        system.supervisor.tick();
        bar.set_position(answered(&load));
    }
    bar.finish_and_clear();
    Ok(load.finish()?.sent.load(Ordering::Relaxed))
}
