//! Systems started for the length of one command.

use std::net::SocketAddr;
use std::path::PathBuf;

use pares_node::{Layout, Supervisor, SystemConfig};
use pares_types::GatewayId;

use crate::error::CommandError;

/// A system of its own for a benchmark, a drill or a demonstration, in a directory that is removed when it ends.
pub struct ScratchSystem {
    /// The running system.
    pub supervisor: Supervisor,
    dir: PathBuf,
    keep: bool,
}

impl ScratchSystem {
    /// Starts a system with that configuration under the directory for temporary files, or in `dir`, which is
    /// then kept.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start(config: &SystemConfig, dir: Option<PathBuf>) -> Result<Self, CommandError> {
        Self::start_armed(config, dir, &[])
    }

    /// As [`ScratchSystem::start`], with these variables in every node's environment.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start_armed(
        config: &SystemConfig,
        dir: Option<PathBuf>,
        arms: &[(&'static str, String)],
    ) -> Result<Self, CommandError> {
        let keep = dir.is_some();
        let dir = dir.unwrap_or_else(|| std::env::temp_dir().join(format!("pares-{}", std::process::id())));
        let supervisor = Supervisor::start_armed(&own_program()?, Layout::new(&dir), config, arms)?;
        Ok(Self { supervisor, dir, keep })
    }

    /// Where the gateways listen.
    ///
    /// # Errors
    /// If a gateway has not said so.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, CommandError> {
        addresses(self.supervisor.layout(), self.supervisor.config())
    }
}

impl Drop for ScratchSystem {
    fn drop(&mut self) {
        // What cannot be stopped or removed now is reported by nobody: the command has its result already.
        let _ = self.supervisor.stop();
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// The path of this program, for starting nodes.
///
/// # Errors
/// If the operating system does not tell.
pub fn own_program() -> Result<PathBuf, CommandError> {
    std::env::current_exe().map_err(CommandError::io("finding the path of this program"))
}

/// Where the gateways of a running system listen.
///
/// # Errors
/// If a gateway has not said so.
pub fn addresses(layout: &Layout, config: &SystemConfig) -> Result<Vec<SocketAddr>, CommandError> {
    let address = |id: GatewayId| {
        let path = layout.gateway_address(id);
        let text = std::fs::read_to_string(&path)
            .map_err(CommandError::io(format!("reading {} (is the system up?)", path.display())))?;
        text.trim().parse().map_err(|_| CommandError::Failed(format!("{} holds no address", path.display())))
    };
    config.gateway_ids().map(address).collect()
}
