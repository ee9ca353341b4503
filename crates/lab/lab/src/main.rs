//! The laboratory's command line: everything that proves and measures. `pares drill` and its like run this program.
//!
//! Systems that it starts are made of this program too: each node is `pares-lab node`, each site `pares-lab site run`. What ships
//! knows nothing of it.
#![allow(unreachable_pub)] // a program has no outside: `pub` here means "for the other modules"

mod member;
mod node;
mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pares_drills::{demo, drill, replay};
use pares_experiments::{bench, experiment};
use pares_load::{LabError, LabResult};

/// As in the program that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The laboratory of Pares: demonstrations, drills, simulations and measurements of the exchange.
///
/// Start with `demo`: it runs a whole exchange on this machine, trades on it and kills
/// one of its matching engines every few seconds. Members notice nothing.
#[derive(Parser)]
#[command(name = "pares-lab", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Watch an exchange trade while its leading venue is killed every few seconds
    Demo(demo::Args),
    /// Measure the exchange and its parts on this machine
    Bench(bench::Args),
    /// Inject faults into an exchange under load, and count losses
    Drill(drill::Choice),
    /// Simulate an exchange in virtual time, with faults from a seed, and check every invariant
    Sim(sim::Args),
    /// Replay a recorded trading day through an exchange and compare every book state
    Replay(replay::Args),
    /// Repeat the papers' measurements on this machine
    Experiment(experiment::Args),
    /// Run one node of a system in this process; it fails on purpose where its environment says
    Node(node::Args),
    /// One server of a member's system started here
    #[command(hide = true, subcommand)]
    Member(member::Command),
    /// One site of a replicated database started here
    #[command(hide = true)]
    Site(pares_operator::Args),
    /// One part of a broker started here
    #[command(hide = true)]
    Broker(pares_brokerage::Args),
    /// One site of a wholesale supplier's database started here
    #[command(hide = true)]
    Wholesale(bench::tpcc::site::Args),
}

fn main() -> ExitCode {
    pares_text::output::run(command)
}

fn command() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            pares_text::aside!("pares-lab: {}", pares_text::shown(&error.to_string(), pares_text::ERROR_MAX));
            match error {
                LabError::Skipped(_) => ExitCode::from(LabError::SKIPPED),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn run(command: Command) -> LabResult {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Drill(choice) => drill::run(&choice),
        Command::Sim(args) => sim::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Node(args) => node::run(&args),
        Command::Member(command) => member::run(&command),
        Command::Site(args) => Ok(pares_operator::run(&args)?),
        Command::Broker(args) => {
            pares_brokerage::run(&args).map_err(|error| LabError::Failed(error.to_string()))
        }
        Command::Wholesale(args) => bench::tpcc::site::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_lists_what_people_start_by_hand() {
        let help = Cli::command().render_help().to_string();
        assert!(help.contains("\n  node ") && !help.contains("wholesale"), "{help}");
    }

    #[test]
    fn every_value_that_a_help_text_names_is_accepted() {
        let tried = pares_testbed::help_texts::try_every_value(&Cli::command());
        assert!(tried > 10, "{tried}");
    }

    #[test]
    fn every_documented_command_line_parses() {
        let program = Cli::command();
        // `pares` hands what people ask the laboratory for to this program.
        let shown = |first: &str| {
            program.get_subcommands().any(|below| below.get_name() == first && !below.is_hide_set())
        };
        // It has a `node` of its own.
        let is_ours = |name: &str, first: &str| name == "pares-lab" || first != "node" && shown(first);
        let tried = pares_testbed::documented::try_every_line(&program, is_ours);
        assert!(tried.wrong.is_empty(), "{}", tried.wrong.join("\n"));
        assert!(tried.count > 100, "{}", tried.count);
    }
}
