//! The command line of Pares.
//!
//! One module per command under `commands/`, each with its arguments and a `run`. What several of them need:
//!
//! | module | what |
//! |---|---|
//! | [`error`] | why a command failed, and what to do |
//! | [`load`] | the open-loop load generator |
//! | [`progress`] | progress bars |
//! | [`system`] | systems started for the length of one command |
//! | [`venues`] | which venue leads, which is back |
//! | [`sites`] | sites of a replicated database as processes |
//! | [`text`] | aligned tables and figures for people |
//! | [`utc`] | moments as people write them |
#![allow(clippy::print_stdout, clippy::print_stderr)] // printing is what a command line does
#![allow(unreachable_pub)] // a program has no outside: `pub` here means "for the other modules"

mod commands;
mod error;
mod load;
mod progress;
mod sites;
mod small_disk;
mod system;
mod text;
mod utc;
mod venues;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A stock exchange in which every server is a primary.
///
/// Start with `pares demo`: it runs a whole exchange on this machine, trades on it and kills
/// one of its matching engines every few seconds, while you watch nothing happen.
#[derive(Parser)]
#[command(name = "pares", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Watch a whole exchange trade while its leading venue is killed every few seconds
    Demo(commands::demo::Args),
    /// Start a system and keep it running until Ctrl-C
    Up(commands::up::Args),
    /// Measure what this machine does
    Bench(commands::bench::Args),
    /// Show what a system is doing: nodes, shards, logs
    Stat(commands::stat::Args),
    /// Look up orders and trades in the record
    History(commands::history::Args),
    /// Ask as the exchange: phases, rules, instruments, blocks, busts
    Admin(commands::admin::Args),
    /// Look into a log, or check it
    Journal(commands::journal::Args),
    /// Kill, stop, wipe, flood or poison parts of a system under load, and see whether anybody notices
    Drill(commands::drill::Choice),
    /// Run the whole exchange in virtual time, with faults by seed, and check that nothing breaks
    Sim(commands::sim::Args),
    /// Put a recorded trading day through a whole exchange and compare every published state of the book
    Replay(commands::replay::Args),
    /// Measure the papers' figures and tables again on this machine
    Experiment(commands::experiment::Args),
    /// Run a database replicated between clusters of sites, look at it, ask it, and decide when a cluster is lost
    Site(commands::site::Args),
    /// Run one node of a system in this process (what `up` starts)
    Node(commands::node::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Up(args) => commands::up::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Stat(args) => commands::stat::run(&args),
        Command::History(args) => commands::history::run(&args),
        Command::Admin(args) => commands::admin::run(&args),
        Command::Journal(args) => commands::journal::run(&args),
        Command::Drill(args) => commands::drill::run(&args),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Experiment(args) => commands::experiment::run(&args),
        Command::Site(args) => commands::site::run(&args),
        Command::Node(args) => commands::node::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pares: {error}");
            match error {
                error::CommandError::Skipped(_) => ExitCode::from(error::CommandError::SKIPPED),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
