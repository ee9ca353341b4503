//! The logs of a system at another host: the process that sends them, and the one that receives them.
//!
//! The receiver dials: a source needs to know nobody, and any number of hosts may have its logs. Connections are those of applications to a site
//! (`pares-link`): frames, TLS by the system's authority, an end to who does not read. What is in the frames lies in `pares_roles::mirror`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_config::{Layout, bells};
use pares_link::{
    ClientId, ClientStream, ClientsConfig, Door, Ended as LinkEnded, LinkSink, Links, LinksConfig, MIRROR,
    SiteIdentity, site_files,
};
use pares_os::{Bell, BellKind, Bells};
use pares_roles::mirror::{FRAME_MAX, LogName, MirrorEnded, MirrorReceiver, MirrorSource, log_of};
use pares_tls::{Identity, TlsFiles};

use crate::duty::YIELDS;
use crate::keys::SYSTEM;
use crate::world::complain;
use crate::{HostWorld, NodeError, NodeId, leftovers};

/// What a receiver's certificate is called: no member's is.
const RECEIVERS: &str = "mirror-";
/// How long a source sleeps at most: then it looks for what its bell did not tell, and at its connections.
const NAP: Duration = Duration::from_millis(5);
/// The same without a receiver.
const REST: Duration = Duration::from_millis(100);
/// A receiver looks whether it is to stop, and says how it stands, so often.
const LOOK: Duration = Duration::from_millis(100);
/// A source that says nothing for so long is gone: it speaks once a second.
const SILENCE: Duration = Duration::from_secs(3);
/// Between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Makes the mirrors in a system's directory its own logs: its nodes continue them. The processes that wrote the originals must not write any more.
///
/// # Errors
/// If one is still being written, or cannot be changed.
pub(crate) fn take_over(layout: &Layout, nodes: &[NodeId]) -> Result<(), NodeError> {
    for &node in nodes.iter().filter(|&&node| log_of(node).is_some()) {
        if pares_log::take_over(&layout.log(node))? {
            complain(&format_args!(
                "pares: {node} continues the log of another host, which was mirrored here"
            ));
        }
    }
    Ok(())
}

/// The mirrored logs that lie in a system's directory.
fn logs_in(layout: &Layout) -> Vec<LogName> {
    let entries = std::fs::read_dir(layout.root()).into_iter().flatten().flatten();
    entries.filter_map(|entry| log_of(entry.file_name().to_str()?.parse().ok()?)).collect()
}

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
    serve_by(links, layout, stop, on_listening)
}

fn serve_by(
    links: LinksConfig,
    layout: &Layout,
    stop: &AtomicBool,
    on_listening: impl FnOnce(SocketAddr),
) -> Result<(), NodeError> {
    let mut links = Links::open(links).map_err(refused)?;
    let bells = Bells::create(&layout.run()).map_err(std::io::Error::other);
    let bell = bells.and_then(|bells| bells.listen(bells::MIRROR, BellKind::Futex));
    let mut bell = bell.map_err(NodeError::io("listening to the bell"))?;
    let mut receivers =
        Receivers { layout: layout.clone(), world: HostWorld::new(layout)?, all: BTreeMap::new() };
    let at = links.clients_address().map_err(NodeError::io("asking where it listens"))?;
    on_listening(at.expect("it listens for receivers"));
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) {
        links
            .poll(Some(receivers.patience()), &mut receivers)
            .map_err(NodeError::io("waiting for receivers"))?;
        idle = if receivers.turn(&mut links) { 0 } else { idle + 1 };
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
fn serving(layout: &Layout, listen: SocketAddr, tls: bool) -> Result<LinksConfig, NodeError> {
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

fn refused(error: impl std::fmt::Display) -> NodeError {
    NodeError::Refused(error.to_string())
}

/// Those who receive, and what is wrong with them.
struct Receivers {
    layout: Layout,
    world: HostWorld,
    all: BTreeMap<ClientId, (MirrorSource<HostWorld>, Option<MirrorEnded>)>,
}

impl Receivers {
    /// Sends each what is due. Whether anything was.
    fn turn(&mut self, links: &mut Links) -> bool {
        let mut busy = false;
        for (&id, (source, ended)) in &mut self.all {
            if ended.is_none() {
                // A connection that cannot be sent to is reported, with the next poll.
                let turned = source.turn(|frame| _ = links.send_client(id, frame));
                *ended = turned.map(|more| busy |= more).err();
            }
            if let Some(why) = ended {
                complain(&format_args!("pares: a receiver's connection ends: {why}"));
                let why = MirrorSource::<HostWorld>::farewell(why);
                let _it_may_be_gone = links.send_client(id, &why);
                links.flush();
                links.close_client(id);
            }
        }
        self.all.retain(|_, (_, ended)| ended.is_none());
        links.flush();
        busy
    }

    /// How long to wait for frames alone: not at all while there may be something in the logs that could be sent.
    fn patience(&self) -> Duration {
        match self.all.values().any(|(source, _)| source.waits()) {
            true => NAP,
            false if self.all.is_empty() => REST,
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
}

impl LinkSink for Receivers {
    fn connected(&mut self, _: u16) {}
    fn disconnected(&mut self, _: u16, _: &LinkEnded) {}
    fn frame(&mut self, _: u16, _: &[u8]) {}

    fn failed(&mut self, _: Option<u16>, address: SocketAddr, why: &LinkEnded) {
        complain(&format_args!("pares: {address}: {why}"));
    }

    fn client_connected(&mut self, client: ClientId) {
        let layout = self.layout.clone();
        let source = MirrorSource::new(&self.world, Box::new(move || logs_in(&layout)));
        self.all.insert(client, (source, None));
    }

    fn client_frame(&mut self, client: ClientId, caller: Option<&str>, frame: &[u8]) {
        let Some((source, ended)) = self.all.get_mut(&client) else { return };
        let taken = match caller {
            Some(name) if !name.starts_with(RECEIVERS) => Err(MirrorEnded::Broken(format!(
                "the certificate of {name} is no receiver's: those are called {RECEIVERS}..."
            ))),
            _ => source.on_frame(frame),
        };
        *ended = ended.take().or(taken.err());
    }

    fn client_gone(&mut self, client: ClientId, _: &LinkEnded) {
        self.all.remove(&client);
    }
}

/// What a receiver tells while it runs.
pub enum ReceiverNews<'a> {
    /// It is connected, or once again.
    Connected,
    /// It is not, and why; it tries again.
    Disconnected(&'a str),
    /// How it stands, now and then.
    Standing(&'a MirrorReceiver<HostWorld>),
}

/// Where the source is, and what is shown there: the certificate of that name in `keys/`, which must be one of the source's authority. None on loopback.
///
/// # Errors
/// If the certificate is missing though the source is elsewhere, or cannot be used.
pub fn door(layout: &Layout, from: SocketAddr, certificate: Option<&str>) -> Result<Door, NodeError> {
    let Some(name) = certificate else {
        return match from.ip().is_loopback() {
            true => Ok(from.into()),
            false => Err(NodeError::Refused(format!(
                "{from} is not on this machine: name a certificate that its system has issued (`pares certificate {RECEIVERS}b`), in {}",
                layout.keys().display()
            ))),
        };
    };
    let identity = Identity::load(&TlsFiles::named(&layout.keys(), name)).map_err(refused)?;
    Ok(Door::with_tls(from, identity.trust().map_err(refused)?, MIRROR, SYSTEM))
}

/// Receives the logs of the source behind `door` into `layout` until `stop` is set.
///
/// # Errors
/// If the directory is in use, or has logs that are no mirrors. What can pass is reported, and tried again.
pub fn receive(
    layout: &Layout,
    door: &Door,
    stop: &AtomicBool,
    mut tell: impl FnMut(ReceiverNews<'_>),
) -> Result<(), NodeError> {
    std::fs::create_dir_all(layout.run()).map_err(NodeError::io("creating the directory of mirrors"))?;
    let _lock = leftovers::take_lock(layout, leftovers::HOLDERS)?;
    let mut receiver = MirrorReceiver::new(&HostWorld::new(layout)?);
    let mut pause = PAUSE_MIN;
    let mut last = String::new();
    while !stop.load(Ordering::Relaxed) {
        let rounds = receiver.rounds();
        match receive_once(layout, door, &mut receiver, stop, &mut tell) {
            Ok(()) => break,
            Err(MirrorEnded::Hopeless(error)) => return Err(error),
            Err(MirrorEnded::Broken(why)) => {
                if receiver.rounds() > rounds {
                    (pause, last) = (PAUSE_MIN, String::new());
                } else {
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                if why != last {
                    tell(ReceiverNews::Disconnected(&why));
                    last = why;
                }
                std::thread::sleep(pause);
            }
        }
    }
    Ok(())
}

/// One connection, until it ends or `stop` is set.
fn receive_once(
    layout: &Layout,
    door: &Door,
    receiver: &mut MirrorReceiver<HostWorld>,
    stop: &AtomicBool,
    tell: &mut impl FnMut(ReceiverNews<'_>),
) -> Result<(), MirrorEnded> {
    let failed = |error: std::io::Error| MirrorEnded::Broken(format!("{}: {error}", door.address()));
    let mut stream = ClientStream::connect(door, FRAME_MAX).map_err(failed)?;
    stream.set_timeout(Some(SILENCE)).map_err(failed)?;
    let mut answers: Vec<Vec<u8>> = Vec::new();
    receiver.ask(logs_in(layout), |frame| answers.push(frame.to_vec()))?;
    answers.drain(..).try_for_each(|answer| stream.send(&answer)).map_err(failed)?;
    stream.set_timeout(Some(LOOK)).map_err(failed)?;
    let (mut heard, mut told, mut is_new) = (Instant::now(), Instant::now(), true);
    while !stop.load(Ordering::Relaxed) {
        if let Some(frame) = next_frame(&mut stream, heard).map_err(failed)? {
            if std::mem::take(&mut is_new) {
                tell(ReceiverNews::Connected);
            }
            heard = Instant::now();
            receiver.on_frame(&frame, |answer| answers.push(answer.to_vec()))?;
            answers.drain(..).try_for_each(|answer| stream.send(&answer)).map_err(failed)?;
        }
        if told.elapsed() > LOOK {
            told = Instant::now();
            tell(ReceiverNews::Standing(receiver));
        }
    }
    Ok(())
}

/// The next frame, if one comes soon. A source that was last heard long ago is gone.
fn next_frame(stream: &mut ClientStream, heard: Instant) -> std::io::Result<Option<Vec<u8>>> {
    const QUIET: [ErrorKind; 3] = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
    match stream.receive() {
        Err(error) if QUIET.contains(&error.kind()) => match heard.elapsed() > SILENCE {
            true => Err(std::io::Error::new(error.kind(), "it says nothing")),
            false => Ok(None),
        },
        received => received.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pares_config::SystemConfig;
    use pares_log::{Config, Offset, Reader};
    use pares_roles::world::{Ring, World};
    use pares_types::{GatewayId, VenueId};

    use super::*;
    use crate::keys;

    const LOG: NodeId = NodeId::Gateway(GatewayId(0));
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn receivers_show_a_certificate_of_their_own_kind() {
        let dirs = [0; 2].map(|_| tempfile::tempdir().unwrap());
        let [here, there] = dirs.each_ref().map(|dir| Layout::new(dir.path()));
        let config = SystemConfig { mirror: Some(([10, 0, 0, 1], 7400).into()), ..SystemConfig::default() };
        keys::ensure(&here, &config, &[]).unwrap();
        for name in ["mirror-b", "member-7"] {
            keys::issue(&here, name, 1).unwrap();
        }
        std::fs::create_dir_all(there.root()).unwrap();
        std::fs::rename(here.keys(), there.keys()).unwrap();
        let links = serving(&Layout::new(there.root()), ([127, 0, 0, 1], 0).into(), true).unwrap();
        let world = HostWorld::new(&here).unwrap();
        let mut writer = world.write_log(LOG, Config::default()).unwrap();
        let end = writer.append(b"request").map(|_| writer.publish()).unwrap();
        world.ringer().ring(NodeId::Venue(VenueId(0)));
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (told, at) = mpsc::channel();
            let source = here.clone();
            scope.spawn(move || serve_by(links, &source, stop, |at| told.send(at).unwrap()).unwrap());
            let at = at.recv_timeout(PATIENCE).unwrap();
            let why = refusal(&there, at, "member-7");
            assert!(why.contains("member-7 is no receiver's"), "{why}");
            let (door, log, begun) =
                (door(&there, at, Some("mirror-b")).unwrap(), there.log(LOG), Instant::now());
            scope.spawn(move || receive(&there, &door, stop, |_| {}).unwrap());
            while Reader::at_end(&log).map_or(Offset::START, |reader| reader.written()) < end {
                assert!(begun.elapsed() < PATIENCE, "the record does not come");
                std::thread::sleep(Duration::from_millis(1));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }

    /// What a receiver with that certificate gets as an answer.
    fn refusal(there: &Layout, at: SocketAddr, certificate: &str) -> String {
        let (mut said, stop) = (String::new(), AtomicBool::new(false));
        let door = door(there, at, Some(certificate)).unwrap();
        receive(there, &door, &stop, |news| {
            if let ReceiverNews::Disconnected(why) = news
                && why.contains("certificate")
            {
                said = why.to_owned();
                stop.store(true, Ordering::Relaxed);
            }
        })
        .unwrap();
        said
    }

    #[test]
    fn beyond_loopback_a_receiver_needs_a_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        assert!(door(&layout, ([127, 0, 0, 1], 1).into(), None).is_ok());
        let why = door(&layout, ([10, 0, 0, 1], 1).into(), None).unwrap_err().to_string();
        assert!(why.contains("pares certificate mirror-b"), "{why}");
    }
}
