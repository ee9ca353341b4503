//! Guests, a thread for each port: each opens connections at a pace, holds some, and says what the ill is.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, Credential, Options, Secret};
use pares_load::LabError;
use pares_types::{MemberId, Reason};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use super::bytes::{is_let_in, opening};
use super::{Args, Ill, MEMBERS, Port};

/// The nice value of guests.
const LOWEST: i32 = 19;
/// Connections of a port that are held while something is said on them.
const HELD: u32 = 64;
/// Those who hold many open so many a second at a port.
const OPENED_PER_S: u32 = 2_500;
/// Between two bytes of those who are slow.
const LETTER: Duration = Duration::from_millis(50);
/// Between two looks at who was turned away.
const LOOK: Duration = Duration::from_millis(500);
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// What is read of an answer.
const ANSWER_BYTES: usize = 4 << 10;

/// How many connections guests opened, and held at once at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) opened: u64,
    pub(super) held: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.held = self.held.max(other.held);
    }
}

/// All guests of a stretch.
pub(super) struct Guests {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Tally, LabError>>>,
}

impl Guests {
    pub(super) fn send(args: &Args, ill: Ill, ports: &[(Port, SocketAddr)]) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let count = u32::try_from(ports.len()).expect("a few");
        let (held, every) = match ill {
            Ill::Connections => (args.connections / count, Duration::from_secs(1) / OPENED_PER_S),
            _ => (HELD, Duration::from_secs(1) * count / args.attempts),
        };
        let send = |&(port, address): &(Port, SocketAddr)| {
            let (plan, stop) = (Plan { ill, port, address, held: held as usize, every }, Arc::clone(&stop));
            let builder = std::thread::Builder::new().name("guests".into());
            builder.spawn(move || plan.carry_out(&stop)).map_err(LabError::io("starting guests"))
        };
        let threads = ports.iter().map(send).collect::<Result<_, _>>()?;
        Ok(Self { stop, threads })
    }

    /// All leave.
    pub(super) fn end(self) -> Result<Tally, LabError> {
        self.stop.store(true, Ordering::Relaxed);
        let (mut all, mut held) = (Tally::default(), 0);
        for thread in self.threads {
            let tally = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all.add(tally);
            held += tally.held;
        }
        Ok(Tally { held, ..all })
    }
}

/// What the guests of one port do.
struct Plan {
    ill: Ill,
    port: Port,
    address: SocketAddr,
    /// So many connections stay open; the oldest makes room.
    held: usize,
    every: Duration,
}

/// A connection, and what is still to be said on it a byte at a time.
struct Guest {
    stream: TcpStream,
    unsaid: VecDeque<u8>,
}

impl Plan {
    fn carry_out(&self, stop: &AtomicBool) -> Result<Tally, LabError> {
        // On other machines they would take no processor time from the exchange.
        let _best_effort = setpriority_process(Some(gettid()), LOWEST);
        let (mut guests, mut tally) = (VecDeque::new(), Tally::default());
        let (mut due, mut looked) = (Instant::now(), Instant::now());
        while !stop.load(Ordering::Relaxed) {
            if looked.elapsed() >= self.look_every() {
                looked = Instant::now();
                guests.retain_mut(|guest: &mut Guest| guest.stays(self.ill));
            }
            if Instant::now() < due || self.is_full(&guests) {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            // Who cannot keep pace comes less often.
            due = (due + self.every).max(Instant::now());
            if self.ill == Ill::WrongKeys && self.port == Port::Binary {
                tally.opened += u64::from(self.guess(tally.opened)?);
                continue;
            }
            let Some(guest) = self.arrive(tally.opened) else { continue };
            tally.opened += 1;
            guests.push_back(guest);
            if guests.len() > self.held {
                guests.pop_front().map_or(Ok(()), |oldest| self.leave(oldest))?;
            }
            tally.held = tally.held.max(guests.len() as u64);
        }
        guests.into_iter().try_for_each(|guest| self.leave(guest))?;
        Ok(tally)
    }

    fn look_every(&self) -> Duration {
        if self.ill == Ill::SlowLoris { LETTER } else { LOOK }
    }

    /// Those who hold many open let none go; who was turned away leaves room for another.
    fn is_full(&self, guests: &VecDeque<Guest>) -> bool {
        self.ill == Ill::Connections && guests.len() >= self.held
    }

    /// One comes, if there is a way in.
    fn arrive(&self, turn: u64) -> Option<Guest> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_LIMIT).ok()?;
        stream.set_nonblocking(true).ok()?;
        let mut bytes = opening(self.ill, self.port, turn, member(turn));
        let unsaid =
            if self.ill == Ill::SlowLoris { std::mem::take(&mut bytes).into() } else { VecDeque::new() };
        // Who is cut off while he speaks has been heard enough.
        let _cut = stream.write_all(&bytes);
        Some(Guest { stream, unsaid })
    }

    /// One goes; what he was told is looked at.
    fn leave(&self, mut guest: Guest) -> Result<(), LabError> {
        let mut answer = [0; ANSWER_BYTES];
        let count = guest.stream.read(&mut answer).unwrap_or(0);
        if is_let_in(self.port, &answer[..count]) {
            let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
            return Err(LabError::Failed(format!("a guest was let in at {}: {answer}", self.address)));
        }
        Ok(())
    }

    /// Tries a wrong key by the binary protocol, for members that there are and members that there are not. Says whether it was refused for that.
    fn guess(&self, turn: u64) -> Result<bool, LabError> {
        let credential = Some(Credential { session: 1, secret: Secret::generate() });
        let options = Options { credential, ..Options::default() };
        let member = member(turn);
        match Client::connect_with(self.address, member, options) {
            Err(ClientError::Rejected(Reason::WrongKey | Reason::TooManyAttempts)) => Ok(true),
            // No room among those who have not signed on yet.
            Err(ClientError::Rejected(Reason::Overloaded) | ClientError::Closed) => Ok(false),
            Err(error) => Err(error.into()),
            Ok(_) => Err(LabError::Failed(format!("member {member} was let in with a wrong key"))),
        }
    }
}

/// Whom the `turn`th guest calls himself.
fn member(turn: u64) -> MemberId {
    MemberId(1 + u32::try_from(turn % u64::from(2 * MEMBERS)).expect("small"))
}

impl Guest {
    /// Whether the connection is still there; the next byte is said on it. What was answered stays for who leaves.
    fn stays(&mut self, ill: Ill) -> bool {
        let said = match self.unsaid.pop_front() {
            Some(byte) => self.stream.write(&[byte]),
            None if ill == Ill::Connections => self.stream.peek(&mut [0]).and_then(|count| match count {
                0 => Err(ErrorKind::ConnectionAborted.into()),
                _ => Ok(count),
            }),
            None => return true,
        };
        said.map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true)
    }
}
