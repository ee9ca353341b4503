//! A broker's router as a process (docs/protocols/broker-orders.md).
//!
//! ```text
//!   sites (accounts, orders) <--requests, reads-- [router] --orders, cancels--> gateways
//!                                                          <--the member's stream--
//! ```
//! What is decided is decided by the rules ([`pares_router`]); here are the two connections. A site that does not answer is asked again under the same name, a gateway that is gone is
//! replaced by the next one. A router that ends, however, leaves nothing behind that another would need.
//!
//! | module | what |
//! |---|---|
//! | `accounts` | questions to the sites |
//! | `gateway` | the connection to the exchange |
//! | `duty` | both, and the rules between them |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod accounts;
mod duty;
mod gateway;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

pub use accounts::AccountsClient;
use duty::{Pulse, RouterDuty};
use gateway::Gateways;
use pares_client::{Credential, KeyFile, Options, Tls};
use pares_operator::init::CLIENT;
use pares_operator::sites;
use pares_os::process::stop_on_signals;
use pares_site::{Access, SitesConfig};
use pares_types::MemberId;

/// Why a router ends.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// The sites, or what was configured of them.
    #[error("{0}")]
    Sites(String),
    /// The exchange's key or certificates.
    #[error("{0}")]
    Exchange(String),
    /// The accounts and the exchange do not agree.
    #[error(
        "the accounts refuse a report of the exchange: {0}. The router applies nothing more. Check whether another program signs on as this member, or whether these sites are older than the orders; compare the orders with the exchange's record, and start no router before they agree"
    )]
    Halted(pares_broker::Refusal),
    /// These sites' orders are of another member.
    #[error(
        "the orders of these sites belong to another member of the exchange than member {0}: start the router with that member's key"
    )]
    OtherMember(u32),
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// As whom a broker signs on at an exchange, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct SignOn {
    /// The key file of the broker's session at the exchange [default: sign on as --member]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The broker's member number, at an exchange with open sign-on
    #[arg(long, default_value_t = 1)]
    member: u32,
    /// The exchange's CA certificate (`ca.pem`), if its gateways use TLS
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
}

impl SignOn {
    /// The same arguments, for another process.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec!["--member".into(), self.member.to_string().into()];
        for (name, file) in [("--key", &self.key), ("--authority", &self.authority)] {
            arguments.extend(file.iter().flat_map(|file| [name.into(), file.clone().into()]));
        }
        arguments
    }

    /// Whether the files that it names are what they should be.
    ///
    /// # Errors
    /// Which is not, and why.
    pub fn check(&self) -> Result<(), RoutingError> {
        self.options().map(drop)
    }

    /// Whether it names a file, which only an exchange asks for.
    #[must_use]
    pub fn names_files(&self) -> bool {
        self.key.is_some() || self.authority.is_some()
    }

    fn options(&self) -> Result<(MemberId, Options), RoutingError> {
        let failed = |error: &dyn std::fmt::Display| RoutingError::Exchange(error.to_string());
        let key = self.key.as_deref().map(KeyFile::read).transpose().map_err(|error| failed(&error))?;
        let tls =
            self.authority.as_deref().map(Tls::of_exchange).transpose().map_err(|error| failed(&error))?;
        let member = MemberId(key.as_ref().map_or(self.member, |key| key.member));
        if member == MemberId(0) {
            let why = "this is an operator's key, but a broker trades as a member: `pares admin member add` makes a member's key";
            return Err(RoutingError::Exchange(why.into()));
        }
        let credential = key.as_ref().map(Credential::from);
        Ok((member, Options { credential, tls, resumes: true, ..Options::default() }))
    }
}

/// Arguments of `pares broker router`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The sites' directory, with `sites.toml` and any certificates
    #[arg(long, default_value = "broker-data")]
    dir: PathBuf,
    /// A gateway of the exchange; repeatable
    #[arg(long = "gateway", required = true, value_name = "ADDRESS")]
    gateways: Vec<SocketAddr>,
    #[command(flatten)]
    sign_on: SignOn,
    /// Its unique number as a router and client of the sites, below 2^63 [default: random]
    #[arg(long, hide = true)]
    number: Option<u64>,
    /// End when this parent process ends
    #[arg(long, hide = true)]
    with_parent: Option<u32>,
}

/// Routes orders until it is asked to stop.
///
/// # Errors
/// Why it cannot.
pub fn run(args: &Args) -> Result<(), RoutingError> {
    if let Some(parent) = args.with_parent {
        pares_operator::run::end_with(parent).map_err(|error| RoutingError::Sites(error.to_string()))?;
    }
    let stop = stop_on_signals()
        .map_err(|source| RoutingError::Io { doing: "installing a signal handler".into(), source })?;
    route(args, &stop)
}

fn route(args: &Args, stop: &AtomicBool) -> Result<(), RoutingError> {
    let sites_failed = |error: &dyn std::fmt::Display| RoutingError::Sites(error.to_string());
    let config = SitesConfig::load(&args.dir).map_err(|error| sites_failed(&error))?;
    let access = Access::named(config, &args.dir, &[CLIENT]).map_err(|error| sites_failed(&error))?;
    let all = sites::all(&access.config);
    let number = args.number.unwrap_or_else(AccountsClient::draw_number);
    let client = access.client(number, 0, &all).map_err(|error| sites_failed(&error))?;
    let (member, options) = args.sign_on.options()?;
    let gateways = Gateways::new(args.gateways.clone(), member, options);
    let mut duty = RouterDuty::new(number, AccountsClient::new(client), gateways);
    pares_text::tell!("router {number:x}: for member {member}, sites in {}", args.dir.display());
    let mut pulse = Pulse::default();
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        duty.turn(stop)?;
        pulse.tell(&duty);
    }
    Ok(())
}
