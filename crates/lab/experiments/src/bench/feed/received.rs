//! Packets on two sockets become books: the way of a program that uses `pares-receiver`.
//!
//! A sender on another thread sends each packet to both lines, through the loopback, and never has more on its way than sockets hold: it watches how far
//! the receiver is. So nothing is lost, and the rate is the receiver's, or the sender's if that is slower. A message counts once; each is
//! received twice.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pares_feed::mold::Packet;
use pares_load::{LabError, failed};
use pares_receiver::{FeedEvent, FeedLines, FeedReceiver, Received, ReceiverConfig};
use pares_types::ShardId;

use super::Rates;
use super::packets::Packets;

const SHARD: ShardId = ShardId(0);
/// Messages on their way: some hundred packets a line.
const AHEAD: u64 = 4_096;
/// How long nothing may come.
const PATIENCE: Duration = Duration::from_secs(10);

/// One round. Says how many messages came by one line only.
///
/// # Errors
/// If not everything comes.
pub(super) fn round(opening: &Packets, trading: &Packets, rates: &mut Rates) -> Result<u64, LabError> {
    let (mut receiver, lines) = open()?;
    let (received, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| send([opening, trading], &lines, &received, &stop));
        let took = receive(&mut receiver, [opening.messages(), trading.messages()], &received);
        stop.store(true, Ordering::Relaxed);
        sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        rates.add(trading.messages(), took?.as_nanos());
        Ok::<_, LabError>(())
    })?;
    let twice = receiver.counters(SHARD).map_or(0, |counters| counters.dropped.known);
    Ok((opening.messages() + trading.messages()).saturating_sub(twice))
}

fn open() -> Result<(FeedReceiver, [SocketAddr; 2]), LabError> {
    let free = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    let line = || free().map_err(LabError::io("finding a port for a line"));
    let lines = [line()?, line()?];
    let config = ReceiverConfig {
        shards: vec![SHARD],
        lines: FeedLines::Each(vec![(lines[0], lines[1])]),
        ..ReceiverConfig::default()
    };
    Ok((FeedReceiver::open(&config).map_err(failed("opening the lines"))?, lines))
}

/// Takes all messages. How long those after the opening took.
fn receive(
    receiver: &mut FeedReceiver,
    [opening, trading]: [u64; 2],
    received: &AtomicU64,
) -> Result<Duration, LabError> {
    let (mut begun, mut heard, mut last) = (Instant::now(), Instant::now(), 0);
    while last < opening + trading {
        let before = last;
        let polled = receiver.poll(Duration::from_millis(100), |from| {
            if let Received::Event(FeedEvent::Message { number, .. }) = from.received {
                last = number;
                received.store(number, Ordering::Release);
                if number == opening {
                    begun = Instant::now();
                }
            }
        });
        polled.map_err(failed("receiving"))?;
        if last > before {
            heard = Instant::now();
        } else if heard.elapsed() > PATIENCE {
            return Err(LabError::Failed(format!("message {} does not come", last + 1)));
        }
    }
    Ok(begun.elapsed())
}

/// Sends every packet to both lines.
fn send(
    all: [&Packets; 2],
    lines: &[SocketAddr; 2],
    received: &AtomicU64,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LabError::io("opening a socket"))?;
    for bytes in all.into_iter().flat_map(Packets::iter) {
        let next = Packet::read(bytes).map_or(0, |packet| packet.next());
        while next > received.load(Ordering::Acquire) + AHEAD {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::yield_now();
        }
        for line in lines {
            socket.send_to(bytes, line).map_err(LabError::io("sending a packet"))?;
        }
    }
    Ok(())
}
