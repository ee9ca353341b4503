//! Ports that no process has.
//!
//! Port 0 gives one of those that the system also gives to connections: who connects to it before its server is there may be connected to itself, and a
//! server that is stopped and started again may find it taken. So these lie below them, and each process has its own stretch.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// An address of this machine whose port, and the next, no process has.
///
/// # Panics
/// If a thousand of them are taken.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() as u16).wrapping_mul(53);
    let ports = std::iter::repeat_with(|| {
        20_000 + own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 6_000 * 2
    });
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut free = ports.take(1_000).filter(|port| is_free(*port) && is_free(port + 1));
    SocketAddr::from(([127, 0, 0, 1], free.next().expect("one of a thousand ports is free")))
}
