//! The way from the publishers to those who receive: it loses packets of each line by themselves, sends some twice, holds some back, and is cut now and then.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pares_flow::Random;
use pares_load::{LabError, Worker};

/// Bytes of the largest packet, and more.
const PACKET_BYTES: usize = 2_048;
/// Packets of one line taken in a turn.
const TURN_PACKETS: usize = 64;
/// Of a thousand packets so many are sent twice, and so many held back until the next.
const TWICE_PERMILLE: u64 = 10;
const HELD_PERMILLE: u64 = 30;
/// Ports are tried from one of these on, in steps.
const PORTS: std::ops::Range<u16> = 31_000..60_000;

/// Where the relay forwards one shard's packets of one line.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// Which line, 0 or 1.
    pub(super) line: usize,
    pub(super) shard: u16,
    pub(super) to: Vec<SocketAddr>,
}

/// A port from which on so many are free, for both lines.
pub(super) fn free_ports(shards: u16) -> Result<[u16; 2], LabError> {
    let is_free = |port: u16| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let begins = PORTS.step_by(usize::from(shards.max(1)));
    let mut found = begins.filter(|&first| (first..first + shards).all(is_free));
    match (found.next(), found.next()) {
        (Some(a), Some(b)) => Ok([a, b]),
        _ => Err(LabError::Failed("no ports are free for the lines".into())),
    }
}

/// An active relay.
pub(super) struct Relay {
    /// Whether a line is cut.
    pub(super) cut: Arc<[AtomicBool; 2]>,
    worker: Worker<u64>,
}

/// One socket at which packets come in.
struct Entry {
    socket: UdpSocket,
    way: Way,
    held: Vec<Option<Vec<u8>>>,
}

impl Relay {
    /// Hears the lines that begin at those ports.
    pub(super) fn start(
        ports: [u16; 2],
        ways: Vec<Way>,
        lost_percent: u64,
        seed: u64,
    ) -> Result<Self, LabError> {
        let entry = |way: Way| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, ports[way.line] + way.shard))?;
            socket.set_nonblocking(true)?;
            let held = vec![None; way.to.len()];
            Ok(Entry { socket, way, held })
        };
        let entries: std::io::Result<Vec<Entry>> = ways.into_iter().map(entry).collect();
        let entries = entries.map_err(LabError::io("hearing the lines"))?;
        let cut = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let mut running =
            Running { entries, lost_percent, random: Random::new(seed), lost: 0, cut: Arc::clone(&cut) };
        let worker = Worker::start("relay", move |stop| running.run(stop))?;
        Ok(Self { cut, worker })
    }

    /// Ends it; says how many packets it lost.
    pub(super) fn stop(self) -> u64 {
        self.worker.finish()
    }
}

struct Running {
    entries: Vec<Entry>,
    lost_percent: u64,
    random: Random,
    lost: u64,
    cut: Arc<[AtomicBool; 2]>,
}

impl Running {
    fn run(&mut self, stop: &AtomicBool) -> u64 {
        let mut bytes = [0; PACKET_BYTES];
        while !stop.load(Ordering::Relaxed) {
            let mut taken = 0;
            for index in 0..self.entries.len() {
                for _ in 0..TURN_PACKETS {
                    match self.entries[index].socket.recv(&mut bytes) {
                        Ok(length) => self.pass_on(index, &bytes[..length]),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(_) => continue,
                    }
                    taken += 1;
                }
            }
            if taken == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        self.lost
    }

    fn pass_on(&mut self, index: usize, packet: &[u8]) {
        let line = self.entries[index].way.line;
        let is_cut = self.cut[line].load(Ordering::Relaxed);
        for to in 0..self.entries[index].way.to.len() {
            if is_cut || self.random.below(100) < self.lost_percent {
                self.lost += 1;
                continue;
            }
            let (dice, hold) = (self.random.below(1_000), self.random.below(1_000) < HELD_PERMILLE);
            let Entry { socket, way, held } = &mut self.entries[index];
            let send = |packet: &[u8]| drop(socket.send_to(packet, way.to[to]));
            let before = held[to].take();
            if hold && before.is_none() {
                held[to] = Some(packet.to_vec());
                continue;
            }
            send(packet);
            if dice < TWICE_PERMILLE {
                send(packet);
            }
            // What was held back comes behind a later one.
            before.iter().for_each(|before| send(before));
        }
    }
}
