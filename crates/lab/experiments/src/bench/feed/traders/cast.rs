//! The stream by UDP to one who listens: a server's group is an address of the loopback here.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_feed::mold::Packet;
use pares_load::{LabError, Worker};
use pares_member::MemberConfig;
use rustix::net::sockopt;

use super::{ONLY, submit};
use crate::member::Desk;

/// What the socket may hold while the listener does something else.
const SOCKET_BYTES: usize = 16 << 20;

/// What a trader by UDP received.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Cast {
    pub(in super::super) messages_per_s: u64,
    pub(in super::super) packets_per_s: u64,
    /// Messages that did not come.
    pub(in super::super) lost: u64,
}

/// Sends so many items a second, for so many seconds.
///
/// # Errors
/// If the server does not come up, or a socket cannot be had.
pub(in super::super) fn measure(rate: u64, seconds: u64) -> Result<Cast, LabError> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LabError::io("opening a socket"))?;
    let group = socket.local_addr().map_err(LabError::io("asking for a port"))?;
    let timeout = socket.set_read_timeout(Some(Duration::from_millis(50)));
    timeout.map_err(LabError::io("setting a socket"))?;
    // The system may give less.
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES);
    let mut desk = Desk::of(MemberConfig { groups: vec![group], ..MemberConfig::local(1) })?;
    desk.start(ONLY)?;
    let server = desk.address(ONLY)?;
    let listener = Worker::start("listener", move |stop| listen(&socket, stop))?;
    let submitted = submit(server, rate, seconds);
    let (heard, submitted) = (listener.finish(), submitted?);
    let heard = heard.map_err(LabError::io("listening"))?;
    desk.end(ONLY)?;
    let took = heard.took.as_secs_f64().max(1e-9);
    Ok(Cast {
        messages_per_s: (heard.messages as f64 / took) as u64,
        packets_per_s: (heard.packets as f64 / took) as u64,
        lost: submitted.saturating_sub(heard.messages),
    })
}

#[derive(Default)]
struct Heard {
    messages: u64,
    packets: u64,
    took: Duration,
}

/// Listens until `stop` is set and nothing comes any more.
fn listen(socket: &UdpSocket, stop: &AtomicBool) -> std::io::Result<Heard> {
    let (mut heard, mut bytes, mut next, mut begun) = (Heard::default(), vec![0; 65_536], 0, None);
    loop {
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if stop.load(Ordering::Relaxed) {
                    return Ok(heard);
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        let Ok(packet) = Packet::read(&bytes[..length]) else { continue };
        let messages = packet.next().saturating_sub(packet.sequence.max(next));
        if messages > 0 {
            next = packet.next();
            heard.took = begun.get_or_insert_with(Instant::now).elapsed();
            (heard.messages, heard.packets) = (heard.messages + messages, heard.packets + 1);
        }
    }
}
