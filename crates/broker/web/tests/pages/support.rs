//! A browser before a server.

mod server;
#[path = "../../examples/pages/stand_in.rs"]
mod stand_in;

pub(crate) use pares_browser::{Hand, PageLook, Tab};
pub(crate) use server::{PASSWORD, Server};

use std::future::Future;

/// Runs a test in a browser of its own, or says that there is none.
pub(crate) fn in_browser<F: Future<Output = ()>>(test: impl FnOnce(Tab, Server) -> F) {
    pares_browser::in_browser(async |driver| {
        let server = Server::start().await;
        let page = Tab::open(&driver, server.address()).await;
        test(page, server).await;
    });
}

/// Writes each text into its field, then presses the button.
pub(crate) async fn send<const N: usize>(page: &Tab, hand: Hand, fields: [(&str, &str); N], button: &str) {
    for (field, text) in fields {
        hand.write(page, field, text).await;
    }
    hand.press(page, button).await;
}
