//! The end that has the logs: all receivers on one thread.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_config::{Layout, bells};
use pares_link::{
    ClientId, ClientsConfig, Ended as LinkEnded, LinkSink, Links, LinksConfig, MIRROR, SiteIdentity,
    site_files,
};
use pares_os::{Bell, BellKind, Bells};
use pares_roles::mirror::{MirrorEnded, MirrorSource, Scope};

use super::{RECEIVERS, Told, logs_in, refused};
use crate::keys::SYSTEM;
use crate::world::complain;
use crate::{HostWorld, NodeError};

/// How long a source sleeps at most: then it looks for what its bell did not tell, and at its connections.
const NAP: Duration = Duration::from_millis(5);
/// The same without a receiver.
const REST: Duration = Duration::from_millis(100);
/// Frames of so many bytes leave by themselves.
const LARGE: usize = 64 << 10;
/// Looks without anything new before it sleeps: each goes through all logs for every receiver.
const YIELDS: u32 = 10;
/// How far each receiver is is shown so often.
const SHOW: Duration = Duration::from_secs(1);

/// Sends the logs in `layout` to the receivers that connect at `listen`, until `stop` is set. `on_listening` learns where.
///
/// # Errors
/// If it cannot listen there, or the certificate cannot be used.
pub fn serve(
    layout: &Layout,
    listen: SocketAddr,
    stop: &AtomicBool,
    on_listening: impl FnOnce(SocketAddr),
) -> Result<(), NodeError> {
    let links = serving(layout, listen, !listen.ip().is_loopback())?;
    serve_by(links, layout, &Scope::Whole, stop, on_listening)
}

pub(super) fn serve_by(
    links: LinksConfig,
    layout: &Layout,
    scope: &Scope,
    stop: &AtomicBool,
    on_listening: impl FnOnce(SocketAddr),
) -> Result<(), NodeError> {
    let mut links = Links::open(links).map_err(refused)?;
    let bells = Bells::create(&layout.run()).map_err(std::io::Error::other);
    let bell = bells.and_then(|bells| bells.listen(bells::MIRROR, BellKind::Futex));
    let mut bell = bell.map_err(NodeError::io("listening to the bell"))?;
    let mut receivers = Receivers {
        layout: layout.clone(),
        scope: scope.clone(),
        world: HostWorld::new(layout)?,
        all: BTreeMap::new(),
        told: Told::default(),
        shown: Instant::now(),
    };
    let at = links.clients_address().map_err(NodeError::io("asking where it listens"))?;
    on_listening(at.expect("it listens for receivers"));
    let (mut idle, mut is_busy) = (0, false);
    while !stop.load(Ordering::Relaxed) {
        let patience = if is_busy { Duration::ZERO } else { receivers.patience() };
        links.poll(Some(patience), &mut receivers).map_err(NodeError::io("waiting for receivers"))?;
        is_busy = receivers.turn(&mut links);
        idle = if is_busy { 0 } else { idle + 1 };
        receivers.show();
        if idle > YIELDS {
            receivers.sleep(&mut links, &mut bell);
            idle = 0;
        } else if idle > 0 {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// The connections of a source: a port for receivers alone, with TLS but on loopback.
pub(super) fn serving(layout: &Layout, listen: SocketAddr, tls: bool) -> Result<LinksConfig, NodeError> {
    std::fs::create_dir_all(layout.run()).map_err(NodeError::io("creating the system's directory"))?;
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut links = LinksConfig::new(MIRROR, SYSTEM, nowhere, Vec::new());
    if tls {
        links.identity = Some(SiteIdentity::load(&site_files(&layout.keys(), MIRROR)).map_err(refused)?);
    }
    let clients = ClientsConfig::listening(listen);
    let (count_max, frame_max) = (64, 64 << 10);
    links.clients = Some(ClientsConfig {
        tls,
        count_max,
        frame_max,
        backlog_max: 64 << 20,
        held_max: 1 << 30,
        ..clients
    });
    Ok(links)
}

/// Who receives.
struct Receiver {
    /// What its certificate calls it; nothing on loopback.
    name: Option<String>,
    source: MirrorSource<HostWorld>,
    ended: Option<MirrorEnded>,
}

/// Those who receive, and what was wrong with them.
struct Receivers {
    layout: Layout,
    scope: Scope,
    world: HostWorld,
    all: BTreeMap<ClientId, Receiver>,
    told: Told,
    shown: Instant,
}

impl Receivers {
    /// Sends each what is due. Whether anything was.
    fn turn(&mut self, links: &mut Links) -> bool {
        let mut busy = false;
        for (&id, Receiver { source, ended, .. }) in &mut self.all {
            if ended.is_none() {
                // A connection that cannot be sent to is reported, with the next poll.
                let turned = source.turn(|frame| {
                    let _reported = links.send_client(id, frame);
                    // What the socket takes at once is not gathered first: it would be memory that comes and goes.
                    if frame.len() >= LARGE {
                        links.flush();
                    }
                });
                *ended = turned.map(|more| busy |= more).err();
            }
            if let Some(why) = ended {
                if source.rounds() > 0 {
                    self.told = Told::default();
                }
                if self.told.is_new(&why.to_string()) {
                    complain(&format_args!("pares: a receiver's connection ends: {why}"));
                }
                let why = MirrorSource::<HostWorld>::farewell(why);
                let _it_may_be_gone = links.send_client(id, &why);
                links.flush();
                links.close_client(id);
            }
        }
        self.all.retain(|_, receiver| receiver.ended.is_none());
        links.flush();
        busy
    }

    /// How long to wait for frames alone: not at all while there may be something in the logs that one could be sent.
    fn patience(&self) -> Duration {
        match self.all.values().all(|receiver| receiver.source.waits()) {
            true if self.all.is_empty() => REST,
            true => NAP,
            false => Duration::ZERO,
        }
    }

    /// Sleeps until a writer rings, unless there is something to send.
    fn sleep(&mut self, links: &mut Links, bell: &mut Bell) {
        bell.prepare();
        if self.turn(links) {
            bell.cancel();
        } else {
            bell.wait(NAP);
        }
    }

    /// Says what each has not stored yet, for `pares stat`.
    fn show(&mut self) {
        if self.shown.elapsed() < SHOW || self.all.is_empty() {
            return;
        }
        self.shown = Instant::now();
        let line = |Receiver { name, source, .. }: &Receiver| {
            Some(format!("{} {}\n", name.as_deref().unwrap_or("loopback"), source.lag_bytes()?))
        };
        let lags: String = self.all.values().filter_map(line).collect();
        // Nobody else misses it.
        let _unsaid = pares_os::replace_file_unsynced(&self.layout.mirror_lags(), lags.as_bytes());
    }
}

impl LinkSink for Receivers {
    fn connected(&mut self, _: u16) {}
    fn disconnected(&mut self, _: u16, _: &LinkEnded) {}
    fn frame(&mut self, _: u16, _: &[u8]) {}

    fn failed(&mut self, _: Option<u16>, address: SocketAddr, why: &LinkEnded) {
        if self.told.is_new(&format!("{} {why}", address.ip())) {
            complain(&format_args!("pares: {address}: {why}"));
        }
    }

    fn client_connected(&mut self, client: ClientId) {
        let (layout, scope) = (self.layout.clone(), self.scope.clone());
        let there = Box::new(move || logs_in(&layout, &scope));
        let source = MirrorSource::new(&self.world, there).within(self.scope.clone());
        self.all.insert(client, Receiver { name: None, source, ended: None });
    }

    fn client_frame(&mut self, client: ClientId, caller: Option<&str>, frame: &[u8]) {
        let Some(Receiver { name, source, ended }) = self.all.get_mut(&client) else { return };
        let taken = match caller {
            Some(name) if !name.starts_with(RECEIVERS) => Err(MirrorEnded::Broken(format!(
                "the certificate of {name} is no receiver's: those are called {RECEIVERS}..."
            ))),
            _ => source.on_frame(frame),
        };
        if name.is_none() {
            *name = caller.map(str::to_owned);
        }
        *ended = ended.take().or(taken.err());
    }

    fn client_gone(&mut self, client: ClientId, _: &LinkEnded) {
        self.all.remove(&client);
    }
}
