//! The end that gets a copy.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_config::Layout;
use pares_link::{ClientStream, Door, MIRROR};
use pares_roles::mirror::{FRAME_MAX, MirrorEnded, MirrorReceiver};
use pares_tls::{Identity, TlsFiles};

use super::{RECEIVERS, Told, logs_in, refused};
use crate::keys::SYSTEM;
use crate::{HostWorld, NodeError, leftovers};

/// A receiver looks whether it is to stop, and says how it stands, so often.
const LOOK: Duration = Duration::from_millis(100);
/// A source of which nothing comes for so long is gone: it speaks once a second.
pub(super) const SILENCE: Duration = Duration::from_secs(3);
/// Between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

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
/// If the directory is in use, was prepared for something else, or has logs that are no mirrors. What can pass is reported, and tried again.
pub fn receive(
    layout: &Layout,
    door: &Door,
    stop: &AtomicBool,
    tell: impl FnMut(ReceiverNews<'_>),
) -> Result<(), NodeError> {
    std::fs::create_dir_all(layout.run()).map_err(NodeError::io("creating the directory of mirrors"))?;
    let _lock = leftovers::take_lock(layout, leftovers::HOLDERS)?;
    claim(layout)?;
    receive_into(&mut MirrorReceiver::new(&HostWorld::new(layout)?), layout, door, stop, tell)
}

pub(super) fn receive_into(
    receiver: &mut MirrorReceiver<HostWorld>,
    layout: &Layout,
    door: &Door,
    stop: &AtomicBool,
    mut tell: impl FnMut(ReceiverNews<'_>),
) -> Result<(), NodeError> {
    let (mut pause, mut told) = (PAUSE_MIN, Told::default());
    while !stop.load(Ordering::Relaxed) {
        let rounds = receiver.rounds();
        match receive_once(layout, door, receiver, stop, &mut tell) {
            Ok(()) => break,
            Err(MirrorEnded::Hopeless(error)) => return Err(error),
            Err(MirrorEnded::Broken(why)) => {
                (pause, told) = match receiver.rounds() > rounds {
                    true => (PAUSE_MIN, Told::default()),
                    false => ((pause * 2).min(PAUSE_MAX), told),
                };
                if told.is_new(&why) {
                    tell(ReceiverNews::Disconnected(&why));
                }
                std::thread::sleep(pause);
            }
        }
    }
    Ok(())
}

/// Marks the directory as a receiver's. One that was prepared for something else is refused: its settings would be overwritten.
fn claim(layout: &Layout) -> Result<(), NodeError> {
    if layout.config().exists() && !layout.mirrored().exists() {
        return Err(NodeError::Refused(format!(
            "{} is not of `pares mirror receive`, which would overwrite it: use an empty --dir, or move this file away",
            layout.config().display()
        )));
    }
    pares_os::replace_file(&layout.mirrored(), b"").map_err(NodeError::io("marking the directory as a copy"))
}

/// One connection, until it ends or `stop` is set.
fn receive_once(
    layout: &Layout,
    door: &Door,
    receiver: &mut MirrorReceiver<HostWorld>,
    stop: &AtomicBool,
    tell: &mut impl FnMut(ReceiverNews<'_>),
) -> Result<(), MirrorEnded> {
    const QUIET: [ErrorKind; 3] = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
    let failed = |error: std::io::Error| MirrorEnded::Broken(format!("{}: {error}", door.address()));
    let mut stream = ClientStream::connect(door, FRAME_MAX).map_err(failed)?;
    stream.set_timeout(Some(SILENCE)).map_err(failed)?;
    let mut answers: Vec<Vec<u8>> = Vec::new();
    receiver.ask(logs_in(layout, receiver.scope()), |frame| answers.push(frame.to_vec()))?;
    answers.drain(..).try_for_each(|answer| stream.send(&answer)).map_err(failed)?;
    stream.set_timeout(Some(LOOK)).map_err(failed)?;
    let (mut heard, mut told, mut is_new) = (Instant::now(), Instant::now(), true);
    while !stop.load(Ordering::Relaxed) {
        match stream.receive_part() {
            // Half a stretch is life, too: a line may be slow.
            Ok(part) => {
                heard = Instant::now();
                if let Some(frame) = part {
                    if std::mem::take(&mut is_new) {
                        tell(ReceiverNews::Connected);
                    }
                    receiver.on_frame(frame, |answer| answers.push(answer.to_vec()))?;
                    answers.drain(..).try_for_each(|answer| stream.send(&answer)).map_err(failed)?;
                }
            }
            Err(error) if QUIET.contains(&error.kind()) && heard.elapsed() > SILENCE => {
                return Err(failed(std::io::Error::new(error.kind(), "it says nothing")));
            }
            Err(error) if QUIET.contains(&error.kind()) => {}
            Err(error) => return Err(failed(error)),
        }
        if told.elapsed() > LOOK {
            told = Instant::now();
            tell(ReceiverNews::Standing(receiver));
        }
    }
    Ok(())
}
