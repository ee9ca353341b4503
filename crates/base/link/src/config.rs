//! What a site knows of the others before it talks to them.

use std::net::SocketAddr;
use std::time::Duration;

use crate::frame;
use crate::hello::{self, Agreed, FIELDS_MAX, Hello, SPEAKS, SYSTEM_MAX, UNDERSTANDS};
use crate::tls::SiteIdentity;

/// Another site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number, unique in the system; the upper byte is its cluster, the lower its place in it.
    pub number: u16,
    /// Where it listens. Looked at only if its number is higher than ours, since then we dial.
    pub address: SocketAddr,
    /// Whether the connection is to be TLS. Both ends must be told the same.
    pub tls: bool,
}

/// Where and how applications are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientsConfig {
    /// Where to listen; port 0 for any.
    pub listen: SocketAddr,
    /// Whether they have to use TLS, and to show a certificate of the system's authority.
    pub tls: bool,
    /// Connections at a time; more are closed at once.
    pub count_max: usize,
    /// Payload of a frame from one, bytes.
    pub frame_max: usize,
    /// Payload of a frame to one, bytes.
    pub reply_max: usize,
    /// Bytes that may wait for one that does not read, before it is closed.
    pub backlog_max: usize,
    /// Bytes that all of them together may have half sent or not read. Beyond, one that has more than 64 KiB of it is closed when it sends or is sent more.
    pub held_max: usize,
}

impl ClientsConfig {
    /// The usual bounds: 1,024 connections, frames of 1 MiB from them and of 6 MiB to them, 8 MiB unread, 128 MiB in all.
    #[must_use]
    pub fn listening(listen: SocketAddr) -> Self {
        Self {
            listen,
            tls: false,
            count_max: 1_024,
            frame_max: 1 << 20,
            reply_max: 6 << 20,
            backlog_max: 8 << 20,
            held_max: 128 << 20,
        }
    }
}

/// A site's connections.
#[derive(Clone, Debug)]
pub struct LinksConfig {
    /// This site's number.
    pub number: u16,
    /// The version that it speaks: what this build does, or the one before.
    pub speaks: u16,
    /// The system it belongs to: 1 to 63 letters, digits, dots and dashes.
    pub system: String,
    /// What all sites must have alike, in one order: at most 24 settings. A site that has one otherwise is refused.
    pub agreed: Vec<Agreed>,
    /// Where other sites reach it; port 0 for any.
    pub listen: SocketAddr,
    /// All other sites it talks to.
    pub peers: Vec<Peer>,
    /// Its certificate; needed as soon as anything is TLS.
    pub identity: Option<SiteIdentity>,
    /// Applications, if it serves any.
    pub clients: Option<ClientsConfig>,
    /// Payload of a frame between sites, bytes. All sites must be told the same.
    pub frame_max: usize,
    /// Bytes that may wait for a site that does not read; beyond it the connection ends and begins again.
    pub backlog_max: usize,
    /// Connecting, TLS and hello together must be done within this.
    pub hello_max: Duration,
    /// The first pause before a site is dialled again; doubled each time it fails.
    pub pause_min: Duration,
    /// The longest pause before a site is dialled again.
    pub pause_max: Duration,
}

/// Whether a system may have that name.
///
/// # Errors
/// Why not.
pub fn check_system(name: &str) -> Result<(), String> {
    let proper = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    match (1..=SYSTEM_MAX).contains(&name.len()) && name.chars().all(proper) {
        true => Ok(()),
        false => Err(format!(
            "the system's name {name:?} must be 1 to {SYSTEM_MAX} letters, digits, dots and dashes"
        )),
    }
}

impl LinksConfig {
    /// With the usual bounds: frames of 8 MiB and a bit, 64 MiB waiting, 5 s for a hello, pauses of 50 ms to 2 s.
    #[must_use]
    pub fn new(number: u16, system: &str, listen: SocketAddr, peers: Vec<Peer>) -> Self {
        Self {
            number,
            speaks: SPEAKS,
            system: system.to_owned(),
            agreed: Vec::new(),
            listen,
            peers,
            identity: None,
            clients: None,
            frame_max: FRAME_MAX,
            backlog_max: 64 << 20,
            hello_max: Duration::from_secs(5),
            pause_min: Duration::from_millis(50),
            pause_max: Duration::from_secs(2),
        }
    }

    pub(crate) fn hello_to(&self, peer: u16) -> Vec<u8> {
        let digests = hello::digests(&self.agreed);
        let (speaks, understands) = (self.speaks, UNDERSTANDS);
        let (from, to, system) = (self.number, peer, self.system.as_str());
        Hello { speaks, understands, from, to, system, digests: &digests }.encode()
    }

    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_system(&self.system)?;
        if !(UNDERSTANDS..=SPEAKS).contains(&self.speaks) {
            return Err(format!("this build speaks version {SPEAKS}, or {UNDERSTANDS}"));
        }
        if self.agreed.len() > FIELDS_MAX {
            return Err(format!("at most {FIELDS_MAX} settings can be agreed on"));
        }
        let mut numbers: Vec<u16> = self.peers.iter().map(|peer| peer.number).collect();
        numbers.push(self.number);
        numbers.sort_unstable();
        if let Some(twice) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two sites have the number {}", twice[0]));
        }
        if self.frame_max + frame::HEAD_BYTES > self.backlog_max {
            return Err("a frame of frame_max does not fit backlog_max".to_owned());
        }
        if u32::try_from(self.frame_max).is_err() {
            return Err("frame_max is beyond what a frame's head can say".to_owned());
        }
        let tls = self.peers.iter().any(|peer| peer.tls) || self.clients.as_ref().is_some_and(|c| c.tls);
        if tls && self.identity.is_none() {
            return Err("TLS is required, but this site has no certificate".to_owned());
        }
        Ok(())
    }
}

/// The usual longest payload between sites, bytes: a write set of 8 MiB and what is written around it.
pub const FRAME_MAX: usize = (8 << 20) + (64 << 10);
