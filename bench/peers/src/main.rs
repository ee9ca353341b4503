//! Order books published by others, as engines of `pares bench book`, which starts this program and asks it.

mod matchcore;
mod obcore;
mod orderbook_rs;

use pares_books::{Contender, serve};

fn main() -> std::io::Result<()> {
    serve(&[
        Contender::new::<matchcore::Matchcore>(
            "matchcore-0.4.0",
            "an order that crosses trades beyond its own limit (its match call takes none), so its trades differ",
        ),
        Contender::new::<orderbook_rs::OrderbookRs>(
            "orderbook-rs-0.15.3",
            "built for use from many threads at once, which is not measured here",
        ),
        Contender::new::<obcore::Obcore>(
            "obcore-0.1.6",
            "it has no amend: orders are cancelled and entered again, so one that gives shares away loses its place",
        ),
    ])
}
