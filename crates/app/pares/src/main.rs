//! The command line of Pares: what operators do.
//!
//! One module per command under `commands/`, each with its arguments and a `run`. What several of them need:
//!
//! | module | what |
//! |---|---|
//! | [`error`] | why a command failed, and what to do |
//! | [`laboratory`] | commands of the laboratory, handed to its own program |
//! | [`standing`] | the books as they stand, from checkpoints and the record |
//! | [`utc`] | moments as people write them |
#![allow(unreachable_pub)] // a program has no outside: `pub` here means "for the other modules"

mod commands;
mod error;
#[cfg(test)]
mod help_texts;
mod laboratory;
mod standing;
mod utc;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pares_text::{self as text, progress};

/// Sites make and drop a few dozen small things for each transaction; with the system's allocator a quarter of their time goes there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A stock exchange whose processes may die at any instant: nobody waits or fails over.
///
/// Start with `pares demo`: it runs a whole exchange on this machine, trades on it and kills
/// one of its matching engines every few seconds. Members notice nothing.
#[derive(Parser)]
#[command(name = "pares", version, max_term_width = 100, after_help = laboratory::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a system and keep it running until Ctrl-C
    Up(commands::up::Args),
    /// Show what a system is doing: nodes, shards, logs
    Stat(commands::stat::Args),
    /// Show phase, rules and top of the book of every instrument
    Instruments(commands::instruments::Args),
    /// Look up orders and trades in the record
    History(commands::history::Args),
    /// Ask as the exchange: phases, rules, instruments, blocks, busts
    Admin(commands::admin::Args),
    /// Issue a certificate to a member, for gateways that ask for one
    Certificate(commands::certificate::Args),
    /// Report a business day, as every recorder has it
    Day(commands::day::Args),
    /// Market data: watch books, capture what comes on the lines, write the tape of a day
    Feed(commands::feed::Args),
    /// Try the FIX session layer: an acceptor that echoes
    Fix(commands::fix::Args),
    /// Serve an exchange over HTTP and WebSocket
    Web(commands::web::Args),
    /// Run a member's trading system, and use it as a trader
    Member(commands::member::Args),
    /// Say whether a configuration is legal, and what a production system must think about
    CheckConfig(commands::check_config::Args),
    /// Copy closed business days to an archive, or restore them
    Archive(commands::archive::Args),
    /// Copy a system while it runs
    Backup(commands::archive::BackupArgs),
    /// Make a system of a backup
    Restore(commands::archive::RestoreArgs),
    /// Look into what gateways' connections said: find, export, time, hold against the record
    Tap(commands::tap::Args),
    /// Look into a log, or check it
    Journal(commands::journal::Args),
    /// Run a database replicated between clusters of sites, look at it, ask it, and decide when a cluster is lost
    Site(pares_operator::Args),
    /// Day trading: `up` runs a broker with pages and HTTP; or run a workload, verify its log, write workloads, stand in for the quote server
    Broker(pares_brokerage::Args),
    /// Run one node of a system in this process (what `up` starts)
    Node(commands::node::Args),
}

fn main() -> ExitCode {
    text::output::run(command)
}

fn command() -> ExitCode {
    let result = match laboratory::asked() {
        Some(arguments) => Err(laboratory::run(&arguments)),
        None => run(Cli::parse().command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            pares_text::aside!("pares: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(command: Command) -> error::CommandResult {
    match command {
        Command::Up(args) => commands::up::run(&args),
        Command::Stat(args) => commands::stat::run(&args),
        Command::Instruments(args) => commands::instruments::run(&args),
        Command::History(args) => commands::history::run(&args),
        Command::Admin(args) => commands::admin::run(&args),
        Command::Certificate(args) => commands::certificate::run(&args),
        Command::Day(args) => commands::day::run(&args),
        Command::Feed(args) => commands::feed::run(&args),
        Command::Fix(args) => commands::fix::run(&args),
        Command::Web(args) => commands::web::run(&args),
        Command::Member(args) => commands::member::run(&args),
        Command::CheckConfig(args) => commands::check_config::run(&args),
        Command::Archive(args) => commands::archive::run(&args),
        Command::Backup(args) => commands::archive::backup(&args),
        Command::Restore(args) => commands::archive::restore_system(&args),
        Command::Tap(args) => commands::tap::run(&args),
        Command::Journal(args) => commands::journal::run(&args),
        Command::Site(args) => pares_operator::run(&args).map_err(Into::into),
        Command::Broker(args) => pares_brokerage::run(&args).map_err(Into::into),
        Command::Node(args) => commands::node::run(&args),
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
    fn every_value_that_a_help_text_names_is_accepted() {
        let tried = help_texts::try_every_value(&Cli::command());
        assert!(tried > 1, "{tried}");
    }
}
