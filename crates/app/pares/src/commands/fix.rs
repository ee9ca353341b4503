//! `pares fix`: the FIX session layer, to be tried by other engines.

use std::net::SocketAddr;

use pares_acceptor::acceptor::EchoAcceptor;
use pares_acceptor::sockets::AcceptorSockets;

use crate::error::{CommandError, CommandResult};

/// The commands of `pares fix`.
#[derive(clap::Subcommand)]
pub enum FixCommand {
    /// Accept sessions TW42 (FIX 4.2) and TW44 (FIX 4.4) as ISLD, and echo orders
    ///
    /// It runs the shipped session layer, for acceptance tests of FIX engines; nothing reaches an exchange.
    AtEcho {
        /// Where to listen; port 0 takes a free one
        #[arg(long, default_value = "127.0.0.1:9880")]
        listen: SocketAddr,
    },
}

/// Serves until the program is ended.
///
/// # Errors
/// If the address cannot be had.
pub fn run(command: &FixCommand) -> CommandResult {
    let FixCommand::AtEcho { listen } = *command;
    let served = AcceptorSockets::listen(listen, EchoAcceptor::default()).and_then(|mut sockets| {
        pares_text::say!("listening on {}", sockets.address()?);
        sockets.run()
    });
    served.map_err(CommandError::io(format!("serve FIX on {listen}")))
}
