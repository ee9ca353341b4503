//! `pares demo --broker`: a broker's customers trade on the exchange, and everything between them is killed.
//!
//! ```text
//!   customers --place, cancel--> sites (3) <--name, settle--> routers (2) <--orders, stream--> gateways, venues, recorders
//!                                 ^ kill -9                    ^ kill -9                        ^ kill -9       ^ other members
//! ```
//! Each part's death alone is harmless for what is its own; what this shows is that nothing falls between them: an order that was placed is sent, one that was sent is sent
//! once, what the exchange tells is applied once. At the end the broker's holds are held against the exchange's list of its orders, its trades against the
//! exchange's stream, its log against its accounts; then the exchange ends its day, and nothing may be held any more.
//!
//! | module | what |
//! |---|---|
//! | `parts` | the broker's processes, with pages for a user who trades by hand; who is killed next |
//! | `customers` | what customers do |
//! | `reckoning` | what is checked at the end |
//! | `verdict` | what it came to |

mod customers;
mod parts;
mod reckoning;
mod stage;
mod verdict;

use std::sync::atomic::AtomicBool;

use pares_load::{LabResult, figures_text};

use super::Args;
use super::face;
use stage::Stage;

/// Runs it.
///
/// # Errors
/// If a part fails, or something was lost or done twice.
pub(super) fn run(args: &Args, stop: &AtomicBool) -> LabResult {
    let mut stage = Stage::set(args)?;
    let verdict = stage.play(stop).and_then(|()| stage.finish())?;
    face::say(&figures_text(args.json, &verdict))?;
    verdict.check()
}
