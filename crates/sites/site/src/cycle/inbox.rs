//! What goes in and out between the parts, kept until it is its turn.

use std::net::{IpAddr, SocketAddr};

use pares_cluster::Sink;
use pares_link::{ClientId, Ended, HelloError, LinkSink};
use pares_wice::{Effects, LogEntry, Message, Notice, Outcome, SiteId, TransactionId};

use crate::config::site_of;
use crate::rights::Rights;

/// What came over the connections.
pub(super) enum Arrived {
    Connected(SiteId),
    Frame(SiteId, Vec<u8>),
    Asked(ClientId, Rights, Vec<u8>),
}

#[derive(Default)]
pub(super) struct Inbox {
    pub(super) arrived: Vec<Arrived>,
    /// Who was refused and why: a site, or a stranger at that address.
    pub(super) refused: Vec<(Result<SiteId, IpAddr>, String)>,
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
}

/// What the cluster's log says, in its order.
pub(super) enum LogNews {
    Committed(u64, Vec<u8>),
    Role(pares_cluster::Role),
}

#[derive(Default)]
pub(super) struct LogEvents {
    pub(super) messages: Vec<(u8, Vec<u8>)>,
    pub(super) news: Vec<LogNews>,
    /// A member lacks what is let go of, up to this place.
    pub(super) state_wanted: Option<u64>,
    /// A state in place of all before this place.
    pub(super) state: Option<(u64, Vec<u8>)>,
}

impl Sink for LogEvents {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        self.messages.push((to, message));
    }
    fn committed(&mut self, index: u64, _term: u64, payload: &[u8]) {
        self.news.push(LogNews::Committed(index, payload.to_vec()));
    }
    fn role(&mut self, role: pares_cluster::Role) {
        self.news.push(LogNews::Role(role));
    }
    fn snapshot_wanted(&mut self, at_least: u64) {
        self.state_wanted = Some(at_least);
    }
    fn restore(&mut self, index: u64, state: &[u8]) {
        self.news.clear();
        self.state = Some((index, state.to_vec()));
    }
}

/// What the rules want done.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) proposals: Vec<LogEntry>,
    pub(super) messages: Vec<(SiteId, Message)>,
    pub(super) outcomes: Vec<(TransactionId, Outcome)>,
    pub(super) notices: Vec<Notice>,
}

impl Effects for Wanted {
    fn propose(&mut self, entry: LogEntry) {
        self.proposals.push(entry);
    }
    fn send(&mut self, to: SiteId, message: Message) {
        self.messages.push((to, message));
    }
    fn outcome(&mut self, id: TransactionId, outcome: Outcome) {
        self.outcomes.push((id, outcome));
    }
    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}
