//! How exact the proxy is: round trips of small messages over lines of several lengths, and the rate of a narrow one.
//!
//! `cargo run --release -p pares-wan --example distance`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints, and ends at the first error"
)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pares_wan::{Conditions, Direction, Proxy, ProxySettings};

const TRIPS: usize = 100;

fn main() {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = echo.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in echo.incoming() {
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    println!("one way     round trip beyond twice that, us: p50, p95, max");
    for delay in [0, 1, 5, 20, 50, 100].map(Duration::from_millis) {
        let proxy = Proxy::start(ProxySettings::to(target, delay)).unwrap();
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut beyond: Vec<u128> =
            (0..TRIPS).map(|_| trip(&mut stream).saturating_sub(2 * delay).as_micros()).collect();
        beyond.sort_unstable();
        println!(
            "{delay:>7.0?}     {:>6} {:>6} {:>6}",
            beyond[TRIPS / 2],
            beyond[TRIPS * 95 / 100],
            beyond[TRIPS - 1]
        );
    }
    rate(target, 45_000_000);
    rate(target, 0);
}

fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut bytes = [0; 64 << 10];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
}

fn trip(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    stream.write_all(&[7; 100]).unwrap();
    stream.read_exact(&mut [0; 100]).unwrap();
    start.elapsed()
}

/// Streams for some seconds and says what came through.
fn rate(target: std::net::SocketAddr, bits_per_second: u64) {
    let mut settings = ProxySettings::to(target, Duration::from_millis(100));
    settings.forth = Conditions { bits_per_second, ..settings.forth };
    let proxy = Proxy::start(settings).unwrap();
    let mut out = TcpStream::connect(proxy.address()).unwrap();
    let mut back = out.try_clone().unwrap();
    std::thread::spawn(move || while out.write_all(&[7; 64 << 10]).is_ok() {});
    let mut bytes = vec![0; 64 << 10];
    let (mut start, mut total) = (Instant::now(), 0);
    let mut warm = false;
    while start.elapsed() < Duration::from_secs(3) {
        total += back.read(&mut bytes).unwrap();
        if !warm && start.elapsed() > Duration::from_secs(1) {
            (start, total, warm) = (Instant::now(), 0, true);
        }
    }
    let megabits = total as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e6;
    let traffic = proxy.handle().traffic(Direction::Forth);
    println!(
        "rate {bits_per_second}: {megabits:.2} Mbit/s over 100 ms one way ({} bytes forth)",
        traffic.bytes
    );
    back.shutdown(std::net::Shutdown::Both).unwrap();
}
