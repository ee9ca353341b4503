//! Pages in a real browser: Chromium, driven as a person would, for tests.
//!
//! | module | what |
//! |---|---|
//! | [`access`] | what axe-core finds, and a phone's width |
//! | `browser` | Chromium by its driver, and a tab |
//! | `hand` | the same deeds by mouse or by keyboard alone |
//!
//! Where there is no Chromium a test says so and checks nothing. What pages look like is left in `target/screenshots`.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // it fails as a test does
#![allow(clippy::print_stdout)] // a test that skips says why

pub mod access;
mod browser;
mod hand;

pub use browser::{Driver, PageLook, Tab, target};
pub use hand::Hand;

use std::sync::{Mutex, PoisonError};

// Two browsers at a time starve each other on a small machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a test with a browser of its own, or says that there is none.
pub fn in_browser<F: Future<Output = ()>>(test: impl FnOnce(Driver) -> F) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(driver) = Driver::start() else {
        println!("skipped: there is no chromium with its chromedriver");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test(driver));
}
