//! The sites' and the routers' processes, and who is killed next.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pares_load::{LabError, LabResult};
use pares_operator::init;
use pares_operator::sites::{self, ChildOutput, Processes};
use pares_routing::AccountsClient;
use pares_site::config::Promise;
use pares_site::{Access, SitesConfig};
use pares_types::MemberId;
use pares_wice::{Isolation, SiteId};

use super::customers::failed;

/// Sites of the one cluster.
pub(super) const SITES: u8 = 3;

/// The sites' processes, in a directory that exists. Dropping them ends them.
pub(super) struct BrokerSites {
    access: Access,
    pub(super) processes: Processes,
}

impl BrokerSites {
    pub(super) fn start(dir: &Path) -> Result<Self, LabError> {
        let args = init::Args {
            clusters: 1,
            sites: SITES,
            system: "broker".into(),
            durability: Promise::Os,
            no_tls: false,
            store: None,
            sql: false,
            witness: false,
        };
        let config = SitesConfig { isolation: Isolation::Snapshot, ..init::configuration(&args)? };
        init::write(&config, dir)?;
        let mut processes = Processes::new(dir, ChildOutput::File, &["broker", "site"])?;
        let access = Access::named(config, dir, &[init::CLIENT]).map_err(failed)?;
        sites::all(&access.config).into_iter().try_for_each(|site| processes.start(site))?;
        Ok(Self { access, processes })
    }

    /// A client of all of them.
    pub(super) fn accounts(&self) -> Result<AccountsClient, LabError> {
        let all: Vec<SiteId> = sites::all(&self.access.config);
        let client = self.access.client(AccountsClient::draw_number(), 0, &all);
        Ok(AccountsClient::new(client.map_err(failed)?))
    }
}

/// Routers: one at work, the others stand by.
const ROUTERS: usize = 2;
/// Their numbers begin here; each process has the next.
const FIRST_NUMBER: u64 = 1 << 40;

/// A router's process.
struct RouterProcess {
    number: u64,
    child: Child,
}

/// All of them. Dropping them ends them.
pub(super) struct Routers {
    program: PathBuf,
    arguments: Vec<String>,
    running: Vec<RouterProcess>,
    started: u64,
}

impl Routers {
    pub(super) fn start(dir: &Path, gateways: &[SocketAddr], member: MemberId) -> Result<Self, LabError> {
        let own = std::process::id();
        let mut arguments =
            ["broker", "router", "--member", &member.to_string(), "--with-parent", &own.to_string()]
                .map(str::to_owned)
                .to_vec();
        arguments.extend(["--dir".to_owned(), dir.display().to_string()]);
        arguments.extend(gateways.iter().flat_map(|address| ["--gateway".to_owned(), address.to_string()]));
        let program = pares_load::own_program()?;
        let mut routers = Self { program, arguments, running: Vec::new(), started: 0 };
        routers.keep()?;
        Ok(routers)
    }

    /// Starts again what has ended.
    pub(super) fn keep(&mut self) -> LabResult {
        self.running.retain_mut(|router| matches!(router.child.try_wait(), Ok(None)));
        while self.running.len() < ROUTERS {
            self.started += 1;
            let number = FIRST_NUMBER + self.started;
            let mut command = Command::new(&self.program);
            command.args(&self.arguments).args(["--number", &number.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.spawn().map_err(LabError::io("starting a router"))?;
            self.running.push(RouterProcess { number, child });
        }
        Ok(())
    }

    /// Kills the router of that number. Whether it was there.
    pub(super) fn kill(&mut self, number: u64) -> bool {
        let Some(router) = self.running.iter_mut().find(|router| router.number == number) else {
            return false;
        };
        // It may have ended by itself.
        let _ = router.child.kill();
        let _ = router.child.wait();
        true
    }
}

impl Drop for Routers {
    fn drop(&mut self) {
        for router in &mut self.running {
            // It may have ended by itself.
            let _ = router.child.kill();
            let _ = router.child.wait();
        }
    }
}

/// What is killed, in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    Router,
    Venue,
    Site,
    Gateway,
}

impl Victim {
    const ALL: [Self; 4] = [Self::Router, Self::Venue, Self::Site, Self::Gateway];

    /// The one whose turn it is after so many kills.
    pub(super) fn after(kills: usize) -> Self {
        Self::ALL[kills % Self::ALL.len()]
    }
}
