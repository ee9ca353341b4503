//! Prints the top of all books of a shard, live: `books SHARD LINE_A LINE_B REQUESTS TCP`, the last two of any replayer.
#![allow(clippy::print_stdout)] // an example may talk

use std::error::Error;
use std::time::{Duration, Instant};

use pares_receiver::{FeedLines, FeedReceiver, Received, ReceiverConfig};
use pares_types::{ShardId, Side};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [shard, a, b, requests, tcp] = &arguments[..] else { return Err("five arguments, please".into()) };
    let shard = ShardId(shard.parse()?);
    let lines = FeedLines::From(a.parse()?, b.parse()?);
    let (requests, tcp) = (vec![requests.parse()?], vec![tcp.parse()?]);
    let config = ReceiverConfig { shards: vec![shard], lines, requests, tcp, ..ReceiverConfig::default() };
    let (mut receiver, mut printed, second) =
        (FeedReceiver::open(&config)?, Instant::now(), Duration::from_secs(1));
    loop {
        receiver.poll(second, |from| {
            if let Received::State(state) = from.received {
                println!("the books are {state:?}");
            }
        })?;
        if printed.elapsed() < second {
            continue;
        }
        printed = Instant::now();
        for (_, book) in receiver.books(shard).iter().flat_map(|books| books.all()) {
            let [bid, offer] = [Side::Buy, Side::Sell].map(|side| book.orders(side).next());
            println!("{:8} {bid:?} {offer:?} last {:?}", book.symbol, book.last);
        }
    }
}
