//! `pares member`: a member's trading system.

mod say;
mod server;
mod stat;
mod terminal;
mod text;
mod up;
mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pares_desk::item::TraderId;
use pares_member::{TraderClient, TraderOptions};
use pares_node::Layout;

use crate::error::{CommandError, CommandResult};

/// How long servers that were killed may take to be back.
const RESTART_MAX: Duration = Duration::from_secs(4);

/// The commands of `pares member`.
#[derive(clap::Subcommand)]
pub enum MemberCommand {
    /// Start a member's servers and keep them running until Ctrl-C
    Up(up::Args),
    /// Follow the member's stream: messages, quotes, notes, and the member's orders and fills
    Watch(watch::Args),
    /// Send a message to one trader, or to all
    Say(say::Args),
    /// Open a trader's screen: book, orders, trades, messages
    Terminal(terminal::Args),
    /// Show the state of the servers
    Stat(stat::Args),
    /// Run one server in this process (`up` starts these)
    Server(server::Args),
}

/// Runs one of them.
///
/// # Errors
/// As the command says.
pub fn run(command: &MemberCommand) -> CommandResult {
    match command {
        MemberCommand::Up(args) => up::run(args),
        MemberCommand::Watch(args) => watch::run(args),
        MemberCommand::Say(args) => say::run(args),
        MemberCommand::Terminal(args) => terminal::run(args),
        MemberCommand::Stat(args) => stat::run(args),
        MemberCommand::Server(args) => server::run(args),
    }
}

/// Where a member's servers are.
#[derive(clap::Args)]
struct Servers {
    /// The directory of the member's system, on this host
    #[arg(long, default_value = "member-data")]
    dir: PathBuf,
    /// A server's address, in place of the directory; repeatable
    #[arg(long)]
    server: Vec<SocketAddr>,
}

impl Servers {
    fn addresses(&self) -> Result<Vec<SocketAddr>, CommandError> {
        if !self.server.is_empty() {
            return Ok(self.server.clone());
        }
        let layout = Layout::new(&self.dir);
        let file = pares_member::process::config_file(&layout);
        if !file.exists() {
            let dir = self.dir.display();
            return Err(CommandError::Usage(format!(
                "there is no member's system in {dir}: start one with `pares member up --dir {dir}`, or name its directory with --dir"
            )));
        }
        let config = pares_member::MemberConfig::load(&file)?;
        let known =
            (0..config.count()).filter_map(|server| pares_member::world::address(&layout, server).ok());
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return Err(not_up(&self.dir));
        }
        Ok(known)
    }

    /// Signs a trader on. Servers that are all being restarted are waited for.
    fn connect(&self, trader: u32, options: TraderOptions) -> Result<TraderClient, CommandError> {
        let begun = Instant::now();
        loop {
            match TraderClient::connect_with(&self.addresses()?, TraderId(trader), options) {
                Err(_) if begun.elapsed() < RESTART_MAX => std::thread::sleep(Duration::from_millis(100)),
                connected => {
                    let doing = "connecting to the member's servers (is `pares member up` running?)";
                    return connected.map_err(CommandError::io(doing));
                }
            }
        }
    }
}

fn not_up(dir: &Path) -> CommandError {
    let error = std::io::Error::other(format!("no server of {} has published its address", dir.display()));
    CommandError::io("looking for the member's servers")(error)
}
