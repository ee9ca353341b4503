//! Guests, a thread for each port: each opens connections at a pace, holds some, and says what the attack is.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult};
use pares_types::MemberId;
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use super::bytes::{Told, is_let_in, is_looked_at, opening};
use super::wrong_keys::guess;
use super::{Args, Attack, MEMBERS, PORTS, Port};

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

/// How many connections guests opened, and held at once at most; and how often an answer showed that the server looked at their fault, by port.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) opened: u64,
    pub(super) held: u64,
    pub(super) answered: BTreeMap<Port, u64>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.held = self.held.max(other.held);
        other.answered.into_iter().for_each(|(port, count)| *self.answered.entry(port).or_default() += count);
    }

    fn note(&mut self, port: Port, is_looked_at: bool) {
        *self.answered.entry(port).or_default() += u64::from(is_looked_at);
    }
}

/// All guests of a stretch.
pub(super) struct Guests {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Tally, LabError>>>,
}

impl Guests {
    pub(super) fn send(args: &Args, attack: Attack, ports: &[(Port, SocketAddr)]) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let count = u32::try_from(ports.len()).expect("a few");
        let (held, every) = match attack {
            Attack::Connections => (args.connections / count, Duration::from_secs(1) / OPENED_PER_S),
            _ => (HELD, Duration::from_secs(1) * count / args.attempts),
        };
        let send = |&(port, address): &(Port, SocketAddr)| {
            let (plan, stop) =
                (Plan { attack, port, address, held: held as usize, every }, Arc::clone(&stop));
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
            held += tally.held;
            all.add(tally);
        }
        Ok(Tally { held, ..all })
    }
}

/// What the guests of one port do.
struct Plan {
    attack: Attack,
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
        tally.note(self.port, false);
        let (mut due, mut looked) = (Instant::now(), Instant::now());
        while !stop.load(Ordering::Relaxed) {
            if looked.elapsed() >= self.look_every() {
                looked = Instant::now();
                self.look(&mut guests, &mut tally);
            }
            if Instant::now() < due || self.is_full(&guests) {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            // Who cannot keep pace comes less often.
            due = (due + self.every).max(Instant::now());
            self.come(&mut guests, &mut tally)?;
        }
        self.look(&mut guests, &mut tally);
        for guest in guests {
            tally.note(self.port, self.leave(guest)?);
        }
        Ok(tally)
    }

    /// One more comes, and the oldest makes room.
    fn come(&self, guests: &mut VecDeque<Guest>, tally: &mut Tally) -> LabResult {
        if self.attack == Attack::WrongKeys {
            tally.note(self.port, guess(self.port, self.address, member(self.port, tally.opened))?);
            (tally.opened, tally.held) = (tally.opened + 1, 1);
            return Ok(());
        }
        let Some(guest) = self.arrive(tally.opened)? else { return Ok(()) };
        tally.opened += 1;
        guests.push_back(guest);
        if guests.len() > self.held
            && let Some(oldest) = guests.pop_front()
        {
            tally.note(self.port, self.leave(oldest)?);
        }
        Ok(())
    }

    /// Forgets who was turned away. The others are held.
    fn look(&self, guests: &mut VecDeque<Guest>, tally: &mut Tally) {
        guests.retain_mut(|guest| guest.stays(self.attack));
        tally.held = tally.held.max(guests.len() as u64);
    }

    fn look_every(&self) -> Duration {
        if self.attack == Attack::SlowLoris { LETTER } else { LOOK }
    }

    /// Those who hold many open let none go; who was turned away leaves room for another.
    fn is_full(&self, guests: &VecDeque<Guest>) -> bool {
        self.attack == Attack::Connections && guests.len() >= self.held
    }

    /// One comes, if there is a way in.
    fn arrive(&self, turn: u64) -> Result<Option<Guest>, LabError> {
        let Some(mut stream) = connect(self.address)? else { return Ok(None) };
        if stream.set_nonblocking(true).is_err() {
            return Ok(None);
        }
        let mut bytes = opening(self.attack, self.port, turn, member(self.port, turn));
        // Who is slow begins at once, so that each has said something.
        let unsaid =
            if self.attack == Attack::SlowLoris { bytes.split_off(1).into() } else { VecDeque::new() };
        // Who is cut off while he speaks has been heard enough.
        let _cut = stream.write_all(&bytes);
        Ok(Some(Guest { stream, unsaid }))
    }

    /// A guest leaves. Says whether an answer showed that the server looked at its fault.
    fn leave(&self, mut guest: Guest) -> Result<bool, LabError> {
        match Told::on(&mut guest.stream) {
            Told::Answer(answer) if is_let_in(self.port, &answer) => {
                Err(let_in(self.address, &String::from_utf8_lossy(&answer)))
            }
            told => Ok(is_looked_at(self.attack, self.port, &told)),
        }
    }
}

/// A connection; `None` if there is no room for it.
pub(super) fn connect(address: SocketAddr) -> Result<Option<TcpStream>, LabError> {
    match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => is_there(address, &error).map(|()| None),
    }
}

/// What a connection failed of is no reason to think that nobody listens there any more.
///
/// # Errors
/// If it is.
pub(super) fn is_there(address: SocketAddr, error: &io::Error) -> Result<(), LabError> {
    if error.kind() == ErrorKind::ConnectionRefused {
        return Err(LabError::Failed(format!("nothing listens at {address} any more")));
    }
    Ok(())
}

/// A guest was let in, and received `told`.
pub(super) fn let_in(address: SocketAddr, told: &str) -> LabError {
    LabError::Failed(format!("a hostile client was let in at {address}: {told}"))
}

/// Whom the `turn`th guest of a port calls himself: a member, or one that there is not. No two ports share a name: only so many wrong keys of each are looked
/// at, and those of one port would leave none to another.
fn member(port: Port, turn: u64) -> MemberId {
    let name = (turn * PORTS + port as u64) % u64::from(2 * MEMBERS);
    MemberId(1 + u32::try_from(name).expect("small"))
}

impl Guest {
    /// Whether the connection is still there; the next byte is sent on it. A guest that sends nothing, and receives something, was turned away with it. Answers to
    /// other guests stay unread until they leave.
    fn stays(&mut self, attack: Attack) -> bool {
        let said = match self.unsaid.pop_front() {
            Some(byte) => self.stream.write(&[byte]),
            None if attack == Attack::Connections => match self.stream.peek(&mut [0]) {
                Ok(_) => return false,
                waits => waits,
            },
            None => return true,
        };
        said.map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true)
    }
}
