//! `pares member watch`: the member's stream, a line an item.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pares_member::{TraderNews, TraderOptions};
use pares_types::Position;

use super::Servers;
use super::text::{book_line, line};
use crate::error::{CommandError, CommandResult};

/// Arguments of `pares member watch`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    servers: Servers,
    /// The first position to show [default: new items only]
    #[arg(long)]
    from: Option<u64>,
    /// Also show books
    #[arg(long)]
    books: bool,
    /// End after this many items
    #[arg(long)]
    count: Option<u64>,
}

/// Follows until Ctrl-C.
pub(super) fn run(args: &Args) -> CommandResult {
    let stop =
        pares_os::process::stop_on_signals().map_err(CommandError::io("installing a signal handler"))?;
    let mut client =
        args.servers.connect(0, TraderOptions { from: args.from.map(Position), books: args.books })?;
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 && !stop.load(Ordering::Relaxed) {
        client.wait(Duration::from_millis(100));
        client.poll(|news| match news {
            TraderNews::Item(item) if left > 0 => {
                left -= 1;
                pares_text::tell!("{}", line(&item));
            }
            TraderNews::SignedOn { server, told, .. } => {
                pares_text::tell!("-- server {server}; {} items so far", told.0);
            }
            TraderNews::Book(book) => pares_text::tell!("{}", book_line(&book)),
            TraderNews::Market { shard, state } => pares_text::tell!("-- shard {shard}: {}", state.word()),
            TraderNews::Away => pares_text::tell!("-- connection lost; looking for another server"),
            TraderNews::Lost => pares_text::tell!("-- another stream begins"),
            _ => {}
        });
    }
    Ok(())
}
