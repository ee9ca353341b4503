//! `pares bench tpcc`: TPC-C's transactions on real sites, beside the simulation of paper 3 (`pares-tpcc`).
//!
//! ```text
//!  initial database | nobody asks: idle | users, the mix: measured | users who only read | one kind after the other | checks at every site
//! ```
//! Sites are processes, clusters have a wide area network between them, and a store is redb or PostgreSQL. A warehouse's users ask one site, as in the
//! paper. At the end every site is asked whether TPC-C's consistency conditions hold there, all sites must have the same, and all that users received
//! is compared with the rows there are. It is not an audited result: see `pares-wholesale`.
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
use pares_load::{LabError, LabResult, print_figures};
use pares_operator::init::promise;
use pares_site::config::Promise;
use pares_wholesale::DatabaseSize;

/// Arguments of `pares bench tpcc`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Number of clusters
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    clusters: u8,
    /// Number of sites in each cluster
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    sites: u8,
    /// Round trip between two clusters, milliseconds
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(..=10_000))]
    rtt_ms: u64,
    /// The sites' store: redb; postgres, a server started for this; or a URL with {cluster} and {number}, of empty or
    /// missing databases
    #[arg(long, default_value = "redb")]
    store: String,
    /// What an answer survives: `os` the death of processes, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = promise)]
    durability: Promise,
    /// Number of warehouses; each has a home site
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    warehouses: u32,
    /// Customers of each of a warehouse's ten districts (the standard: 3,000)
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(10..=3_000))]
    customers: u32,
    /// Items in each warehouse (the standard: 100,000)
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    items: u32,
    /// Users per cluster
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=500))]
    clients: u32,
    /// The users' pause between an answer and the next request
    #[arg(long, value_enum, default_value_t = Think::None)]
    think: Think,
    /// Let payments update the yearly totals in the rows of warehouses and districts, where they conflict, instead of adding to counters
    #[arg(long)]
    ytd_in_rows: bool,
    /// Measuring time of the mix, seconds
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Also measure the processor time of each kind of transaction, for `pares experiment wice --costs`
    #[arg(long)]
    costs: bool,
    /// Keep the sites' directories and output in this new directory
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
    /// Think time with a mean of 5 to 12 seconds, by kind, as in the paper
    Paper,
    /// Also keying time of 2 to 18 seconds, as in the standard
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
        return Err(LabError::Usage("--seconds must be between 0.2 and 86400".into()));
    }
    let figures = run::measure(args)?;
    print_figures(args.json, &figures);
    figures.verdict()
}
