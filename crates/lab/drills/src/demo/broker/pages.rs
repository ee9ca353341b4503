//! A front with its pages, so that a person may trade on the exchange by hand among all that happens; with a quote desk, and a stand-in for the quote server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use pares_brokerage::Behaviour;
use pares_brokerage::quote_server::QuoteServer;
use pares_load::{LabError, LabResult};
use pares_operator::init::FreePorts;
use pares_site::SitesConfig;

use super::customers::failed;
use super::parts::Part;

/// What dies is not started again more often than this.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// A desk or a front: its arguments; its process, and when that was started.
type Kept = (Vec<String>, Option<(Part, Instant)>);

/// The processes of both. Dropping them ends them.
pub(super) struct Pages {
    address: SocketAddr,
    running: [Kept; 2],
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
            (words.chain(more.iter().chain(&with_parent).cloned()).collect(), None)
        };
        let folder = |folder: &Path| folder.display().to_string();
        let front = [folder(sites), "--logs".to_owned(), folder(&sites.join("logs"))];
        let running = [part(&desk_is, &[]), part(&front_is, &front)];
        let mut pages = Self { address, running, _quotes: quotes };
        pages.keep()?;
        Ok(pages)
    }

    /// Where people reach them.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts again what has ended.
    pub(super) fn keep(&mut self) -> LabResult {
        for (arguments, process) in &mut self.running {
            if let Some((part, started)) = process
                && (started.elapsed() < LIFE_MIN || part.is_running())
            {
                continue;
            }
            *process = Some((Part::start("front", arguments)?, Instant::now()));
        }
        Ok(())
    }
}
