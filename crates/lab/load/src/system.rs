//! Systems started for the length of one command.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, Options, Tls};
use pares_node::supervisor::Death;
use pares_node::{Layout, Supervisor, SystemConfig, keys};
use pares_types::{MemberId, RecorderId};

use crate::error::LabError;
use crate::small_disk::SmallDisk;

/// How long a node may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks after the nodes.
const LOOK: Duration = Duration::from_millis(5);

/// A system of its own for a benchmark, a drill or a demonstration, in a directory that is removed when it ends.
pub struct ScratchSystem {
    /// The running system.
    pub supervisor: Supervisor,
    small_disk: Option<SmallDisk>,
    dir: PathBuf,
    keep: bool,
}

impl ScratchSystem {
    /// Starts a system with that configuration under the directory for temporary files, or in `dir`, which is
    /// then kept.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start(config: &SystemConfig, dir: Option<PathBuf>) -> Result<Self, LabError> {
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
    ) -> Result<Self, LabError> {
        Self::start_with(config, dir, arms, |_| Ok(None))
    }

    /// As [`ScratchSystem::start`], with a recorder whose log lies on a disk of that many MiB.
    ///
    /// # Errors
    /// The same, or [`LabError::Skipped`] if there can be no such disk here.
    pub fn start_on_small_disk(
        config: &SystemConfig,
        dir: Option<PathBuf>,
        recorder: RecorderId,
        mib: u64,
    ) -> Result<Self, LabError> {
        Self::start_with(config, dir, &[], |layout| {
            SmallDisk::mount(&layout.recorder_log(recorder), mib).map(Some)
        })
    }

    fn start_with(
        config: &SystemConfig,
        dir: Option<PathBuf>,
        arms: &[(&'static str, String)],
        mount: impl FnOnce(&Layout) -> Result<Option<SmallDisk>, LabError>,
    ) -> Result<Self, LabError> {
        let keep = dir.is_some();
        let dir = dir.unwrap_or_else(|| std::env::temp_dir().join(format!("pares-{}", std::process::id())));
        let small_disk = mount(&Layout::new(&dir)).inspect_err(|_| remove(&dir, keep))?;
        let supervisor = Supervisor::start_armed(&own_program()?, Layout::new(&dir), config, arms)?;
        let mut system = Self { supervisor, small_disk, dir, keep };
        system.wait_until_whole()?;
        Ok(system)
    }

    /// A system trades before all of it is up; here nothing begins before.
    fn wait_until_whole(&mut self) -> Result<(), LabError> {
        let begun = Instant::now();
        let mut last = None;
        loop {
            let missing = self.supervisor.missing();
            let Some(node) = missing.first() else { return Ok(()) };
            last = self.supervisor.tick().pop().or(last);
            if begun.elapsed() > PATIENCE {
                let why =
                    last.map(|death| format!(": {} ({})", death.how, death.complaint.unwrap_or_default()));
                return Err(LabError::Failed(format!("{node} does not come up{}", why.unwrap_or_default())));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The small disk it was started on.
    ///
    /// # Errors
    /// If it was started without one.
    pub fn small_disk(&self) -> Result<&SmallDisk, LabError> {
        let none = || LabError::Usage("this system has no disk of its own".into());
        self.small_disk.as_ref().ok_or_else(none)
    }

    /// Lets time pass while looking after the nodes; `look` receives the nodes that have died, every few milliseconds.
    ///
    /// # Errors
    /// Those of `look`.
    pub fn pass(
        &mut self,
        stretch: Duration,
        mut look: impl FnMut(&[Death]) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let begun = Instant::now();
        loop {
            look(&self.supervisor.tick())?;
            let left = stretch.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// A connection of that member to the first gateway that lets it in, beginning with the one at that place.
    ///
    /// # Errors
    /// Why the last one did not.
    pub fn connect(&self, member: MemberId, first: usize, options: &Options) -> Result<Client, ClientError> {
        let mut addresses = self.addresses().unwrap_or_default();
        let first = first % addresses.len().max(1);
        addresses.rotate_left(first);
        let mut last = ClientError::Closed;
        for address in addresses {
            match Client::connect_with(address, member, options.clone()) {
                Ok(client) => return Ok(client),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where the gateways listen.
    ///
    /// # Errors
    /// If a gateway has not said so.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, LabError> {
        addresses(self.supervisor.layout(), self.supervisor.config())
    }

    /// Where the gateways listen for FIX.
    ///
    /// # Errors
    /// If a gateway has not said so.
    pub fn fix_addresses(&self) -> Result<Vec<SocketAddr>, LabError> {
        let layout = self.supervisor.layout();
        self.supervisor.config().gateway_ids().map(|id| read_address(&layout.fix_address(id))).collect()
    }

    /// Where the gateways listen for OUCH.
    ///
    /// # Errors
    /// If a gateway has not said so.
    pub fn ouch_addresses(&self) -> Result<Vec<SocketAddr>, LabError> {
        let layout = self.supervisor.layout();
        self.supervisor.config().gateway_ids().map(|id| read_address(&layout.ouch_address(id))).collect()
    }

    /// Whom to believe to be a gateway; none if their ports are not TLS.
    ///
    /// # Errors
    /// If the operator's certificate cannot be used.
    pub fn tls(&self) -> Result<Option<Tls>, LabError> {
        let trust = keys::operator(self.supervisor.layout(), self.supervisor.config())?;
        Ok(trust.map(Tls::believing))
    }
}

impl Drop for ScratchSystem {
    fn drop(&mut self) {
        // What cannot be stopped or removed now is reported by nobody: the command has its result already.
        let _ = self.supervisor.stop();
        // What is mounted in a directory keeps it from being removed.
        self.small_disk = None;
        remove(&self.dir, self.keep);
    }
}

fn remove(dir: &Path, keep: bool) {
    if !keep {
        let _ = std::fs::remove_dir_all(dir);
    }
}

/// The path of this program, for starting nodes.
///
/// # Errors
/// If the operating system does not tell.
pub fn own_program() -> Result<PathBuf, LabError> {
    std::env::current_exe().map_err(LabError::io("finding the path of this program"))
}

/// Where the gateways of a running system listen.
///
/// # Errors
/// If a gateway has not said so.
pub fn addresses(layout: &Layout, config: &SystemConfig) -> Result<Vec<SocketAddr>, LabError> {
    config.gateway_ids().map(|id| read_address(&layout.gateway_address(id))).collect()
}

fn read_address(path: &Path) -> Result<SocketAddr, LabError> {
    let text = std::fs::read_to_string(path)
        .map_err(LabError::io(format!("reading {} (is the system up?)", path.display())))?;
    text.trim().parse().map_err(|_| LabError::Failed(format!("{} holds no address", path.display())))
}
