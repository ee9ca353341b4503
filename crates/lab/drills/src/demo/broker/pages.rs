//! A front with its pages, so that somebody may trade on the exchange by hand among all that happens; with a quote desk, and a stand-in for the quote server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pares_brokerage::Behaviour;
use pares_brokerage::quote_server::QuoteServer;
use pares_load::{LabError, LabResult};
use pares_operator::init::FreePorts;
use pares_site::SitesConfig;

use super::customers::failed;

/// What dies is not started again more often than this.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// A desk or a front.
struct Part {
    arguments: Vec<String>,
    /// Its process, and when that was started.
    process: Option<(Child, Instant)>,
}

/// The processes of both. Dropping them ends them.
pub(super) struct Pages {
    program: PathBuf,
    address: SocketAddr,
    running: [Part; 2],
    _quotes: QuoteServer,
}

impl Pages {
    pub(super) fn start(sites: &Path, seed: u64) -> Result<Self, LabError> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let behaviour = Behaviour { seed, instant: true, bad_per_mille: 0 };
        let quotes = QuoteServer::start(any, behaviour.settings())
            .map_err(LabError::io("starting the simulated quote server"))?;
        // The sites may not listen yet.
        let mut ports = FreePorts::beside(&SitesConfig::load(sites).map_err(failed)?);
        let (desk, loaders, address) = (ports.take()?, ports.take()?, ports.take()?);
        let desk_is = format!("desk --listen {desk} --quote-server {}", quotes.address());
        let front_is = format!("front --loaders {loaders} --desk {desk} --http {address} --dir");
        let with_parent = ["--with-parent".to_owned(), std::process::id().to_string()];
        let part = |words: &str, more: &[String]| {
            let words = format!("broker {words}");
            let words = words.split(' ').map(str::to_owned);
            let arguments = words.chain(more.iter().chain(&with_parent).cloned()).collect();
            Part { arguments, process: None }
        };
        let folder = |folder: &Path| folder.display().to_string();
        let front = [folder(sites), "--logs".to_owned(), folder(&sites.join("logs"))];
        let running = [part(&desk_is, &[]), part(&front_is, &front)];
        let mut pages = Self { program: pares_load::own_program()?, address, running, _quotes: quotes };
        pages.keep()?;
        Ok(pages)
    }

    /// Where people reach them.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts again what has ended.
    pub(super) fn keep(&mut self) -> LabResult {
        for Part { arguments, process } in &mut self.running {
            if let Some((child, started)) = process
                && (started.elapsed() < LIFE_MIN || matches!(child.try_wait(), Ok(None)))
            {
                continue;
            }
            let mut command = Command::new(&self.program);
            command.args(&*arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let started = command.spawn().map_err(LabError::io("starting a front"))?;
            *process = Some((started, Instant::now()));
        }
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for part in &mut self.running {
            if let Some((child, _)) = &mut part.process {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
