//! What came over the connections, kept until it is its turn.

use std::net::SocketAddr;

use pares_link::{ClientId, Ended, HelloError, LinkSink};
use pares_wice::SiteId;

use crate::config::site_of;
use crate::rights::Rights;
use crate::turned_away::Refused;

/// What came over the connections.
pub(crate) enum Arrived {
    Connected(SiteId),
    Frame(SiteId, Vec<u8>),
    Asked(ClientId, Rights, Vec<u8>),
    Gone(ClientId),
}

#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) arrived: Vec<Arrived>,
    /// Who was refused and why.
    pub(crate) refused: Vec<(Refused, String)>,
}

impl LinkSink for Inbox {
    fn connected(&mut self, peer: u16) {
        self.arrived.push(Arrived::Connected(site_of(peer)));
    }
    fn disconnected(&mut self, _peer: u16, _why: &Ended) {}
    fn failed(&mut self, peer: Option<u16>, address: SocketAddr, why: &Ended) {
        let known = match why {
            Ended::Hello(HelloError::Differs { from, .. }) => Some(*from),
            _ => peer,
        };
        if why.is_refusal() {
            self.refused.push((known.map(site_of).ok_or(address.ip()), why.to_string()));
        }
    }
    fn frame(&mut self, peer: u16, payload: &[u8]) {
        self.arrived.push(Arrived::Frame(site_of(peer), payload.to_vec()));
    }
    fn client_frame(&mut self, client: ClientId, caller: Option<&str>, payload: &[u8]) {
        self.arrived.push(Arrived::Asked(client, Rights::of(caller), payload.to_vec()));
    }
    fn client_gone(&mut self, client: ClientId, _why: &Ended) {
        self.arrived.push(Arrived::Gone(client));
    }
}
