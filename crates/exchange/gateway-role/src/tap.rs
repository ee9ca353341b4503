//! The tap of a gateway: what its sockets gave and took, copied into a log of its own.
//!
//! A tap that waits for anything makes members wait, and one that allocates makes them wait now and then. So an entry is a copy into pages of a mapped
//! log that another thread has made ready. If none is ready, or the disk is full, the tap loses the entry and says so in the next one that it gets rid of:
//! the gateway never notices. Until then its counters say so; they outlive the process, and the next one tells it.
//!
//! ```text
//!  read, write --bytes--> entry appended --once a turn--> published          the next segment: the log's own thread
//! ```
//! Secrets that a client proves itself by are blanked ([`SecretScan`]).

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pares_config::{NodeId, SystemConfig};
use pares_log::{Config, LogWriter, Offset, OpenError};
use pares_port::{
    DoorFactory, SecretScan, TAP_BYTES_MAX, TAP_HEAD_BYTES, TapDoor, TapHead, TapKind, TapLoss,
};
use pares_roles::NodeError;
use pares_roles::world::{Counters, Next, World};
use pares_types::GatewayId;
use zerocopy::IntoBytes;

use crate::counters::{COUNTERS, Counter};
use crate::types::{Close, Who};

/// Bytes of a segment of a tap's log: at the highest rates it lasts for some tenths of a second, in which the next one is made.
const SEGMENT_BYTES: u64 = 16 << 20;
/// What stands for a byte of a secret.
const BLANKED: u8 = b'*';
/// What an operator does about a log that is damaged.
const MOVE_AWAY: &str = "Move its directory in tap/ away";
/// Between two attempts to open a tap for which there was no room.
const OPEN_EVERY: Duration = Duration::from_secs(1);
/// The longest text of an address, with scope and port: `[ffff:...:255.255.255.255%4294967295]:65535`.
const END_BYTES_MAX: usize = 64;
const ENDS_BYTES_MAX: usize = 2 * END_BYTES_MAX + 1;

/// Both addresses of a connection as text, made without a call of the allocator.
struct EndsText {
    bytes: [u8; ENDS_BYTES_MAX],
    length: usize,
}

impl EndsText {
    fn of([peer, own]: [SocketAddr; 2]) -> Self {
        let mut text = Self { bytes: [0; ENDS_BYTES_MAX], length: 0 };
        write!(text, "{peer} {own}").expect("no address is longer");
        text
    }
}

impl Write for EndsText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// A connection, as its tap knows it.
#[derive(Debug)]
pub(crate) struct Tapped {
    head: TapHead,
    door: TapDoor,
    /// None while nothing is written of it.
    secrets: Option<Box<dyn SecretScan>>,
    /// Bytes that came in, and that went out.
    totals: [u64; 2],
}

impl Tapped {
    pub(crate) fn new(number: u32, door: TapDoor) -> Self {
        Self { head: TapHead::new(TapKind::In, door, number), door, secrets: None, totals: [0; 2] }
    }

    pub(crate) fn signed_on(&mut self, (member, session): Who) {
        (self.head.member, self.head.session) = (member.0.into(), session.into());
    }

    fn head(&self, kind: TapKind) -> TapHead {
        TapHead { kind: kind as u8, ..self.head }
    }
}

/// How much a tap has taken and lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) bytes: u64,
    pub(crate) lost_entries: u64,
    pub(crate) lost_bytes: u64,
    /// What the tap does not say yet that it lost.
    pub(crate) untold: TapLoss,
}

/// The counters of a gateway's process, with what the tap of the process before could not say any more that it lost.
pub(crate) fn counters<W: World>(world: &W, node: NodeId) -> Result<(W::Counters, TapLoss), NodeError> {
    let name = node.to_string();
    let of = |counter: Counter| world.counter(&name, counter.name()).unwrap_or_default().into();
    let untold = TapLoss { entries: of(Counter::TapUntoldEntries), bytes: of(Counter::TapUntoldBytes) };
    let counters = world.create_counters(&name, COUNTERS).map_err(NodeError::io("making counters"))?;
    keep_untold(&counters, untold);
    Ok((counters, untold))
}

/// Keeps it for those who read the tap, and for the next process.
pub(crate) fn keep_untold(counters: &impl Counters, untold: TapLoss) {
    counters.set(Counter::TapUntoldEntries, untold.entries.get());
    counters.set(Counter::TapUntoldBytes, untold.bytes.get());
}

/// The tap, or that there is none.
pub(crate) struct Tap(Option<On>);

struct On {
    log: Box<dyn TapLog>,
    /// Of whom secrets are known by.
    doors: Arc<dyn DoorFactory>,
}

impl Tap {
    /// Nobody wants one.
    pub(crate) fn off() -> Self {
        Self(None)
    }

    /// The gateway's tap, if the configuration wants one; `untold` is what an earlier process lost, and `doors` knows what is secret. A log that cannot be opened costs the tap, and the
    /// operator is informed.
    pub(crate) fn open<W: World>(
        gateway: GatewayId,
        config: &SystemConfig,
        world: &W,
        (untold, doors): (TapLoss, Arc<dyn DoorFactory>),
    ) -> Self {
        if !config.tap {
            return Self::off();
        }
        let mut log = OnLog {
            world: world.clone(),
            life: 0,
            writer: None,
            awaited: None,
            keep_bytes: config.tap_keep_mib << 20,
            gateway,
            has_begun: false,
            tally: Tally { untold, ..Tally::default() },
        };
        log.open();
        Self(Some(On { log: Box::new(log), doors }))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A connection was taken in.
    pub(crate) fn opened(&mut self, tapped: &mut Tapped, ends: Option<[SocketAddr; 2]>) {
        if let Some(On { log, doors }) = &mut self.0 {
            assert!(tapped.secrets.is_none(), "a connection is taken in once");
            tapped.secrets = Some(doors.secrets(tapped.door));
            let text = ends.map(EndsText::of);
            let text = text.as_ref().map_or(&[][..], |text| &text.bytes[..text.length]);
            log.append(tapped.head(TapKind::Opened), text, None);
        }
    }

    /// A read gave these bytes.
    pub(crate) fn came(&mut self, tapped: &mut Tapped, bytes: &[u8]) {
        self.passed(tapped, TapKind::In, bytes);
    }

    /// A write took these bytes.
    pub(crate) fn went(&mut self, tapped: &mut Tapped, bytes: &[u8]) {
        self.passed(tapped, TapKind::Out, bytes);
    }

    fn passed(&mut self, tapped: &mut Tapped, kind: TapKind, bytes: &[u8]) {
        let Some(On { log, .. }) = &mut self.0 else { return };
        let is_in = kind == TapKind::In;
        let way = usize::from(!is_in);
        for piece in bytes.chunks(TAP_BYTES_MAX) {
            let head = TapHead { at: tapped.totals[way].into(), ..tapped.head(kind) };
            tapped.totals[way] += piece.len() as u64;
            let secrets: Option<&mut dyn SecretScan> = match &mut tapped.secrets {
                Some(secrets) if is_in => Some(&mut **secrets),
                _ => None,
            };
            log.append(head, piece, secrets);
        }
    }

    /// It is closed.
    pub(crate) fn ended(&mut self, tapped: &Tapped, why: Close) {
        if let Some(On { log, .. }) = &mut self.0 {
            let head = TapHead { detail: why as u8, ..tapped.head(TapKind::Ended) };
            log.append(head, tapped.totals.map(zerocopy::little_endian::U64::new).as_bytes(), None);
        }
    }

    /// A turn is over: new entries can be read, and those that are too old go.
    pub(crate) fn turn(&mut self) -> Option<Tally> {
        self.0.as_mut().map(|on| on.log.turn())
    }
}

/// Where entries go.
trait TapLog: Send {
    /// Appends an entry, of which time and life are filled in and secrets are blanked; or loses it.
    fn append(&mut self, head: TapHead, bytes: &[u8], blank: Option<&mut dyn SecretScan>);

    fn turn(&mut self) -> Tally;
}

struct OnLog<W: World> {
    world: W,
    /// Where the log ended: no other process of this gateway found its end there and wrote.
    life: u64,
    /// None if it could not be opened.
    writer: Option<W::Writer>,
    /// Where one comes from that is still being tried to open.
    awaited: Option<Receiver<W::Writer>>,
    /// Older bytes go.
    keep_bytes: u64,
    gateway: GatewayId,
    /// It is written that the gateway began.
    has_begun: bool,
    tally: Tally,
}

impl<W: World> OnLog<W> {
    fn open(&mut self) {
        let node = NodeId::Gateway(self.gateway);
        match write_log(&self.world, self.gateway) {
            Ok(writer) => self.begin(writer),
            Err(error) if error.may_pass() => match self.try_on() {
                Ok(awaited) => {
                    self.awaited = Some(awaited);
                    self.world.complain(&format_args!(
                        "{node} runs without its tap for now: {error}. It keeps trying, and needs no restart when the cause is gone"
                    ));
                }
                Err(no_thread) => self.world.complain(&format_args!(
                    "{node} runs without its tap: {error}. It cannot try again ({no_thread}) before its next start"
                )),
            },
            Err(error) => {
                self.world.complain(&format_args!("{node} runs without its tap: {error}. {MOVE_AWAY}; the next start of {node} begins a new one"));
            }
        }
    }

    fn begin(&mut self, writer: W::Writer) {
        assert!(self.writer.is_none(), "a tap has one log");
        assert!(!self.has_begun, "nothing is in a tap's log before it is open");
        (self.life, self.writer, self.awaited) = (writer.tail().0, Some(writer), None);
        // At once: what an earlier process left open is over, whether or not a client comes.
        self.settle();
    }

    /// Tries beside the duty cycle, which must not wait for a disk.
    fn try_on(&self) -> io::Result<Receiver<W::Writer>> {
        let (world, gateway) = (self.world.clone(), self.gateway);
        let ((opened, awaited), mut is_told) = (channel(), false);
        let attempt = move || match write_log(&world, gateway) {
            Ok(writer) => {
                // A tap that is gone has taken its process with it.
                let _ = opened.send(writer);
                Next::Done
            }
            Err(error) => {
                if !error.may_pass() && !std::mem::replace(&mut is_told, true) {
                    let node = NodeId::Gateway(gateway);
                    world.complain(&format_args!(
                        "{node} still runs without its tap: {error}. {MOVE_AWAY}; it keeps trying, and needs no restart"
                    ));
                }
                Next::After(OPEN_EVERY)
            }
        };
        self.world.spawn("tap", Box::new(attempt)).map(|_| awaited)
    }

    fn write(&mut self, mut head: TapHead, bytes: &[u8], blank: Option<&mut dyn SecretScan>) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        assert!(bytes.len() <= TAP_BYTES_MAX, "an entry is no longer than one may be");
        (head.wall_ns, head.mono_ns) = (self.world.now_ns().into(), self.world.mono_ns().into());
        head.life = self.life.into();
        let mut blank = blank;
        let written = writer.append_with(TAP_HEAD_BYTES + bytes.len(), |out| {
            let (front, rest) = out.split_at_mut(TAP_HEAD_BYTES);
            rest.copy_from_slice(bytes);
            if let Some(blank) = blank.take() {
                blank.pass(bytes, &mut |secret| {
                    rest[secret].fill(BLANKED);
                    head.set_blanked();
                });
            }
            front.copy_from_slice(head.as_bytes());
        });
        // Bytes that are lost have passed all the same.
        if let Some(blank) = blank {
            blank.pass(bytes, &mut |_| {});
        }
        written.is_ok()
    }

    /// What has to be said before anything else. Says whether it is.
    fn settle(&mut self) -> bool {
        if self.has_begun && self.tally.untold.entries.get() == 0 {
            return true;
        }
        let of_all = |kind| TapHead::new(kind, TapDoor::Binary, self.gateway.0.into());
        let (began, lost) = (of_all(TapKind::Began), of_all(TapKind::Lost));
        self.has_begun = self.has_begun || self.write(began, &[], None);
        let untold = self.tally.untold;
        if self.has_begun && untold.entries.get() > 0 && self.write(lost, untold.as_bytes(), None) {
            self.tally.untold = TapLoss::default();
        }
        self.has_begun && self.tally.untold.entries.get() == 0
    }

    fn lose(&mut self, bytes: u64) {
        self.tally.untold.entries += 1;
        self.tally.untold.bytes += bytes;
        self.tally.lost_entries += 1;
        self.tally.lost_bytes += bytes;
    }
}

impl<W: World> TapLog for OnLog<W> {
    fn append(&mut self, head: TapHead, bytes: &[u8], mut blank: Option<&mut dyn SecretScan>) {
        let is_written = self.settle() && self.write(head, bytes, blank.take());
        match is_written {
            true => {
                assert_eq!(self.tally.untold.entries.get(), 0, "losses are recorded before anything else");
                self.tally.bytes += bytes.len() as u64;
            }
            false => self.lose(bytes.len() as u64),
        }
        if let Some(blank) = blank {
            blank.pass(bytes, &mut |_| {});
        }
    }

    fn turn(&mut self) -> Tally {
        if let Some(writer) = self.awaited.as_ref().and_then(|awaited| awaited.try_recv().ok()) {
            let node = NodeId::Gateway(self.gateway);
            self.world.complain(&format_args!("{node} records its tap from now on"));
            self.begin(writer);
        }
        assert!(self.writer.is_none() || self.awaited.is_none(), "a tap that has its log waits for none");
        // What was lost is recorded as soon as there is room, whether or not anything else is.
        self.settle();
        if let Some(writer) = &mut self.writer {
            let end = writer.publish();
            assert!(end.0 >= self.life, "the log of a tap ends behind where this process found its end");
            writer.release_before(Offset(end.0.saturating_sub(self.keep_bytes)));
        }
        self.tally
    }
}

fn write_log<W: World>(world: &W, gateway: GatewayId) -> Result<W::Writer, OpenError> {
    world.write_tap(gateway, Config::default().segment_bytes(SEGMENT_BYTES).prepared_only())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV6;

    use super::*;

    #[test]
    fn the_longest_addresses_have_room() {
        let longest = SocketAddrV6::new([u16::MAX; 8].into(), u16::MAX, 0, u32::MAX);
        let mapped = SocketAddrV6::new("::ffff:255.255.255.255".parse().unwrap(), u16::MAX, 0, u32::MAX);
        for end in [longest, mapped].map(SocketAddr::from) {
            let text = EndsText::of([end, end]);
            assert_eq!(&text.bytes[..text.length], format!("{end} {end}").as_bytes());
        }
    }
}
