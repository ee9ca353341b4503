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
    /// Its end of the connection is gone.
    Lost(SiteId),
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

/// Why a connection was refused, with sites named as people name them.
fn told(why: &Ended) -> String {
    let name = |number: u16| {
        let site = site_of(number);
        format!("{}.{}", site.cluster.0, site.number)
    };
    match why {
        Ended::Hello(HelloError::Unnamed { from }) => format!(
            "it is {0}, which is not in this site's sites.toml (any more): stop it, or give all sites the same sites.toml",
            name(*from)
        ),
        Ended::Hello(HelloError::Numbers { from, to }) => format!(
            "it is {} and wants to reach {}, which is not this site: check the addresses in both sites.toml",
            name(*from),
            name(*to)
        ),
        Ended::PlainRefused(site) => {
            format!("site {} must use TLS but connected without it: refused", name(*site))
        }
        why => why.to_string(),
    }
}

impl LinkSink for Inbox {
    fn connected(&mut self, peer: u16) {
        self.arrived.push(Arrived::Connected(site_of(peer)));
    }
    fn disconnected(&mut self, peer: u16, why: &Ended) {
        // What this site has ended says nothing of the other.
        if matches!(why, Ended::Gone | Ended::Broken(_)) {
            self.arrived.push(Arrived::Lost(site_of(peer)));
        }
    }
    fn failed(&mut self, peer: Option<u16>, address: SocketAddr, why: &Ended) {
        let known = match why {
            Ended::Hello(HelloError::Differs { from, .. }) => Some(*from),
            _ => peer,
        };
        if why.is_refusal() {
            self.refused.push((known.map(site_of).ok_or(address.ip()), told(why)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_is_named_as_people_name_sites() {
        let told = |why: HelloError| told(&why.into());
        assert!(
            told(HelloError::Unnamed { from: 4 }).contains("0.4, which is not in this site's sites.toml")
        );
        assert!(told(HelloError::Numbers { from: 4, to: 513 }).contains("it is 0.4 and wants to reach 2.1"));
    }
}
