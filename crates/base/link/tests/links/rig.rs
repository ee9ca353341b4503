//! Sites in one thread, polled in turn, and what they received.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pares_link::{
    ClientId, ClientsConfig, Ended, LinkSink, Links, LinksConfig, Peer, SiteIdentity, TlsFiles, Trust, issue,
    issue_named, site_files,
};

pub(crate) const SYSTEM: &str = "pares";
/// The lower number dials.
pub(crate) const LOW: u16 = 0x0000;
pub(crate) const HIGH: u16 = 0x0100;
pub(crate) const NOWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);
/// Far beyond what anything takes; reached only by a defect.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Connected(u16),
    Disconnected(u16, String),
    Frame(u16, Vec<u8>),
    Failed(Option<u16>, String),
    ClientConnected(ClientId),
    ClientFrame(ClientId, Vec<u8>),
    ClientGone(ClientId, String),
}

/// What it received, and what the last application to say something is called.
#[derive(Default)]
pub(crate) struct Ear(pub(crate) Vec<Told>, pub(crate) Option<String>);

impl LinkSink for Ear {
    fn connected(&mut self, peer: u16) {
        self.0.push(Told::Connected(peer));
    }
    fn disconnected(&mut self, peer: u16, why: &Ended) {
        self.0.push(Told::Disconnected(peer, why.to_string()));
    }
    fn frame(&mut self, peer: u16, payload: &[u8]) {
        self.0.push(Told::Frame(peer, payload.to_vec()));
    }
    fn failed(&mut self, peer: Option<u16>, _: SocketAddr, why: &Ended) {
        self.0.push(Told::Failed(peer, why.to_string()));
    }
    fn client_connected(&mut self, client: ClientId) {
        self.0.push(Told::ClientConnected(client));
    }
    fn client_frame(&mut self, client: ClientId, caller: Option<&str>, payload: &[u8]) {
        self.1 = caller.map(str::to_owned);
        self.0.push(Told::ClientFrame(client, payload.to_vec()));
    }
    fn client_gone(&mut self, client: ClientId, why: &Ended) {
        self.0.push(Told::ClientGone(client, why.to_string()));
    }
}

pub(crate) struct Site {
    pub(crate) links: Links,
    pub(crate) ear: Ear,
}

impl Site {
    pub(crate) fn open(config: LinksConfig) -> Self {
        Self { links: Links::open(config).unwrap(), ear: Ear::default() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.links.address().unwrap()
    }

    pub(crate) fn step(&mut self) {
        self.links.poll(Some(Duration::from_millis(1)), &mut self.ear).unwrap();
    }

    pub(crate) fn step_until(&mut self, mut done: impl FnMut(&Told) -> bool) {
        self.until(|site| site.ear.0.iter().any(&mut done));
    }

    /// Is polled until it is so.
    pub(crate) fn until(&mut self, mut so: impl FnMut(&mut Self) -> bool) {
        until(|| {
            self.step();
            so(self)
        });
    }

    /// Where applications reach it.
    pub(crate) fn door(&self) -> SocketAddr {
        self.links.clients_address().unwrap().unwrap()
    }

    pub(crate) fn heard(&self, told: &Told) -> bool {
        self.ear.0.contains(told)
    }

    pub(crate) fn frames(&self) -> Vec<&[u8]> {
        let payloads = self.ear.0.iter().filter_map(|told| match told {
            Told::Frame(_, payload) => Some(&payload[..]),
            _ => None,
        });
        payloads.collect()
    }

    pub(crate) fn failed_with(&self, text: &str) -> bool {
        self.ear.0.iter().any(|told| matches!(told, Told::Failed(_, why) if why.contains(text)))
    }
}

/// Repeats `step` until it says that it is done.
pub(crate) fn until(mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < PATIENCE, "it does not happen");
    }
}

pub(crate) fn step_both(a: &mut Site, b: &mut Site, mut done: impl FnMut(&Site, &Site) -> bool) {
    until(|| {
        a.step();
        b.step();
        done(a, b)
    });
}

/// Certificates of all sites that tests use, made once.
pub(crate) fn certificates() -> &'static Path {
    static DIR: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = DIR.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        issue(dir.path(), SYSTEM, &[LOW, HIGH, HIGH + 1]).unwrap();
        issue_named(dir.path(), SYSTEM, "client-app").unwrap();
        let path = dir.path().to_owned();
        (dir, path)
    });
    path
}

pub(crate) fn identity(number: u16) -> SiteIdentity {
    SiteIdentity::load(&site_files(certificates(), number)).unwrap()
}

/// What an application shows, and believes.
pub(crate) fn shown(dir: &Path, name: &str) -> Trust {
    pares_tls::Identity::load(&TlsFiles::named(dir, name)).unwrap().trust().unwrap()
}

pub(crate) fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// The configuration of `number`, which knows one other.
pub(crate) fn config(number: u16, other: u16, address: SocketAddr, tls: bool) -> LinksConfig {
    let mut config = LinksConfig::new(number, SYSTEM, any_port(), vec![Peer { number: other, address, tls }]);
    config.identity = tls.then(|| identity(number));
    config.clients = Some(ClientsConfig { tls, ..ClientsConfig::listening(any_port()) });
    config
}

pub(crate) fn low(address: SocketAddr, tls: bool) -> LinksConfig {
    config(LOW, HIGH, address, tls)
}

pub(crate) fn high(tls: bool) -> LinksConfig {
    config(HIGH, LOW, NOWHERE, tls)
}

/// Two sites, connected.
pub(crate) fn pair(tls: bool) -> (Site, Site) {
    let mut b = Site::open(high(tls));
    let mut a = Site::open(low(b.address(), tls));
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
    (a, b)
}
