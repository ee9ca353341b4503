//! `pares broker`: day trading as a program.
//!
//! ```text
//!   workload file --lines--> front --requests--> site (accounts, log, store)
//!                              ^  \--questions--> quoter --TCP--> quote server
//!                              \-----replies, quotes-----/
//! ```
//! The rules are elsewhere (`pares-broker`, `pares-front`, `pares-accounts`); here are sockets, threads and files.
//!
//! | module | what |
//! |---|---|
//! | `run` | a workload, from its file to a log that was verified |
//! | `tally`, `figures`, `picture` | how fast commands had their replies, and what they waited for |
//! | `floor` | a site and a front in one duty cycle |
//! | `quoter` | questions to the quote server |
//! | [`quote_server`] | the stand-in for it |
//! | `dump` | the log as a file, page by page, while the site goes on |
//! | `audit` | such a file, replayed |
//! | `generate` | workloads of any size |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod audit;
mod dump;
mod error;
mod figures;
mod floor;
mod generate;
mod picture;
pub mod quote_server;
mod quoter;
mod run;
mod tally;

pub use error::{BrokerageError, BrokerageResult};
pub use figures::RunFigures;
pub use generate::{Args as WorkloadArgs, run as generate};
pub use quote_server::Behaviour;
pub use run::{Args as RunArgs, measure};
pub use tally::{BacklogSample, CommandTimes};

/// Arguments of `pares broker`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Have a workload's commands executed by a site of this process, each user's in order, and verify the log
    #[command(
        after_help = "Exit status: 0 all was executed, and the log adds up; 1 anything else, and standard error says what."
    )]
    Run(run::Args),
    /// Look into logs
    Audit {
        #[command(subcommand)]
        what: Audit,
    },
    /// Write a workload of any size, in the mix of the largest one known
    Generate(generate::Args),
    /// Run the stand-in for the legacy quote server until Ctrl-C
    QuoteServer(quote_server::Args),
}

#[derive(clap::Subcommand)]
enum Audit {
    /// Replay a log alone: one entry for each command, and every cent and share accounted for
    #[command(after_help = "Exit status: 0 it adds up; 1 it does not, and standard error says where.")]
    Verify(audit::Args),
}

/// Does what was asked.
///
/// # Errors
/// Why it was not done.
pub fn run(args: &Args) -> BrokerageResult {
    match &args.what {
        What::Run(args) => run::run(args),
        What::Audit { what: Audit::Verify(args) } => audit::run(args),
        What::Generate(args) => generate::run(args),
        What::QuoteServer(args) => quote_server::run(args),
    }
}
