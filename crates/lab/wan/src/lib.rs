//! A wide area network on one machine: a proxy that makes two ends of a TCP connection as far apart as one likes.
//!
//! The kernel's own (`tc netem`) needs root and a module that many kernels, ours among them, come without. It is also
//! deaf to a test that wants the line cut between two steps. So the distance is made by a proxy: what comes in at one
//! end is read, kept for as long as the line would take, and written at the other.
//!
//! ```text
//!            +-- rate --+- delay, jitter, stalls -+
//!  dialler ->|  forth   | o  o o    o   o         |-> target
//!          <-|   back   |    o   o o      o   o   |<-
//!            +----------+-------------------------+
//! ```
//! One proxy is one line: all connections through it share its rate, and it is cut for all of them at once. TCP hides
//! loss: what an application sees of a lost packet is a stall of everything behind it until the packet was sent
//! again. So a segment "lost" here is held up by [`Conditions::stall`], and order is kept. Which segments are lost depends on
//! the seed, the connection's number and the place in its stream alone, not on time, so that a run can be repeated.
//!
//! Not imitated: the handshake's own round trip (the proxy accepts at once), and congestion control.

mod engine;
mod line;
mod pair;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::Engine;

/// Bytes to which one decision about loss applies: what TCP puts into one packet.
pub const SEGMENT_BYTES: usize = 1_448;

/// One of the two ways through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the side that connected to the target.
    Forth,
    /// From the target back.
    Back,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Forth, Self::Back];
}

/// How one way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// From one end to the other; half the round trip if both ways are alike. A shorter delay does not let later bytes
    /// overtake earlier ones.
    pub delay: Duration,
    /// Up to that much more, evenly distributed, drawn for each piece.
    pub jitter: Duration,
    /// Bits that pass in a second, all connections together; 0 for no limit. A piece passes when its last bit has.
    pub bits_per_second: u64,
    /// Segments lost, of a million.
    pub lost_of_million: u32,
    /// What a lost segment takes longer: about a round trip if TCP notices at once, 200 ms and more if it has to time
    /// out.
    pub stall: Duration,
    /// Segments of a million at which the connection breaks.
    pub broken_of_million: u32,
    /// Nothing comes out at the other end, not even the end of a connection, and nothing is closed. What was sent
    /// meanwhile comes out when this ends, since TCP would have sent it again.
    pub black_hole: bool,
}

impl Conditions {
    /// A way of that length and nothing else.
    #[must_use]
    pub fn delayed(delay: Duration) -> Self {
        Self {
            delay,
            jitter: Duration::ZERO,
            bits_per_second: 0,
            lost_of_million: 0,
            stall: Duration::from_millis(200),
            broken_of_million: 0,
            black_hole: false,
        }
    }
}

/// Where to listen and what to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Port 0 for any.
    pub listen: SocketAddr,
    /// Dialled once for each connection that comes.
    pub target: SocketAddr,
}

/// A proxy at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxySettings {
    /// The connections that share this line.
    pub forwards: Vec<Forward>,
    /// To the targets.
    pub forth: Conditions,
    /// From the targets.
    pub back: Conditions,
    /// Decides which segments are lost, and the jitter.
    pub seed: u64,
    /// Bytes of one connection that may be under way in one direction; the sender waits beyond it.
    pub under_way_max: usize,
}

impl ProxySettings {
    /// One forward from a port of loopback, the same delay both ways, 64 MiB under way.
    #[must_use]
    pub fn to(target: SocketAddr, delay: Duration) -> Self {
        Self {
            forwards: vec![Forward { listen: SocketAddr::from(([127, 0, 0, 1], 0)), target }],
            forth: Conditions::delayed(delay),
            back: Conditions::delayed(delay),
            seed: 1,
            under_way_max: 64 << 20,
        }
    }
}

/// What passed so far, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes written at the other end.
    pub bytes: u64,
    /// Segments that were lost, and so stalled.
    pub lost: u64,
    /// Connections broken by chance.
    pub broken: u64,
}

/// What the handle and the thread share.
#[derive(Debug)]
struct Wishes {
    conditions: [Conditions; 2],
    cut: bool,
    stop: bool,
}

/// Counts while it runs; only told, so no order is needed between them.
#[derive(Debug, Default)]
struct Meters {
    bytes: AtomicU64,
    lost: AtomicU64,
    broken: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    wishes: Mutex<Wishes>,
    meters: [Meters; 2],
    waker: mio::Waker,
}

impl Shared {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes a running proxy, from any thread.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// How one way is now.
    #[must_use]
    pub fn conditions(&self, direction: Direction) -> Conditions {
        self.0.wishes().conditions[direction as usize]
    }

    /// Changes one way. Bytes under way keep their time, unless it becomes a black hole.
    pub fn set(&self, direction: Direction, conditions: Conditions) {
        self.change(|wishes| wishes.conditions[direction as usize] = conditions);
    }

    /// Changes both delays.
    pub fn set_delay(&self, delay: Duration) {
        self.change(|wishes| wishes.conditions.iter_mut().for_each(|way| way.delay = delay));
    }

    /// Breaks all connections (both ends see a reset) and refuses new ones, until [`Self::heal`].
    pub fn cut(&self) {
        self.change(|wishes| wishes.cut = true);
    }

    /// Swallows everything both ways and closes nothing, until [`Self::heal`].
    pub fn black_hole(&self) {
        self.change(|wishes| wishes.conditions.iter_mut().for_each(|way| way.black_hole = true));
    }

    /// Ends a cut and black holes.
    pub fn heal(&self) {
        self.change(|wishes| {
            wishes.cut = false;
            wishes.conditions.iter_mut().for_each(|way| way.black_hole = false);
        });
    }

    /// What passed so far.
    #[must_use]
    pub fn traffic(&self, direction: Direction) -> Traffic {
        let Meters { bytes, lost, broken } = &self.0.meters[direction as usize];
        Traffic { bytes: bytes.load(Relaxed), lost: lost.load(Relaxed), broken: broken.load(Relaxed) }
    }

    fn change(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut self.0.wishes());
        // Only a closed poll refuses, and then there is nobody to tell.
        let _ = self.0.waker.wake();
    }
}

/// A running proxy. Dropping it ends it and all connections through it.
#[derive(Debug)]
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens, and forwards on a thread of its own.
    ///
    /// # Errors
    /// If it cannot listen there, or there are no threads available.
    pub fn start(settings: ProxySettings) -> io::Result<Self> {
        let (engine, addresses, handle) = Engine::open(settings)?;
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || engine.run())?;
        Ok(Self { addresses, handle, thread: Some(thread) })
    }

    /// Where the first forward listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Where each forward listens, in their order.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What changes it while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.handle.change(|wishes| wishes.stop = true);
        if let Some(thread) = self.thread.take() {
            // It reports nothing; a panic of its own has been printed.
            let _ = thread.join();
        }
    }
}
