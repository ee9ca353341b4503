//! The sites' and the routers' processes, and who is killed next.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
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

/// Routers: one is active, the others stand by.
const ROUTERS: usize = 2;
/// Their numbers begin here; each process has the next.
const FIRST_NUMBER: u64 = 1 << 40;

/// A process of this program that says nothing. Dropping it kills it.
pub(super) struct Part(Child);

impl Part {
    pub(super) fn start(what: &str, arguments: &[String]) -> Result<Self, LabError> {
        let mut command = Command::new(pares_load::own_program()?);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self).map_err(LabError::io(format!("starting a {what}")))
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The routers' processes, by number. Dropping them ends them.
pub(super) struct Routers {
    arguments: Vec<String>,
    running: BTreeMap<u64, Part>,
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
        let mut routers = Self { arguments, running: BTreeMap::new(), started: 0 };
        routers.keep()?;
        Ok(routers)
    }

    /// Starts again what has ended.
    pub(super) fn keep(&mut self) -> LabResult {
        self.running.retain(|_, router| router.is_running());
        while self.running.len() < ROUTERS {
            self.started += 1;
            let number = FIRST_NUMBER + self.started;
            let own = ["--number".to_owned(), number.to_string()];
            self.running.insert(number, Part::start("router", &[&self.arguments[..], &own].concat())?);
        }
        Ok(())
    }

    /// Kills the router of that number. Whether it was there.
    pub(super) fn kill(&mut self, number: u64) -> bool {
        self.running.remove(&number).is_some()
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
