//! The proxy's thread: sockets, and a timer that is accurate to microseconds.
//!
//! The timeout of a poll counts milliseconds, rounded up; on a line of 5 ms that would be an error of a tenth and more. So
//! the next deadline goes to a timer of the kernel's (`timerfd`), which is polled like a socket.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::line::{Line, PIECE_BYTES};
use crate::pair::{Next, Pair};
use crate::{Direction, Forward, Handle, ProxySettings, Shared, Wishes};

const WAKER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
/// Listeners have the tokens below this.
const LISTENERS: usize = usize::MAX - 2;
/// Pieces read before it is looked whether something is due.
const READS: usize = 32;
/// What a piece takes besides its bytes.
pub(super) const PIECE_EXTRA: usize = 64;

pub(super) struct Engine {
    poll: Poll,
    timer: OwnedFd,
    listeners: Vec<(TcpListener, Forward, u64)>,
    shared: Arc<Shared>,
    pairs: Vec<Option<Pair>>,
    free: Vec<usize>,
    lines: [Line; 2],
    cut: bool,
    /// Which way nothing comes out of.
    black: [bool; 2],
    /// Which way of which pair has something to come out, and when.
    due: BTreeSet<(u64, usize, usize)>,
    /// Which pairs may have something to enter.
    reading: [VecDeque<usize>; 2],
    under_way_max: usize,
    scratch: Vec<u8>,
}

impl Engine {
    pub(super) fn open(settings: ProxySettings) -> io::Result<(Self, Vec<SocketAddr>, Handle)> {
        let poll = Poll::new()?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for (i, forward) in settings.forwards.iter().enumerate() {
            let mut listener = TcpListener::bind(forward.listen)?;
            poll.registry().register(&mut listener, Token(LISTENERS - i), Interest::READABLE)?;
            addresses.push(listener.local_addr()?);
            listeners.push((listener, *forward, 0));
        }
        if listeners.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a proxy without a forward"));
        }
        let conditions = [settings.forth, settings.back];
        let wishes = Wishes { conditions, cut: false, stop: false };
        let waker = mio::Waker::new(poll.registry(), WAKER)?;
        let shared = Arc::new(Shared { wishes: Mutex::new(wishes), meters: Default::default(), waker });
        let engine = Self {
            poll,
            timer,
            listeners,
            shared: shared.clone(),
            pairs: Vec::new(),
            free: Vec::new(),
            lines: [Line::new(settings.forth, settings.seed), Line::new(settings.back, !settings.seed)],
            cut: false,
            black: [false; 2],
            due: BTreeSet::new(),
            reading: Default::default(),
            under_way_max: settings.under_way_max,
            scratch: vec![0; PIECE_BYTES],
        };
        Ok((engine, addresses, Handle(shared)))
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(256);
        while self.heed_wishes() {
            self.deliver_due();
            self.read_some();
            if !self.wait(&mut events) {
                return;
            }
        }
    }

    /// Carries out the handle's wishes. Whether to continue.
    fn heed_wishes(&mut self) -> bool {
        let shared = self.shared.clone();
        let wishes = shared.wishes();
        let mut healed = false;
        for (way, wish) in wishes.conditions.iter().enumerate() {
            healed |= std::mem::replace(&mut self.black[way], wish.black_hole) && !wish.black_hole;
        }
        let cut = !std::mem::replace(&mut self.cut, wishes.cut) && wishes.cut;
        let stop = wishes.stop;
        drop(wishes);
        for slot in 0..self.pairs.len() {
            if cut {
                self.break_off(slot);
            } else if healed {
                Direction::BOTH.into_iter().for_each(|direction| self.deliver(slot, direction));
            }
        }
        !stop
    }

    fn deliver_due(&mut self) {
        let now_ns = now_ns();
        while let Some(&(due_ns, slot, way)) = self.due.first().filter(|(due_ns, ..)| *due_ns <= now_ns) {
            self.due.remove(&(due_ns, slot, way));
            self.pairs[slot].as_mut().expect("what is gone is not due").ways[way].awaited_ns = None;
            self.deliver(slot, Direction::BOTH[way]);
        }
    }

    /// Writes what is due of one way, and awaits what is not.
    fn deliver(&mut self, slot: usize, direction: Direction) {
        let way = direction as usize;
        if self.black[way] {
            return;
        }
        let Some(pair) = self.pairs[slot].as_mut() else { return };
        match pair.deliver(direction, now_ns(), &self.shared.meters[way]) {
            Err(_) => return self.break_off(slot),
            Ok(Next::Over) => return self.remove(slot),
            Ok(Next::Due(due_ns)) => self.wait_for(slot, way, due_ns),
            Ok(Next::Idle) => {}
        }
        self.list(slot, way);
    }

    fn wait_for(&mut self, slot: usize, way: usize, due_ns: u64) {
        let Some(pair) = self.pairs[slot].as_mut() else { return };
        if let Some(earlier) = pair.ways[way].awaited_ns.replace(due_ns) {
            self.due.remove(&(earlier, slot, way));
        }
        self.due.insert((due_ns, slot, way));
    }

    /// Puts a way into the list of those to read, if it may be read.
    fn list(&mut self, slot: usize, way: usize) {
        let Some(pair) = self.pairs[slot].as_mut() else { return };
        let way_ = &mut pair.ways[way];
        if way_.readable && !way_.listed && way_.bytes < self.under_way_max {
            way_.listed = true;
            self.reading[way].push_back(slot);
        }
    }

    /// Reads a piece of each in turn, as long as the line takes them.
    fn read_some(&mut self) {
        for direction in Direction::BOTH {
            let way = direction as usize;
            for _ in 0..READS {
                if self.lines[way].open_ns() > now_ns() {
                    break;
                }
                let Some(slot) = self.reading[way].pop_front() else { break };
                let Some(pair) = self.pairs[slot].as_mut() else { continue };
                pair.ways[way].listed = false;
                if !pair.ways[way].readable {
                    continue;
                }
                let wanted = self.lines[way].piece_bytes();
                if let Some(piece) = pair.read(direction, &mut self.scratch[..wanted]) {
                    // Time and conditions are of after the reading: what was sent later than a change must not pass
                    // as if it were earlier, nor come out early.
                    self.lines[way].conditions = self.shared.wishes().conditions[way];
                    pair.enter(direction, piece, &mut self.lines[way], now_ns(), &self.shared.meters[way]);
                }
                self.list(slot, way);
                if self.pairs[slot].as_ref().is_some_and(|pair| pair.ways[way].awaited_ns.is_none()) {
                    self.deliver(slot, direction);
                }
            }
        }
    }

    /// Waits for sockets, the next piece that is due, or room on the line. Whether it still can.
    fn wait(&mut self, events: &mut Events) -> bool {
        let open = [0, 1].map(|way| (!self.reading[way].is_empty()).then(|| self.lines[way].open_ns()));
        let due = self.due.first().map(|(due_ns, ..)| *due_ns);
        let next_ns = open.into_iter().flatten().chain(due).min();
        let timeout = if next_ns.is_some_and(|next_ns| next_ns <= now_ns()) {
            Some(Duration::ZERO)
        } else {
            self.set_timer(next_ns);
            None
        };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Err(_) => return false,
            Ok(()) => {}
        }
        for event in &*events {
            match event.token() {
                WAKER => {}
                TIMER => {
                    // What it says is known; read, so that its next word is news.
                    let _ = rustix::io::read(&self.timer, &mut [0; 8]);
                }
                Token(token) if token > LISTENERS - self.listeners.len() => self.accept(LISTENERS - token),
                Token(token) => {
                    let gone = event.is_error();
                    self.on_ready(
                        token / 2,
                        token % 2,
                        event.is_readable() || gone,
                        event.is_writable() || gone,
                    );
                }
            }
        }
        true
    }

    /// With no time it stays still.
    fn set_timer(&self, at_ns: Option<u64>) {
        let at_ns = at_ns.unwrap_or(0);
        let at = Timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).expect("a timer takes any time");
    }

    fn on_ready(&mut self, slot: usize, end: usize, readable: bool, writable: bool) {
        let Some(pair) = self.pairs.get_mut(slot).and_then(Option::as_mut) else { return };
        if end == 1 && !pair.connected {
            match is_connected(pair.stream(1)) {
                Ok(true) => pair.connected = true,
                Ok(false) => return,
                Err(_) => return self.break_off(slot),
            }
            let _ = pair.stream(1).set_nodelay(true);
        }
        // What comes from this end enters the way that begins here; what goes to it comes out of the other.
        if readable {
            pair.ways[end].readable = true;
            self.list(slot, end);
        }
        if writable {
            self.deliver(slot, Direction::BOTH[1 - end]);
        }
    }

    fn accept(&mut self, i: usize) {
        while let Ok((from, _)) = self.listeners[i].0.accept() {
            let (_, forward, count) = &mut self.listeners[i];
            *count += 1;
            let name = (i as u64) << 32 | *count;
            if self.shared.wishes().cut {
                // Reset, not ended: nobody is there.
                let _ = rustix::net::sockopt::set_socket_linger(&from, Some(Duration::ZERO));
                continue;
            }
            let _ = from.set_nodelay(true);
            // If there are no sockets the one that came is closed, and its client tries again.
            let Ok(target) = TcpStream::connect(forward.target) else { continue };
            let slot = self.free.pop().unwrap_or_else(|| {
                self.pairs.push(None);
                self.pairs.len() - 1
            });
            let pair = self.pairs[slot].insert(Pair::new(name, from, target));
            for end in 0..2 {
                let interest = Interest::READABLE.add(Interest::WRITABLE);
                // A socket that cannot be polled stays silent; its other end gives it up.
                let _ = self.poll.registry().register(pair.stream(end), Token(2 * slot + end), interest);
            }
        }
    }

    /// Ends a connection so that both ends notice at once.
    fn break_off(&mut self, slot: usize) {
        if let Some(pair) = &self.pairs[slot] {
            pair.break_off();
            self.remove(slot);
        }
    }

    fn remove(&mut self, slot: usize) {
        let Some(mut pair) = self.pairs[slot].take() else { return };
        for way in 0..2 {
            if let Some(due_ns) = pair.ways[way].awaited_ns {
                self.due.remove(&(due_ns, slot, way));
            }
            self.reading[way].retain(|listed| *listed != slot);
            let _ = self.poll.registry().deregister(pair.stream(way));
        }
        self.free.push(slot);
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether a socket that is being connected is so now.
fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}
