//! A host's orderer as a process: the role, its journal, and the connections to the other hosts' orderers.
//!
//! The connections are those of sites (`pares-link`): the lower-numbered of a pair dials, for ever; frames, TLS with both certificates but on loopback. A host whose
//! list of hosts differs is refused in the hello, by a digest: two hosts that do not count the same votes must not decide anything together.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pares_cluster::{Durability, Files};
use pares_config::{Layout, SystemConfig};
use pares_link::{Agreed, Ended, LinkSink, Links, LinksConfig, Peer, SiteIdentity, site_files};
use pares_os::scheduling;
use pares_roles::World;
use pares_roles::duty::Duty;
use pares_roles::orderer::{OrdererNode, Peers};
use pares_types::HostId;

use crate::keys::SYSTEM;
use crate::world::complain;
use crate::{NodeError, NodeId, process, sockets};

/// Bytes of one file of the journal.
const SEGMENT_BYTES: u64 = 16 << 20;
/// Messages that came and were not looked at yet.
const MESSAGES_MAX: usize = 1 << 14;
/// Between two attempts to reach a host: it may be back any moment.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Runs the orderer of that host until `stop` is set.
///
/// # Errors
/// If the other hosts cannot be listened for, a log cannot be read or written, or what it missed is gone.
pub(crate) fn run<W: World>(
    host: HostId,
    config: &SystemConfig,
    layout: &Layout,
    world: W,
    stop: &Arc<AtomicBool>,
) -> Result<(), NodeError> {
    let node = NodeId::Orderer(host);
    let mut bell = process::listen(node, layout, sockets::BELL)?;
    let _claim = process::claim(node, layout)?;
    let open = || {
        let links = Links::open(links(host, config, layout)?).map_err(refused)?;
        links
            .end_polls_at(bell.fd().expect("an orderer's bell is a named pipe"))
            .map_err(NodeError::io("waiting for the bell"))?;
        // Not synced: nobody is answered because of what no recorder has.
        let journal = |_| Files::open(&layout.orders_journal(host), Durability::Os, SEGMENT_BYTES);
        let peers = Connections { links, heard: Heard::default() };
        OrdererNode::open(host, config, world.clone(), peers, journal)
    };
    let mut orderer = process::start(node, layout, &world, open)?;
    // The hosts decide as fast as their orderers get a processor. Where it is not allowed, the figures show it.
    let _ = scheduling::real_time();
    let mut is_busy = true;
    while !stop.load(Ordering::Relaxed) {
        if is_busy {
            orderer.peers().poll(Duration::ZERO)?;
        } else {
            // No turns that only yield: those whose requests these are would wait for them.
            bell.prepare();
            orderer.look_everywhere();
            if orderer.work()? + orderer.work()? == 0 {
                let max = orderer.sleep_max();
                orderer.peers().poll(max)?;
            }
            bell.drain();
        }
        is_busy = orderer.work()? > 0;
        orderer.peers().links.flush();
    }
    orderer.stop()
}

fn refused(error: impl std::fmt::Display) -> NodeError {
    NodeError::Refused(error.to_string())
}

fn links(host: HostId, config: &SystemConfig, layout: &Layout) -> Result<LinksConfig, NodeError> {
    let listen = config.hosts[usize::from(host.0)].orders;
    let others = config.host_ids().zip(&config.hosts).filter(|&(id, _)| id != host);
    let is_tls = |address: SocketAddr| !address.ip().is_loopback();
    let peer = |(id, other): (HostId, &pares_config::HostConfig)| Peer {
        number: id.0.into(),
        address: other.orders,
        tls: is_tls(listen) || is_tls(other.orders),
    };
    let peers: Vec<Peer> = others.map(peer).collect();
    let identity = match peers.iter().any(|peer| peer.tls) {
        true => Some(SiteIdentity::load(&site_files(&layout.keys(), host.0.into())).map_err(refused)?),
        false => None,
    };
    let agreed = agreed(config)?;
    let links = LinksConfig::new(host.0.into(), SYSTEM, listen, peers);
    Ok(LinksConfig { identity, agreed, pause_min: PAUSE_MIN, pause_max: PAUSE_MAX, ..links })
}

/// All that decides which position a request gets, and who it is that decides: hosts that differ in one of it would order differently.
fn agreed(config: &SystemConfig) -> Result<Vec<Agreed>, NodeError> {
    let shards: Vec<_> = config.shards()?.into_keys().collect();
    let all = [
        ("hosts", format!("{:?}", config.hosts)),
        ("operator_key", format!("{:?}", config.operator_key)),
        ("gateways", config.gateways.len().to_string()),
        ("instruments", format!("{shards:?}")),
        ("window", config.window.to_string()),
        ("rules of the order", pares_orderer::RULES.to_string()),
    ];
    Ok(all.into_iter().map(|(name, value)| Agreed { name, value }).collect())
}

/// The connections to the other hosts' orderers.
pub(crate) struct Connections {
    links: Links,
    heard: Heard,
}

/// What came, and was not asked for yet.
#[derive(Default)]
struct Heard {
    messages: VecDeque<(HostId, Vec<u8>)>,
    ended: Vec<HostId>,
    /// The last line about each host.
    said: String,
}

impl Connections {
    fn poll(&mut self, max: Duration) -> Result<(), NodeError> {
        let polled = self.links.poll(Some(max), &mut self.heard);
        polled.map_err(NodeError::io("waiting for the other hosts"))
    }
}

impl Peers for Connections {
    fn send(&mut self, to: HostId, message: Vec<u8>) {
        // What is lost is sent again by those who want it.
        let _lost = self.links.send(to.0.into(), &message);
    }

    fn receive(&mut self) -> Option<(HostId, Vec<u8>)> {
        self.heard.messages.pop_front()
    }

    fn ended(&mut self) -> Option<HostId> {
        self.heard.ended.pop()
    }
}

/// Links number hosts as the list does.
fn host_of(peer: u16) -> HostId {
    HostId(u8::try_from(peer).expect("at most nine hosts are linked"))
}

impl LinkSink for Heard {
    fn connected(&mut self, _: u16) {
        self.said.clear();
    }

    fn disconnected(&mut self, peer: u16, _: &Ended) {
        self.ended.push(host_of(peer));
    }

    fn frame(&mut self, peer: u16, payload: &[u8]) {
        // Whatever is lost is sent again.
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push_back((host_of(peer), payload.to_vec()));
        }
    }

    fn failed(&mut self, _: Option<u16>, address: SocketAddr, why: &Ended) {
        let line = format!("pares: the orderer at {address}: {why}");
        // A host that is away is tried for days: that is no news.
        if why.is_refusal() && line != self.said {
            complain(&line);
            self.said = line;
        }
    }
}
