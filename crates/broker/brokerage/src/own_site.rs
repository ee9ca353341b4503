//! A site in this process: it has its turns between the front's.
//!
//! A request without an answer is repeated under its name, which the site executes once however often it is asked.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use pares_accounts::Accounts;
use pares_site::config::{Place, Promise, SiteLimits};
use pares_site::protocol::Code;
use pares_site::{Answered, Process, SiteReport, SitesConfig};
use pares_wice::{Isolation, SiteId, TransactionId};

use crate::error::{BrokerageError, failed};
use crate::site_link::SiteAnswer;

/// A request without an answer for so long is repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(2);
/// Until the site takes part.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);

/// See the [module](self).
pub(crate) struct OwnSite {
    site: Process<Accounts>,
    /// Requests without an answer, and when they were handed in last.
    open: HashMap<TransactionId, (Vec<u8>, Instant)>,
    looked: Instant,
}

impl OwnSite {
    /// A site alone in `dir`, which is empty; its items in a file there, or in the PostgreSQL database that the URL `store` names.
    pub(crate) fn open(dir: &Path, durability: Promise, store: Option<&str>) -> Result<Self, BrokerageError> {
        let config = configuration(durability, store);
        config.make_directories(dir).map_err(BrokerageError::io("making the site's directory"))?;
        let mut site = Process::open(&config, SiteId::new(0, 0), dir, Accounts).map_err(failed)?;
        wait_until_certifying(&mut site)?;
        Ok(Self { site, open: HashMap::new(), looked: Instant::now() })
    }

    /// Where the site is reached.
    pub(crate) fn address(&self) -> Result<SocketAddr, BrokerageError> {
        let address =
            self.site.clients_address().map_err(BrokerageError::io("asking for the site's port"))?;
        address.ok_or_else(|| failed("the site has no port for clients"))
    }

    pub(crate) fn report(&self) -> SiteReport {
        self.site.report()
    }

    /// Has a request executed.
    pub(crate) fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        self.open.insert(id, (request.clone(), Instant::now()));
        self.site.submit(id, request);
    }

    /// The site goes on, for `wait` at most if there is nothing to do; what it has answered.
    pub(crate) fn turn(&mut self, wait: Duration) -> Result<Vec<SiteAnswer>, BrokerageError> {
        self.site.turn(wait).map_err(failed)?;
        let mut answers = Vec::new();
        for Answered { id, answer } in self.site.answered().collect::<Vec<_>>() {
            let reply = match answer.code {
                Code::Done => Ok(answer.body),
                Code::Refused => Err(String::from_utf8_lossy(&answer.body).into_owned()),
                // Nothing was done, or nobody knows: it is repeated.
                _ => continue,
            };
            if self.open.remove(&id).is_some() {
                answers.push(SiteAnswer { id, reply });
            }
        }
        self.repeat_what_is_late();
        Ok(answers)
    }

    fn repeat_what_is_late(&mut self) {
        if self.looked.elapsed() < REPEAT_AFTER {
            return;
        }
        self.looked = Instant::now();
        for (id, (request, since)) in &mut self.open {
            if since.elapsed() >= REPEAT_AFTER {
                *since = Instant::now();
                self.site.submit(*id, request.clone());
            }
        }
    }
}

fn configuration(durability: Promise, store: Option<&str>) -> SitesConfig {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    SitesConfig {
        system: "broker".into(),
        identity: SitesConfig::draw_identity(),
        durability,
        isolation: Isolation::Snapshot,
        certifier: 0,
        begins: 0,
        tls: None,
        store: store.map(str::to_owned),
        plain: false,
        witness: None,
        limits: SiteLimits::default(),
        sites: vec![Place::new(0, 0, any, any)],
    }
}

fn wait_until_certifying(site: &mut Process<Accounts>) -> Result<(), BrokerageError> {
    let began = Instant::now();
    let mut report = site.report();
    while report.recalling || report.heard.is_empty() {
        if began.elapsed() >= BEGINS_WITHIN {
            let why = report.apart.unwrap_or_else(|| "nobody certifies".into());
            return Err(failed(format!("the site did not begin within {BEGINS_WITHIN:?}: {why}")));
        }
        site.turn(Duration::from_millis(10)).map_err(failed)?;
        report = site.report();
    }
    Ok(())
}
