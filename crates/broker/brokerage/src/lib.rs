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
//! | `floor` | a front in its duty cycle; `own_site` a site of this process, `site_link` the way to sites elsewhere |
//! | `front` | a front as a process: the port for loaders, pages and HTTP |
//! | `desk` | quote desks as processes, and a front's end of them |
//! | `loader` | a client that brings commands, and continues at another front |
//! | `up`, `children` | all processes on one machine |
//! | `entrance` | how people reach the pages: plain, TLS, behind a proxy |
//! | `link` | sockets that never wait |
//! | `readers`, `direct` | reads, and requests that no user's order binds |
//! | `quoter` | questions to the quote server |
//! | [`quote_server`] | the stand-in for it |
//! | `dump` | the log as a file, page by page, while the site continues |
//! | `person` | people who may sign in |
//! | `audit` | such a file, replayed |
//! | `generate` | workloads of any size |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod audit;
mod children;
mod desk;
mod direct;
mod dump;
mod entrance;
mod error;
mod figures;
mod floor;
mod front;
mod generate;
mod link;
mod loader;
mod own_site;
mod person;
mod picture;
pub mod quote_server;
mod quoter;
mod readers;
mod run;
mod site_link;
mod tally;
mod up;

pub use children::{BrokerPart, Children, ROUTERS, ToldBesides};
pub use error::{BrokerageError, BrokerageResult};
pub use figures::{DeathFigures, RunFigures};
pub use generate::{Args as WorkloadArgs, run as generate};
pub use quote_server::Behaviour;
pub use run::{Args as RunArgs, FaultPlan, GapTimes, measure};
pub use tally::{BacklogSample, CommandTimes};
pub use up::HowMany;

/// Arguments of `pares broker`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Execute a workload with a site in this process, each user's commands in order, and verify the log
    #[command(
        after_help = "Exit status: 0 everything was executed, and the log is correct; 1 any error, described on standard error."
    )]
    Run(run::Args),
    /// Verify or write logs
    Audit {
        #[command(subcommand)]
        what: Audit,
    },
    /// Add a person who may sign in; prompts for the password, or reads it from standard input
    Person(person::Args),
    /// Generate a workload of any size, with the mix of the largest known one
    Generate(generate::Args),
    /// Run a whole broker on this machine until Ctrl-C: sites, quote desks and fronts, restarted when they die
    #[command(
        after_help = "Exit status: 0 stopped; 6 every site needs repair first; 1 any other error, including that no front can run. Standard error says why."
    )]
    Up(up::Args),
    /// Run one site of a broker in this process until Ctrl-C
    #[command(
        after_help = "Exit status: 0 stopped; 6 it needs repair before the next start; 1 any other error."
    )]
    Site {
        #[command(flatten)]
        site: pares_operator::run::Args,
        /// Where `sites.toml` is
        #[arg(long, default_value = "broker-data")]
        dir: std::path::PathBuf,
    },
    /// Run a quote desk until Ctrl-C: it shares one quote server request among all fronts
    Desk(desk::Args),
    /// Run a front until Ctrl-C: it accepts users' commands, and sites execute them
    Front(front::Args),
    /// Run a simulated quote server until Ctrl-C, in place of the legacy one
    QuoteServer(quote_server::Args),
    /// Route customers' orders to an exchange, and apply its reports, until Ctrl-C
    Router(pares_routing::Args),
}

#[derive(clap::Subcommand)]
enum Audit {
    /// Verify a log by replay: one entry for each command, and every cent and share accounted for. With --head or --dir, also that no element was changed
    #[command(
        after_help = "Exit status: 0 the log adds up, and its head is the one that --head gives or that the sites of --dir keep; \
                      1 one of these is false, and standard error says which, and where. \
                      Without --head or --dir the head is not compared: a file that was changed without a contradiction passes."
    )]
    Verify(audit::Args),
    /// Write the log of the running broker: all commands answered so far, and all quotes
    Dump(audit::dump::Args),
    /// Show the head of the log written last, as the sites keep it: the hash by which a change of the file is found
    Head(audit::head::Args),
}

/// Does what was asked.
///
/// # Errors
/// Why it was not done.
pub fn run(args: &Args) -> BrokerageResult {
    match &args.what {
        What::Run(args) => run::run(args),
        What::Audit { what: Audit::Verify(args) } => audit::run(args),
        What::Audit { what: Audit::Dump(args) } => audit::dump::run(args),
        What::Audit { what: Audit::Head(args) } => audit::head::run(args),
        What::Person(args) => person::run(args),
        What::Generate(args) => generate::run(args),
        What::Up(args) => up::run(args),
        What::Site { site, dir } => {
            children::sites_of(dir)?;
            pares_operator::run::one(site, dir, pares_accounts::Accounts).map_err(error::of_site)
        }
        What::Desk(args) => desk::run(args),
        What::Front(args) => front::run(args),
        What::QuoteServer(args) => quote_server::run(args),
        What::Router(args) => pares_routing::run(args).map_err(error::failed),
    }
}

/// Reads an address of this machine: what is said at these ports is neither encrypted nor signed.
fn on_loopback(text: &str) -> Result<std::net::SocketAddr, String> {
    let address: std::net::SocketAddr = text
        .parse()
        .map_err(|_| "an address must be an IP address and a port, such as 127.0.0.1:9080".to_owned())?;
    let why = "this port has neither TLS nor authentication: use loopback (127.0.0.1)";
    if address.ip().is_loopback() { Ok(address) } else { Err(why.into()) }
}

/// A request now that has no number, and so no place in any user's order.
fn unnumbered(asked: pares_broker::Asked) -> pares_broker::BrokerRequest {
    let time_ms = floor::now_ms();
    pares_broker::BrokerRequest { number: 0, after: 0, name: None, time_ms, quote: None, asked }
}

/// A number drawn at random: no two are alike.
fn drawn() -> u64 {
    // The standard library's own randomness, which it asks of the operating system, and which no two hashers share.
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
}
