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
    /// The connections: when, who, how much
    List {
        /// One JSON object a line instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Their messages as text, in order of time
    Show {
        /// Only those that bear this name: a client order id, of a request or of its order
        #[arg(long)]
        order: Option<u64>,
        /// Messages to print at most; the last ones
        #[arg(long, default_value_t = 1_000)]
        limit: usize,
    },
    /// Their bytes as packets, for tshark and Wireshark
    Export {
        /// The file to write: pcapng
        #[arg(long)]
        to: PathBuf,
    },
    /// Time from a request's last byte in to its answer's last byte out, at the gateway's sockets
    Latency {
        /// One JSON object a line instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Hold messages against the record: each request in has its record or its refusal, each report out its record, each recorded request its message
    #[command(
        after_help = "Exit status: 0 there is no difference, and where taps cover nothing of a member is missing; 1 there is a \
                        difference, or taps lost something, are damaged, or lack what the record has. What came in when a tap was \
                        switched off is counted apart (docs/protocols/tap.md)."
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
