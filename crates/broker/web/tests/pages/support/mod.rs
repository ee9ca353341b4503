//! A browser before a server, and hands for it.

mod browser;
mod hand;
mod server;
#[path = "../../../examples/pages/stand_in.rs"]
mod stand_in;

pub(crate) use browser::{Look, Page, target};
pub(crate) use hand::Hand;
pub(crate) use server::{PASSWORD, Server};

use std::future::Future;
use std::sync::Mutex;

// Two browsers at a time starve each other on a small machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a test in a browser of its own, or says that there is none.
pub(crate) fn in_browser<F: Future<Output = ()>>(test: impl FnOnce(Page, Server) -> F) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(driver) = browser::Driver::start() else {
        println!("skipped: there is no chromium with its chromedriver");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::start().await;
        let page = Page::open(&driver, server.address()).await;
        test(page, server).await;
    });
}
