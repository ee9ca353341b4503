//! `pares bench tpcc`: TPC-C's transactions on real sites, beside the simulation of paper 3 (`pares-tpcc`).
//!
//! ```text
//!  initial database | nobody asks: idle | users, the mix: measured | users who only read | one kind after the other | checks at every site
//! ```
//! Sites are processes, clusters have a wide area network between them, and a store is redb or PostgreSQL. A warehouse's users ask one site, as in the
//! paper. At the end every site is asked whether TPC-C's consistency conditions hold there, all sites must have the same,
//! and all that users were told is held against the rows there are. It is not an audited result: see `pares-wholesale`.
//!
//! | module | what |
//! |---|---|
//! | [`site`] | a site as a process |
//! | `store` | redb, or PostgreSQL started for it |
//! | `clients` | users |
//! | `run` | the parts |
//! | `figures` | what it gave |

mod clients;
mod figures;
mod run;
pub mod site;
mod store;

use std::path::PathBuf;

use clap::ValueEnum;
use pares_load::{LabError, LabResult};
use pares_operator::init::promise;
use pares_site::config::Promise;
use pares_wholesale::DatabaseSize;

/// Arguments of `pares bench tpcc`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// How many clusters
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    clusters: u8,
    /// How many sites in each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    sites: u8,
    /// Round trip between two clusters, milliseconds
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(..=10_000))]
    rtt_ms: u64,
    /// What the sites keep their items in: redb; postgres, a server started for this; or a URL with {cluster} and {number}, of empty or
    /// missing databases
    #[arg(long, default_value = "redb")]
    store: String,
    /// What an answer promises: `os` survives the death of processes, `disk` the loss of power
    #[arg(long, default_value = "os", value_parser = promise)]
    durability: Promise,
    /// Warehouses; each is at home at one site
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    warehouses: u32,
    /// Customers of each of a warehouse's ten districts (the standard: 3,000)
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(10..=3_000))]
    customers: u32,
    /// Items that each warehouse has (the standard: 100,000)
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    items: u32,
    /// Users of each cluster
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=500))]
    clients: u32,
    /// Whether they think between an answer and the next question
    #[arg(long, value_enum, default_value_t = Think::None)]
    think: Think,
    /// Payments write what warehouses and districts have taken in a year into their rows, where they meet; otherwise they add to counters
    #[arg(long)]
    ytd_in_rows: bool,
    /// How long the mix is measured, seconds
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Measure the processor time of each kind of transaction too, for `pares experiment wice --costs`
    #[arg(long)]
    costs: bool,
    /// Keep the sites' directories and what they said here, which must not exist
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What users do between an answer and the next question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Think {
    /// Nothing
    None,
    /// They think for 5 to 12 seconds in the mean, by kind, as the paper's did
    Paper,
    /// They key their input in too, which takes 2 to 18 seconds, as the standard has it
    Standard,
}

impl Args {
    fn size(&self) -> DatabaseSize {
        DatabaseSize { warehouses: self.warehouses, customers: self.customers, items: self.items }
    }
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If the sites fail; if a condition does not hold at some site, sites differ, or something was lost or done twice. How long anything
/// took decides nothing.
pub fn run(args: &Args) -> LabResult {
    if !(0.2..=86_400.0).contains(&args.seconds) {
        return Err(LabError::Usage("--seconds is between 0.2 and 86400".into()));
    }
    let figures = run::measure(args)?;
    match args.json {
        true => pares_text::say!("{}", serde_json::to_string(&figures).expect("figures are plain numbers")),
        false => figures.print(),
    }
    figures.verdict()
}
