//! What the tests share.
//!
//! | module | what |
//! |---|---|
//! | [`exchange`] | a system in a directory of its own, and harm to it |
//! | [`trader`] | a member that trades at random, survives its gateways and remembers every answer |
//! | [`load`] | traders who trade while harm is done |
//! | [`record`] | what the recorders' logs say, and whether it can be true |
//! | [`process`] | `pares` and `pares up` as processes; processes by id |

pub(crate) mod exchange;
pub(crate) mod load;
pub(crate) mod process;
pub(crate) mod record;
pub(crate) mod trader;

use std::time::{Duration, Instant};

use pares_flow::Random;
use pares_types::{ClientOrderId, ClientRequest, InstrumentId, NewOrder, Price, Quantity, Side};

/// What would never end is ended after this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A stream of random numbers for one part of a test: the same every time, unless the environment has another
/// `PARES_SEED`, to look further.
pub(crate) fn random(part: u64) -> Random {
    let seed = std::env::var("PARES_SEED").map_or(0, |seed| seed.parse().expect("PARES_SEED is a number"));
    Random::new(u64::wrapping_mul(seed, 1 << 32) + part)
}

/// Waits until `holds`; `what` names what did not come about.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "did not come about: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A limit order for the day.
pub(crate) fn limit(name: u64, instrument: u32, side: Side, quantity: u64, price: i64) -> ClientRequest {
    let order = NewOrder::limit(side, Price(price), Quantity(quantity));
    ClientRequest::Enter { client_order_id: ClientOrderId(name), instrument: InstrumentId(instrument), order }
}

/// A cancel of the order entered as `target`.
pub(crate) fn cancel(name: u64, target: u64) -> ClientRequest {
    ClientRequest::Cancel { client_order_id: ClientOrderId(name), target: ClientOrderId(target) }
}
