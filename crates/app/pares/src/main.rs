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
mod laboratory;
mod standing;
mod utc;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pares_text::{self as text, progress};

/// Sites make and drop a few dozen small things for each transaction; with the system's allocator a quarter of their time goes there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A stock exchange that keeps trading when any of its processes dies, without failover.
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
    /// Show the state of a system: nodes, shards, logs
    Stat(commands::stat::Args),
    /// Show phase, rules and top of the book of every instrument
    Instruments(commands::instruments::Args),
    /// Look up orders and trades in the record
    History(commands::history::Args),
    /// Operate the exchange: phases, rules, instruments, blocks, busts
    Admin(commands::admin::Args),
    /// Issue a certificate to a member, for gateways that require one
    Certificate(commands::certificate::Args),
    /// Report a business day, from every recorder
    Day(commands::day::Args),
    /// Market data: watch books, capture packets, write the tape of a day
    Feed(commands::feed::Args),
    /// Test the FIX session layer: an acceptor that echoes orders
    #[command(subcommand)]
    Fix(commands::fix::FixCommand),
    /// Serve an exchange over HTTP and WebSocket
    Web(commands::web::Args),
    /// Run a member's trading system, or use it as a trader
    #[command(subcommand)]
    Member(commands::member::MemberCommand),
    /// Check a configuration, and list what to consider before production
    CheckConfig(commands::check_config::Args),
    /// Copy closed business days to an archive, or restore them
    Archive(commands::archive::Args),
    /// Back up a running system
    Backup(commands::archive::BackupArgs),
    /// Restore a system from a backup
    Restore(commands::archive::RestoreArgs),
    /// Inspect recorded gateway connections: search, export, measure, compare with the record
    Tap(commands::tap::Args),
    /// Inspect or verify a log
    #[command(subcommand)]
    Journal(commands::journal::JournalCommand),
    /// Run and operate a database replicated between clusters of sites
    #[cfg(feature = "sites")]
    Site(pares_operator::Args),
    /// Day trading: run a broker with pages and HTTP, run a workload, verify its log, generate workloads, simulate the quote server
    #[cfg(feature = "sites")]
    Broker(pares_brokerage::Args),
    /// Keep copies of the logs at another host
    #[command(subcommand)]
    Mirror(commands::mirror::MirrorCommand),
    /// A system over several hosts: make their directories
    #[command(subcommand)]
    Hosts(commands::hosts::HostsCommand),
    /// Run one node of a system in this process (`up` starts these)
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
            pares_text::aside!("pares: {}", pares_text::shown(&error.to_string(), pares_text::ERROR_MAX));
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
        Command::Fix(command) => commands::fix::run(&command),
        Command::Web(args) => commands::web::run(&args),
        Command::Member(command) => commands::member::run(&command),
        Command::CheckConfig(args) => commands::check_config::run(&args),
        Command::Archive(args) => commands::archive::run(&args),
        Command::Backup(args) => commands::archive::backup(&args),
        Command::Restore(args) => commands::archive::restore_system(&args),
        Command::Tap(args) => commands::tap::run(&args),
        Command::Journal(command) => commands::journal::run(&command),
        #[cfg(feature = "sites")]
        Command::Site(args) => pares_operator::run(&args).map_err(Into::into),
        #[cfg(feature = "sites")]
        Command::Broker(args) => pares_brokerage::run(&args).map_err(Into::into),
        Command::Mirror(command) => commands::mirror::run(&command),
        Command::Hosts(command) => commands::hosts::run(&command),
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
        let tried = pares_testbed::help_texts::try_every_value(&Cli::command());
        assert!(tried > 1, "{tried}");
    }

    #[cfg(feature = "sites")] // documents tell of all that there is
    #[test]
    fn every_documented_command_line_parses() {
        let is_ours =
            |program: &str, first: &str| program == "pares" && !laboratory::COMMANDS.contains(&first);
        let tried = pares_testbed::documented::try_every_line(&Cli::command(), is_ours);
        assert!(tried.wrong.is_empty(), "{}", tried.wrong.join("\n"));
        assert!(tried.count > 100, "{}", tried.count);
    }
}
