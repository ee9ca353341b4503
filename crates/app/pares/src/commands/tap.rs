//! `pares tap`: what gateways' connections said, out of their taps (docs/protocols/tap.md).
//!
//! Everything here only reads, and works while the gateways write.
//!
//! | module | what |
//! |---|---|
//! | `select` | which taps and connections are meant, and their bytes |
//! | `list`, `show`, `export`, `latency`, `reconcile` | one command each |

mod export;
mod latency;
mod list;
mod reconcile;
mod recorded;
mod select;
mod show;
mod taped;

use std::path::PathBuf;

use pares_node::Layout;
use pares_types::ClientOrderId;

use crate::error::CommandResult;
use select::Select;

/// Arguments of `pares tap`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The system's directory; it may be running
    #[arg(long, global = true, default_value = "pares-data")]
    dir: PathBuf,
    #[command(flatten)]
    select: Select,
}

#[derive(clap::Subcommand)]
enum What {
    /// List the connections with time, member and bytes
    List {
        /// One JSON object per line instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Print the messages as text, in time order
    Show {
        /// Only messages with this client order id, of the request or of its order
        #[arg(long)]
        order: Option<u64>,
        /// Most messages to print; the latest ones
        #[arg(long, default_value_t = 1_000)]
        limit: usize,
    },
    /// Export the bytes as packets, for tshark and Wireshark
    Export {
        /// The pcapng file to write
        #[arg(long)]
        to: PathBuf,
    },
    /// Measure the time from a request's last byte in to its answer's last byte out, at the gateway's sockets
    Latency {
        /// One JSON object per line instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Compare the messages with the record: each request must be recorded or refused, each report and each recorded request must match
    #[command(
        after_help = "Exit status: 0 the taps and the record agree, and no message is missing where taps \
                        cover; 1 they differ, or the taps lost entries, are damaged, or lack recorded \
                        requests. Requests that arrived while a tap was off are counted separately \
                        (docs/protocols/tap.md)."
    )]
    Reconcile,
}

/// Runs the subcommand.
///
/// # Errors
/// If there is no tap, it cannot be read, or what was to be found does not hold.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    match &args.what {
        What::List { json } => list::run(&layout, &args.select, *json),
        What::Show { order, limit } => show::run(&layout, &args.select, order.map(ClientOrderId), *limit),
        What::Export { to } => export::run(&layout, &args.select, to),
        What::Latency { json } => latency::run(&layout, &args.select, *json),
        What::Reconcile => reconcile::run(&layout, &args.select),
    }
}
