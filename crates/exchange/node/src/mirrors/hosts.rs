//! The mirrors between the hosts of one system: each sends what its own nodes write, and receives what the others' do.
//!
//! One process at each host does both, so that a host that loses it loses nothing else; a thread for each other host receives.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pares_config::{Layout, SystemConfig};
use pares_roles::mirror::{MirrorReceiver, Scope};
use pares_types::HostId;

use super::receive::{ReceiverNews, door, receive_into};
use super::serve::{serve_by, serving};
use crate::world::complain;
use crate::{HostWorld, NodeError, keys};

/// After a fault that no repetition repairs, an operator may have repaired it.
const PAUSE: Duration = Duration::from_secs(5);

/// Keeps the mirrors of that host until `stop` is set. `begun` is called once it can be reached.
///
/// # Errors
/// If it cannot listen for the others, or a certificate cannot be used.
pub(crate) fn keep(
    host: HostId,
    config: &SystemConfig,
    layout: &Layout,
    stop: &AtomicBool,
    begun: impl FnOnce(),
) -> Result<(), NodeError> {
    let own = &config.hosts[usize::from(host.0)];
    let links = serving(layout, own.mirror, !own.mirror.ip().is_loopback())?;
    std::thread::scope(|threads| {
        for other in config.host_ids().filter(|&other| other != host) {
            threads.spawn(move || receive_from(other, host, config, layout, stop));
        }
        let served = serve_by(links, layout, &Scope::of_host(config, host), stop, |_| begun());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        served
    })
}

/// Receives what the nodes of `from` write, until `stop` is set.
fn receive_from(from: HostId, host: HostId, config: &SystemConfig, layout: &Layout, stop: &AtomicBool) {
    let name = &config.hosts[usize::from(from.0)].name;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let Err(error) = receive_while_whole((from, host), config, layout, stop) else { continue };
        complain(&format_args!("pares: the logs of host {name}: {error}"));
        std::thread::sleep(PAUSE);
    }
}

fn receive_while_whole(
    (from, host): (HostId, HostId),
    config: &SystemConfig,
    layout: &Layout,
    stop: &AtomicBool,
) -> Result<(), NodeError> {
    let there = &config.hosts[usize::from(from.0)];
    let certificate = keys::receiver(&config.hosts[usize::from(host.0)].name);
    let certificate = (!there.mirror.ip().is_loopback()).then_some(certificate.as_str());
    let door = door(layout, there.mirror, certificate)?;
    let world = HostWorld::new(layout)?;
    let mut receiver = MirrorReceiver::new(&world).of_host(config, from, host);
    receive_into(&mut receiver, layout, &door, stop, |news| {
        if let ReceiverNews::Disconnected(why) = news {
            complain(&format_args!("pares: the logs of host {}: {why}", there.name));
        }
    })
}
