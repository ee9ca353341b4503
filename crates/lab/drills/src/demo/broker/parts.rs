//! The broker's processes, as `pares broker up --exchange` runs them, and who is killed next.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use pares_brokerage::quote_server::QuoteServer;
use pares_brokerage::{Behaviour, BrokerPart, Children, HowMany, ROUTERS, ToldBesides};
use pares_load::{LabError, LabResult, ScratchDirectory};
use pares_operator::init;
use pares_operator::sites::{self, ChildOutput};
use pares_routing::AccountsClient;
use pares_site::config::Promise;
use pares_site::{Access, SitesConfig};
use pares_types::MemberId;
use pares_wice::SiteId;

use super::customers::failed;

/// Sites of the one cluster.
pub(super) const SITES: u8 = 3;
/// A site that was killed is down for so long.
const SITE_DOWN: Duration = Duration::from_secs(1);

/// Three sites, two routers, and a front with its pages and a desk, so that a person may trade by hand among all that happens. Dropping it ends them.
pub(super) struct Broker {
    children: Children,
    config: SitesConfig,
    /// A site that was killed, and when it is started again.
    down: Option<(BrokerPart, Instant)>,
    _quotes: QuoteServer,
    dir: ScratchDirectory,
}

impl Broker {
    pub(super) fn start(gateways: &[SocketAddr], member: MemberId, seed: u64) -> Result<Self, LabError> {
        let dir = ScratchDirectory::create(None)?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let behaviour = Behaviour { seed, instant: true, bad_per_mille: 0 };
        let quotes = QuoteServer::start(any, behaviour.settings())
            .map_err(LabError::io("starting the simulated quote server"))?;
        // Bound until all other ports are known: so that none of them is the pages'.
        let pages = TcpListener::bind(any).map_err(LabError::io("looking for a free port"))?;
        let http = pages.local_addr().map_err(LabError::io("looking for a free port"))?;
        let how_many = HowMany { sites: Some((1, SITES)), fronts: Some(1), desks: Some(1) };
        let plan = how_many.plan(Promise::Os, None, quotes.address(), Some(http));
        let (config, places) = plan.settle(dir.path()).map_err(failed)?;
        drop(pages);
        let gateways = gateways.iter().flat_map(|address| ["--gateway".into(), address.to_string().into()]);
        let routers = ["--member".into(), member.to_string().into()].into_iter().chain(gateways).collect();
        let told = ToldBesides { routers, ..ToldBesides::default() };
        let children = Children::start(dir.path(), ChildOutput::File, &config, places, told);
        Ok(Self { children: children.map_err(failed)?, config, down: None, _quotes: quotes, dir })
    }

    /// A client of all sites.
    pub(super) fn accounts(&self) -> Result<AccountsClient, LabError> {
        let access = Access::named(self.config.clone(), self.dir.path(), &[init::CLIENT]).map_err(failed)?;
        let client = access.client(AccountsClient::draw_number(), 0, &sites::all(&self.config));
        Ok(AccountsClient::new(client.map_err(failed)?))
    }

    /// Where people reach the pages.
    pub(super) fn pages(&self) -> SocketAddr {
        self.children.places().pages[0]
    }

    /// Starts again what has ended, when its time has come.
    pub(super) fn keep(&mut self) -> LabResult {
        if let Some((site, _)) = self.down.take_if(|(_, back)| Instant::now() >= *back) {
            self.children.begin(site).map_err(failed)?;
        }
        self.children.revive().map(drop).map_err(failed)
    }

    /// Whether all sites that were killed have been started again.
    pub(super) fn is_whole(&self) -> bool {
        self.down.is_none()
    }

    /// Kills a site; it is back a moment later.
    pub(super) fn kill_site(&mut self, site: SiteId) {
        let site = BrokerPart::Site(site);
        self.children.kill(&[site]);
        self.down = Some((site, Instant::now() + SITE_DOWN));
    }

    /// Kills the router of that number, and starts the next. Whether it was there.
    pub(super) fn kill_router(&mut self, number: u64) -> Result<bool, LabError> {
        let is_it = |router: &usize| {
            let log = std::fs::read_to_string(self.dir.path().join(format!("router-{router}.log")));
            log.is_ok_and(|log| number_said(&log) == Some(number))
        };
        let Some(router) = (0..ROUTERS).find(is_it).map(BrokerPart::Router) else { return Ok(false) };
        self.children.kill(&[router]);
        self.children.begin(router).map_err(failed)?;
        Ok(true)
    }

    /// Nobody trades by hand any more.
    pub(super) fn close_pages(&mut self) {
        self.children.kill(&[BrokerPart::Front(0), BrokerPart::Desk(0)]);
    }
}

/// The number that a router has drawn, by its log. Each says it first, and one that is started again writes behind the one before.
fn number_said(log: &str) -> Option<u64> {
    let said = |line: &str| u64::from_str_radix(line.strip_prefix("router ")?.split_once(": ")?.0, 16).ok();
    log.lines().rev().find_map(said)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn router_that_was_started_again_has_its_latest_number() {
        let log =
            "router 1f: for member 7, sites in d\ntrades\nrouter 2a: for member 7, sites in d\nrouter: x\n";
        assert_eq!(number_said(log), Some(0x2a));
        assert_eq!(number_said("it has not said it\n"), None);
    }
}
