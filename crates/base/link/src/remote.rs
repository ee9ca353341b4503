//! Another site, connected or not.

use std::time::{Duration, Instant};

use mio::net::TcpStream;

use crate::config::{LinksConfig, Peer};
use crate::ended::Ended;
use crate::hello::UNDERSTANDS;
use crate::tls::site_name;
use crate::wire::Wire;

pub(crate) struct Remote {
    pub(crate) peer: Peer,
    /// The name its certificate bears.
    pub(crate) name: String,
    /// Whether we dial it, or it us.
    pub(crate) dials: bool,
    /// The connection over which it is connected.
    pub(crate) slot: Option<usize>,
    /// The version that the last connection spoke.
    pub(crate) version: u16,
    /// When it is dialled; never if it dials us, or while it is connected or being dialled.
    pub(crate) dial_at: Option<Instant>,
    pause: Duration,
}

impl Remote {
    pub(crate) fn new(peer: &Peer, config: &LinksConfig, now: Instant) -> Self {
        let dials = config.number < peer.number;
        Self {
            peer: peer.clone(),
            name: site_name(peer.number, &config.system),
            dials,
            slot: None,
            version: UNDERSTANDS,
            dial_at: dials.then_some(now),
            pause: config.pause_min,
        }
    }

    /// A connection that is being made.
    pub(crate) fn dial(&self, config: &LinksConfig) -> Result<Wire, Ended> {
        let stream = TcpStream::connect(self.peer.address).map_err(Ended::Unreachable)?;
        if !self.peer.tls {
            return Ok(Wire::plain(stream));
        }
        let identity = config.identity.as_ref().expect("checked when opened");
        Ok(Wire::tls(stream, identity.dial(&self.name)?))
    }

    pub(crate) fn dial_later(&mut self, now: Instant, pause_max: Duration) {
        self.dial_at = Some(now + self.pause);
        self.pause = (2 * self.pause).min(pause_max);
    }

    pub(crate) fn on_connected(&mut self, slot: usize, version: u16, pause_min: Duration) {
        (self.slot, self.version, self.pause) = (Some(slot), version, pause_min);
    }
}
