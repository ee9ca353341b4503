//! `pares feed`: what the market sees of the record, out of it or live.
//!
//! | module | what |
//! |---|---|
//! | [`tape`] | out of the record, as a file for each day |
//! | [`capture`] | off the lines, as a file of packets |
//! | `watch` | off the lines, as books |
//! | `shown` | a book, for people and programs |

pub mod capture;
mod shown;
pub mod tape;
mod watch;

use std::path::PathBuf;

use pares_config::FeedConfig;
use pares_node::{Layout, SystemConfig};

use crate::error::{CommandError, CommandResult};

/// Arguments of `pares feed`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The system's directory
    #[arg(long, global = true, default_value = "pares-data")]
    dir: PathBuf,
}

#[derive(clap::Subcommand)]
enum What {
    /// Show a live book, or the best prices of all, from the feed
    Watch(watch::WatchArgs),
    /// Write each published business day as ITCH 5.0: one file per shard and day
    Tape(tape::Args),
    /// Capture the lines' packets in a file for tcpdump, tshark and Wireshark
    Capture(capture::Args),
}

/// Does what is asked about market data.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    match &args.what {
        What::Watch(watched) => watch::run(watched, &args.dir),
        What::Tape(args) => tape::run(args, &layout),
        What::Capture(args) => capture::run(args, &layout),
    }
}

/// What a system says of its market data.
fn feed_of<'a>(config: &'a SystemConfig, layout: &Layout) -> Result<&'a FeedConfig, CommandError> {
    config.feed.as_ref().ok_or_else(|| {
        CommandError::Usage(format!(
            "the system in {} publishes no market data; start it with `pares up --feed`",
            layout.root().display()
        ))
    })
}
