//! The connections of a server, by where they come from, and which of them makes room for another one.
//!
//! If each network may have a part of the places, a few networks bar all others; if the oldest connection makes room, a client that connects fast enough has all places.
//! So the network with most makes room for one that has at least two fewer, at once: first by the connection that has been idle longest, then by the oldest on which nobody has
//! signed on, then by its oldest. Another network that has some makes room for itself, by the connection that has been idle longest, if it was that for a second; so do all for one
//! that has none, if none has more than one. A connection is idle if all is answered that was asked on it, and the answers have gone.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use pares_table::{Origin, SharedPlaces};
use socket2::SockRef;
use tokio::net::TcpStream;

/// What has been idle for so long makes room for its own network, or for one that has nothing.
const GRACE_NS: u64 = 1_000_000_000;
/// A request is under way.
const BUSY: u64 = u64::MAX;
/// All of its answer is handed over, and not all has gone to the system yet: who reads slowly would lose the rest.
const UNSENT: u64 = BUSY - 1;

/// What a connection is used for: an extension of each request.
#[derive(Clone, Debug)]
pub struct ConnectionUse(Arc<Used>);

#[derive(Debug)]
struct Used {
    begun: Instant,
    /// Since the server's beginning, ns.
    idle_since_ns: AtomicU64,
    is_signed_on: AtomicBool,
}

impl ConnectionUse {
    pub(crate) fn new(begun: Instant) -> Self {
        let idle_since_ns = AtomicU64::new(since_ns(begun));
        Self(Arc::new(Used { begun, idle_since_ns, is_signed_on: AtomicBool::new(false) }))
    }

    /// A request showed whose it is: of those that are in use, the others make room before it.
    pub fn note_signed_on(&self) {
        self.0.is_signed_on.store(true, Ordering::Relaxed);
    }

    /// A request is under way, until what is returned is dropped.
    pub(crate) fn request(&self) -> UnderWay {
        self.0.idle_since_ns.store(BUSY, Ordering::Relaxed);
        UnderWay { of: self.clone(), is_kept: false }
    }

    /// All that was handed over has gone.
    pub(crate) fn note_sent(&self) {
        let Used { begun, idle_since_ns, .. } = &*self.0;
        // Another state stays.
        let _ =
            idle_since_ns.compare_exchange(UNSENT, since_ns(*begun), Ordering::Relaxed, Ordering::Relaxed);
    }

    fn idle_since_ns(&self) -> Option<u64> {
        Some(self.0.idle_since_ns.load(Ordering::Relaxed)).filter(|since_ns| *since_ns < UNSENT)
    }

    /// The lowest makes room.
    fn rank(&self, number: u64) -> (bool, bool, u64) {
        match self.idle_since_ns() {
            Some(since_ns) => (false, false, since_ns),
            None => (true, self.0.is_signed_on.load(Ordering::Relaxed), number),
        }
    }
}

fn since_ns(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(UNSENT - 1)
}

/// A request, from its head until all of its answer is handed over.
pub(crate) struct UnderWay {
    of: ConnectionUse,
    /// It became another protocol's: the connection is in use until it ends.
    is_kept: bool,
}

impl UnderWay {
    /// The answer, with which the request ends once all of it is handed over.
    pub(crate) fn until_handed_over(mut self, answer: Response) -> Response<Answer> {
        self.is_kept = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        answer.map(|body| Answer { body, _request: self })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.is_kept {
            self.of.0.idle_since_ns.store(UNSENT, Ordering::Relaxed);
        }
    }
}

/// The body of an answer.
pub(crate) struct Answer {
    body: Body,
    _request: UnderWay,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Of a network in the order in which they came.
type Key = (Origin, u64);

/// The connections.
pub(crate) struct SharedConnections {
    most: usize,
    begun: Instant,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    came: u64,
    shares: SharedPlaces<Origin>,
    by_origin: BTreeMap<Key, (ConnectionUse, Arc<TcpStream>)>,
}

impl SharedConnections {
    /// For so many.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, begun: Instant::now(), open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more, if there is one or another connection makes room: that one is ended.
    pub(crate) fn place(
        self: &Arc<Self>,
        origin: Origin,
        stream: &Arc<TcpStream>,
    ) -> Option<ConnectionPlace> {
        let mut open = self.open();
        if open.shares.total() >= self.most {
            let giver = open.giver(origin, since_ns(self.begun))?;
            let (_, stream) = open.remove(giver).expect("who makes room is there");
            // It may have ended just now.
            let _ = SockRef::from(&stream).shutdown(Shutdown::Both);
        }
        let (key, used) = ((origin, open.came), ConnectionUse::new(self.begun));
        open.came += 1;
        open.shares.add(origin);
        open.by_origin.insert(key, (used.clone(), Arc::clone(stream)));
        Some(ConnectionPlace { of: Arc::clone(self), key, used })
    }
}

impl OpenConnections {
    /// Which one makes room for one more of that origin, if any does.
    fn giver(&self, origin: Origin, now_ns: u64) -> Option<Key> {
        let keys = match self.shares.giver(origin) {
            Some(of) if of != origin => {
                let of_most = self.by_origin.range((of, 0)..=(of, u64::MAX));
                return of_most
                    .min_by_key(|((_, number), (used, _))| used.rank(*number))
                    .map(|(key, _)| *key);
            }
            Some(own) => (own, 0)..=(own, u64::MAX),
            None => (None, 0)..=(Some(pares_table::Network(u128::MAX)), u64::MAX),
        };
        let idle = self.by_origin.range(keys);
        let idle = idle.filter_map(|(key, (used, _))| Some((used.idle_since_ns()?, *key)));
        idle.min().filter(|(since_ns, _)| now_ns.saturating_sub(*since_ns) >= GRACE_NS).map(|(_, key)| key)
    }

    fn remove(&mut self, key: Key) -> Option<(ConnectionUse, Arc<TcpStream>)> {
        let removed = self.by_origin.remove(&key)?;
        self.shares.remove(key.0);
        Some(removed)
    }
}

/// A place that is taken, until it is dropped or its connection has made room.
pub(crate) struct ConnectionPlace {
    of: Arc<SharedConnections>,
    key: Key,
    pub(crate) used: ConnectionUse,
}

impl ConnectionPlace {
    pub(crate) fn origin(&self) -> Origin {
        self.key.0
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        // The socket is closed behind the lock.
        let _removed = self.of.open().remove(self.key);
    }
}
