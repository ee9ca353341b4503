//! TLS handshakes of those who connect to a gateway or a replayer, on a thread of their own.
//!
//! A handshake costs a tenth of a millisecond of the processor, a thousand orders' worth, and any client may ask for one. In the duty cycle
//! a flood of them would make every member wait. Here it takes what others leave: the thread has a low priority, and a
//! gateway meets a connection when its handshake is over.
//!
//! ```text
//!             first byte         handshake over
//!  accepted ------------> TLS ------------------> handed out: the gateway's stranger
//!     |                    |
//!     +--- no TLS: told so +--- failed, silent, or one of too many: closed and counted
//! ```
//! What one may cost is bounded: 16 KiB of input, ten seconds, and as many at a time as a gateway takes strangers. Beyond that one of the
//! network that has most makes room, or the oldest.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use pares_roles::origins::ConnectionsByOrigin;
use pares_roles::world::RejectedConnections;
use pares_table::{Origin, origin};
use pares_tls::{ServerConfig, ServerConnection, Stream, TlsStream};

use crate::sockets::Handshaking;
use crate::world::complain;

/// The name of the first listener; the others count down from it.
const LISTENER: usize = usize::MAX;
/// A handshake must be over within this.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same while there are as many as there may be.
const CROWDED_PATIENCE: Duration = Duration::from_secs(1);
const SLEEP_MAX: Duration = Duration::from_millis(500);
/// Between two tries to accept while descriptors are out.
const PAUSE: Duration = Duration::from_millis(5);
/// Connections accepted before those that are there are looked after.
const ACCEPTS_MAX: usize = 64;
/// Between two complaints: strangers must not fill the disk.
const COMPLAIN_EVERY: Duration = Duration::from_secs(1);
/// What the thread is nicer than the gateway: a tenth of a processor for which others wait.
const NICE: i32 = 10;
/// The first byte of a TLS connection.
const TLS_FIRST: u8 = 0x16;

/// The handshakes of a gateway, and who has come through them.
pub(crate) struct Handshakes {
    /// By listener.
    done: Vec<Receiver<Stream<TcpStream>>>,
    shared: Arc<Shared>,
}

/// What both threads know.
#[derive(Default)]
struct Shared {
    /// Done, and not taken in by the gateway.
    waiting: AtomicUsize,
    failed: AtomicU64,
    silent: AtomicU64,
    crowded: AtomicU64,
    /// The gateway is gone.
    over: AtomicBool,
}

impl Handshakes {
    /// Takes in who connects to any of these, at most so many at a time, and rings `waker` for each that is ready. The first speaks the protocol of the
    /// refusal.
    pub(crate) fn start(
        mut listeners: Vec<TcpListener>,
        Handshaking { tls, count_max, refusal }: Handshaking,
        waker: Waker,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (port, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener, Token(LISTENER - port), Interest::READABLE)?;
        }
        let (senders, done) = listeners.iter().map(|_| channel()).unzip();
        let shared = Arc::new(Shared::default());
        let mut hall = Hall {
            poll,
            may_accept: vec![true; listeners.len()],
            listeners,
            tls,
            count_max,
            refusal,
            halves: BTreeMap::new(),
            by_origin: ConnectionsByOrigin::default(),
            begun: Instant::now(),
            accepted: 0,
            complaints: Complaints::default(),
            done: senders,
            waker,
            shared: Arc::clone(&shared),
        };
        std::thread::Builder::new().name("handshakes".into()).spawn(move || hall.run())?;
        Ok(Self { done, shared })
    }

    /// The next connection to that listener whose handshake is over; `WouldBlock` if there is none.
    ///
    /// # Panics
    /// If the thread has panicked.
    pub(crate) fn accept(&self, port: usize) -> io::Result<Stream<TcpStream>> {
        match self.done[port].try_recv() {
            Ok(stream) => {
                self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
                Ok(stream)
            }
            Err(TryRecvError::Empty) => Err(ErrorKind::WouldBlock.into()),
            Err(TryRecvError::Disconnected) => panic!("the thread of handshakes ends after its gateway"),
        }
    }

    /// Who ended before that.
    pub(crate) fn turned_away(&self) -> RejectedConnections {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shared = &self.shared;
        RejectedConnections {
            failed: read(&shared.failed),
            silent: read(&shared.silent),
            crowded: read(&shared.crowded),
        }
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

/// The thread's own.
struct Hall {
    poll: Poll,
    listeners: Vec<TcpListener>,
    tls: Arc<ServerConfig>,
    count_max: usize,
    /// What clients receive that connect without TLS.
    refusal: Vec<u8>,
    /// By the order in which they came.
    halves: BTreeMap<usize, Half>,
    /// The same, by where they come from, and since when: nanoseconds since the thread was started.
    by_origin: ConnectionsByOrigin,
    begun: Instant,
    accepted: usize,
    /// Where a client may be waiting to be accepted: it is reported once.
    may_accept: Vec<bool>,
    complaints: Complaints,
    done: Vec<Sender<Stream<TcpStream>>>,
    waker: Waker,
    shared: Arc<Shared>,
}

impl Hall {
    fn run(&mut self) {
        pares_os::scheduling::ordinary();
        // One that cannot be nice is as eager as the gateway.
        let _ = rustix::process::nice(NICE);
        let mut events = Events::with_capacity(256);
        while !self.shared.over.load(Ordering::Relaxed) {
            let _ = self.poll.poll(&mut events, Some(self.sleep_max()));
            for event in &events {
                match event.token() {
                    Token(name) if LISTENER - name < self.listeners.len() => {
                        self.may_accept[LISTENER - name] = true;
                    }
                    Token(number) => self.go_on(number),
                }
            }
            (0..self.listeners.len()).for_each(|port| self.accept(port));
            self.sweep();
        }
    }

    fn sleep_max(&self) -> Duration {
        let sleep_max = if self.may_accept.contains(&true) { PAUSE } else { SLEEP_MAX };
        let oldest = self.halves.values().next();
        oldest.map_or(sleep_max, |oldest| PATIENCE.saturating_sub(oldest.since.elapsed()).min(sleep_max))
    }

    fn accept(&mut self, port: usize) {
        for _ in 0..ACCEPTS_MAX {
            if !self.may_accept[port] {
                return;
            }
            match self.listeners[port].accept() {
                Ok((stream, peer)) => self.admit(port, stream, peer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.may_accept[port] = false,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
                    ) => {}
                // Descriptors or memory are out: tried again after a pause.
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, port: usize, mut stream: TcpStream, peer: SocketAddr) {
        // A socket that cannot say where it came to has broken meanwhile.
        let Ok(own) = stream.local_addr() else { return };
        let origin = origin(peer.ip(), own.ip());
        if !self.has_room(origin) {
            self.shared.crowded.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // Latency matters more than segments; a socket that cannot be told so still works.
        let _ = stream.set_nodelay(true);
        let number = self.accepted;
        self.accepted += 1;
        let interest = Interest::READABLE.add(Interest::WRITABLE);
        let registered = self.poll.registry().register(&mut stream, Token(number), interest);
        let tls = ServerConnection::new(Arc::clone(&self.tls));
        if let (Ok(()), Ok(tls)) = (registered, tls) {
            let stream = TlsStream::new(stream, tls);
            let since = Instant::now();
            self.by_origin.insert(origin, self.time_ns(since), number);
            self.halves.insert(number, Half { stream, port, peer, origin, since, is_tls: false });
        }
    }

    fn time_ns(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether there is room for one more. One of the network with most makes room, or the oldest if it has had the time to be ready.
    fn has_room(&mut self, origin: Origin) -> bool {
        if self.halves.len() + self.shared.waiting.load(Ordering::Relaxed) < self.count_max {
            return true;
        }
        let before_ns = self.time_ns(Instant::now()).saturating_sub(CROWDED_PATIENCE.as_nanos() as u64);
        let Some(late) = self.by_origin.giver(origin, before_ns) else { return false };
        self.take(late).expect("who makes room is there");
        self.shared.crowded.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn take(&mut self, number: usize) -> Option<Half> {
        let half = self.halves.remove(&number)?;
        let was_there = self.by_origin.remove(half.origin, self.time_ns(half.since), number);
        assert!(was_there, "a handshake under way is counted");
        Some(half)
    }

    fn go_on(&mut self, number: usize) {
        let Some(half) = self.halves.get_mut(&number) else { return };
        // Other protocols have no word for it before a logon.
        let refusal = if half.port == 0 { &self.refusal[..] } else { &[] };
        let state = half.go_on(refusal);
        if matches!(state, Ok(false)) {
            return;
        }
        let mut half = self.take(number).expect("just found");
        let _ = self.poll.registry().deregister(half.stream.socket());
        match state {
            Ok(_) => {
                self.shared.waiting.fetch_add(1, Ordering::Relaxed);
                // Without its gateway the thread is about to end; one that cannot be woken looks by itself.
                let _ = self.done[half.port].send(Stream::Tls(Box::new(half.stream)));
                let _ = self.waker.wake();
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                self.shared.failed.fetch_add(1, Ordering::Relaxed);
                self.complaints.say(half.peer, &error);
            }
            // It has gone, or its connection broke.
            Err(_) => {}
        }
    }

    /// Ends those that take too long.
    fn sweep(&mut self) {
        while let Some((&late, _)) =
            self.halves.first_key_value().filter(|(_, half)| half.since.elapsed() > PATIENCE)
        {
            self.take(late);
            self.shared.silent.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A handshake under way.
struct Half {
    stream: TlsStream<TcpStream>,
    /// Where it came to.
    port: usize,
    peer: SocketAddr,
    origin: Origin,
    since: Instant,
    /// Its first byte says that it is TLS.
    is_tls: bool,
}

impl Half {
    /// Continues as far as that goes now. Says whether it is over.
    fn go_on(&mut self, refusal: &[u8]) -> io::Result<bool> {
        if !self.is_tls {
            let mut first = [0];
            match self.stream.socket().peek(&mut first) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) if first[0] != TLS_FIRST => return Err(self.refuse_plain(refusal)),
                Ok(_) => self.is_tls = true,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.stream.shake_hands()
    }

    /// Tells a client that speaks the protocol without TLS, in its own words, what it lacks.
    fn refuse_plain(&mut self, refusal: &[u8]) -> io::Error {
        // As far as the socket takes it; what is unread would end the connection before it is read.
        let socket = self.stream.socket();
        let _ = socket.read(&mut [0; 4_096]);
        let _ = socket.write(refusal);
        io::Error::new(ErrorKind::InvalidData, "connected without TLS; sent a refusal")
    }
}

/// What is said to the operator of handshakes that failed.
#[derive(Default)]
struct Complaints {
    said: Option<Instant>,
    unsaid: u64,
}

impl Complaints {
    fn say(&mut self, peer: SocketAddr, why: &io::Error) {
        if self.said.is_some_and(|said| said.elapsed() < COMPLAIN_EVERY) {
            self.unsaid += 1;
            return;
        }
        let others = match std::mem::take(&mut self.unsaid) {
            0 => String::new(),
            count => format!("; {count} other handshakes failed since the last such line"),
        };
        complain(&format_args!("TLS handshake with {peer} failed: {why}{others}"));
        self.said = Some(Instant::now());
    }
}
