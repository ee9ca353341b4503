//! The acceptor on TCP: a thread for each connection, which waits for its peer.
//!
//! A peer that asks for much and reads nothing must not fill the memory, nor keep the others waiting: its thread waits in a write, and
//! reads nothing more of it meanwhile.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pares_os::descriptors;

use crate::acceptor::EchoAcceptor;

/// Connections at a time; others are closed as they come.
const CONNECTIONS_MAX: usize = 1_024;
/// Bytes that a connection reads, and of which it writes more, at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Without a descriptor that is free, the next connection is asked for after so long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// A peer that takes nothing for so long is cut off.
const WRITE_WAIT: Duration = Duration::from_secs(30);

/// Listens, and serves until the process ends.
#[derive(Debug)]
pub struct AcceptorSockets {
    listener: TcpListener,
    acceptor: EchoAcceptor,
}

impl AcceptorSockets {
    /// Listens on an address.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn listen(address: SocketAddr, acceptor: EchoAcceptor) -> Result<Self> {
        Ok(Self { listener: TcpListener::bind(address)?, acceptor })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves connections.
    ///
    /// # Errors
    /// If no connection can be accepted any more.
    pub fn run(&mut self) -> Result<()> {
        let (acceptor, open) = (&self.acceptor, AtomicUsize::new(0));
        std::thread::scope(|scope| {
            loop {
                match self.listener.accept() {
                    Ok((stream, _)) => {
                        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                            open.fetch_sub(1, Ordering::Relaxed);
                            continue;
                        }
                        let open = &open;
                        let served = move || {
                            // It ended: why is its peer's affair.
                            let _ = serve(acceptor, stream);
                            open.fetch_sub(1, Ordering::Relaxed);
                        };
                        if Builder::new().spawn_scoped(scope, served).is_err() {
                            open.fetch_sub(1, Ordering::Relaxed);
                        }
                    }
                    // That one is gone, or a signal came; others wait.
                    Err(error)
                        if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                    // The next one waits in the kernel until one of those that are open ends.
                    Err(error) if descriptors::are_out(&error) => std::thread::sleep(ACCEPT_PAUSE),
                    Err(error) => return Err(error),
                }
            }
        })
    }
}

fn serve(acceptor: &EchoAcceptor, stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_WAIT))?;
    let mut connection = acceptor.connect(now_ns());
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut outlet = Outlet { stream: &stream, unsent: Vec::new(), failed: Ok(()) };
    while !connection.is_closed() {
        let wait_ns = connection.next_deadline().map(|at_ns| at_ns.saturating_sub(now_ns()).max(1));
        stream.set_read_timeout(wait_ns.map(Duration::from_nanos))?;
        match (&stream).read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(length) => connection.receive(now_ns(), &bytes[..length], &mut |bytes| outlet.put(bytes)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if connection.next_deadline().is_some_and(|at_ns| now_ns() >= at_ns) {
            connection.tick(now_ns(), &mut |bytes| outlet.put(bytes));
        }
        outlet.flush()?;
    }
    Ok(())
}

/// Writes in chunks; says at the end of a turn that the peer is gone.
struct Outlet<'a> {
    stream: &'a TcpStream,
    unsent: Vec<u8>,
    failed: Result<()>,
}

impl Outlet<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        if self.unsent.len() >= CHUNK_BYTES && self.failed.is_ok() {
            self.failed = self.stream.write_all(&self.unsent);
        }
        if self.unsent.len() >= CHUNK_BYTES {
            self.unsent.clear();
        }
    }

    fn flush(&mut self) -> Result<()> {
        std::mem::replace(&mut self.failed, Ok(()))?;
        self.stream.write_all(&self.unsent)?;
        self.unsent.clear();
        Ok(())
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_fix::framing::{Cut, cut};
    use pares_fix::writer;

    fn message(number: u64, msg_type: &str, fields: &str) -> Vec<u8> {
        writer::message("FIX.4.4", msg_type.as_bytes(), (number, "TW44", now_ns(), "ISLD"), fields.as_bytes())
    }

    /// It asks for 200 orders of 7,000 bytes 40 times over, far more than sockets hold, and begins to read when all is asked.
    #[test]
    fn late_reader_gets_all_resent_messages() {
        const ORDERS: u64 = 200;
        let mut sockets =
            AcceptorSockets::listen("127.0.0.1:0".parse().unwrap(), EchoAcceptor::default()).unwrap();
        let mut client = TcpStream::connect(sockets.address().unwrap()).unwrap();
        std::thread::spawn(move || sockets.run());
        let text = "x".repeat(7_000);
        let order = |number: u64| format!("11=a{number}|55=X|54=1|60=20260921-12:00:00|40=1|38=1|58={text}|");
        let orders = (2..2 + ORDERS).flat_map(|number| message(number, "D", &order(number)));
        let asked = [message(1, "A", "98=0|108=0|"), orders.collect()].concat();
        let again = (2 + ORDERS..42 + ORDERS).flat_map(|number| message(number, "2", "7=1|16=0|"));
        let asked = [asked, again.collect(), message(42 + ORDERS, "1", "112=end|")].concat();
        let mut writer = client.try_clone().unwrap();
        let written = std::thread::spawn(move || writer.write_all(&asked));
        let (mut received, mut bytes, mut orders) = (Vec::new(), vec![0; 1 << 20], 0);
        loop {
            let length = client.read(&mut bytes).unwrap();
            assert!(length > 0, "closed");
            received.extend_from_slice(&bytes[..length]);
            let mut used = 0;
            while let (Cut::Whole(frame), length) = cut(&received[used..]) {
                orders += u64::from(frame.body[3..].starts_with(b"D\x01"));
                used += length;
                if frame.body[3..].starts_with(b"0\x01") {
                    written.join().unwrap().unwrap();
                    assert_eq!(orders, ORDERS * 41, "each order, and 40 times each of them again");
                    return;
                }
            }
            received.drain(..used);
        }
    }
}
