//! How many traders one server serves: `traders [TRADERS] [ITEMS_A_SECOND] [SECONDS]`, by default 1,000, 2,000 and 5.
//!
//! Two servers, all traders at the first, half of a machine's work theirs: every connection is read and every item counted. The delay is from the
//! server's stamp on an item to its being read, of one trader in a hundred. The figures are of this machine and this moment; each run is one.
#![allow(clippy::print_stdout)] // an example may talk

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use pares_desk::frame::{self, DeskSignOn, FROM_NOW, NEWS_BYTES_MAX, WANTS_LOCAL, kind};
use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_feed::mold::Packet;
use pares_member::world::address;
use pares_member::{MemberConfig, TraderClient, process, sources::Sources, start};
use pares_node::HostWorld;
use pares_roles::config::Layout;
use zerocopy::IntoBytes;

/// One trader in so many measures delays.
const MEASURED: usize = 100;

struct Trader {
    connection: TcpStream,
    input: Vec<u8>,
    items: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |index, default| std::env::args().nth(index).map_or(Ok(default), |text| text.parse());
    let (count, rate, seconds) = (argument(1, 1_000_u64)?, argument(2, 2_000)?, argument(3, 5)?);
    let dir = tempfile::tempdir()?;
    let layout = Layout::new(dir.path());
    std::fs::create_dir_all(layout.run())?;
    let config = MemberConfig::local(2);
    std::fs::write(process::config_file(&layout), config.text())?;
    start::begin(&HostWorld::new(&layout)?, &config)?;
    pares_os::descriptors::raise_limit();
    let stop = Arc::new(AtomicBool::new(false));
    let servers: Vec<_> = [0, 1].map(|server| serve(server, &layout, &stop)).into();
    let servers_up = || [0, 1].iter().all(|&server| process::announced(&layout, server).is_some());
    while !servers_up() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let target = address(&layout, 0)?;
    let reader = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || read_all(target, count, &stop).expect("reading"))
    };
    std::thread::sleep(Duration::from_secs(1));
    let sent = submit(target, rate, seconds)?;
    std::thread::sleep(Duration::from_secs(1));
    stop.store(true, Ordering::Relaxed);
    let (items, mut delays) = reader.join().expect("the reader ends");
    servers.into_iter().for_each(|server| server.join().expect("a server ends"));
    delays.sort_unstable();
    let at = |share: usize| delays.get(delays.len() * share / 100).copied().unwrap_or(0) / 1_000;
    println!("{count} traders, {sent} items in {seconds} s: {items} of {} delivered", sent * count);
    println!("delay of {} measured: p50 {} us, p90 {} us, p99 {} us", delays.len(), at(50), at(90), at(99));
    Ok(())
}

fn serve(server: u16, layout: &Layout, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let (layout, stop) = (layout.clone(), Arc::clone(stop));
    let run = move || process::run_with(server, &layout, Sources::default(), &stop).expect("it runs");
    std::thread::spawn(run)
}

/// Submits at that rate. How many that was.
fn submit(server: SocketAddr, rate: u64, seconds: u64) -> Result<u64, Box<dyn Error>> {
    let mut client = TraderClient::connect(&[server], TraderId(1))?;
    let (begun, mut sent) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let due = begun.elapsed().as_micros() as u64 * rate / 1_000_000;
        while sent < due {
            client.submit(&ItemBody::Message {
                to: TraderId(0),
                text: "forty bytes of words, as people write",
            });
            sent += 1;
        }
        client.poll(|_| {});
        std::thread::sleep(Duration::from_millis(1));
    }
    while client.unplaced() > 0 {
        client.poll(|_| {});
        client.wait(Duration::from_millis(10));
    }
    Ok(sent)
}

/// Reads all traders' connections until it is told to stop. Items read, and delays.
fn read_all(server: SocketAddr, count: u64, stop: &AtomicBool) -> std::io::Result<(u64, Vec<u64>)> {
    let mut poll = Poll::new()?;
    let mut traders = Vec::new();
    for index in 0..count {
        let mut connection = std::net::TcpStream::connect(server)?;
        let mut sign_on = Vec::new();
        let trader = TraderId(1_000 + u32::try_from(index).unwrap_or(0));
        let bytes = DeskSignOn::new(trader, WANTS_LOCAL, 0, FROM_NOW);
        frame::write(&mut sign_on, kind::SIGN_ON, &[bytes.as_bytes()]);
        connection.write_all(&sign_on)?;
        connection.set_nonblocking(true)?;
        let mut connection = TcpStream::from_std(connection);
        poll.registry().register(&mut connection, Token(index as usize), Interest::READABLE)?;
        traders.push(Trader { connection, input: Vec::new(), items: 0 });
    }
    let (mut events, mut delays, mut bytes) = (Events::with_capacity(1_024), Vec::new(), vec![0; 65_536]);
    while !stop.load(Ordering::Relaxed) {
        poll.poll(&mut events, Some(Duration::from_millis(100)))?;
        for event in &events {
            let Token(index) = event.token();
            read(&mut traders[index], index % MEASURED == 0, &mut delays, &mut bytes)?;
        }
    }
    Ok((traders.iter().map(|trader| trader.items).sum(), delays))
}

fn read(trader: &mut Trader, measures: bool, delays: &mut Vec<u64>, bytes: &mut [u8]) -> std::io::Result<()> {
    loop {
        match trader.connection.read(bytes) {
            // The servers stop when the reader does.
            Ok(0) => break,
            Ok(read) => trader.input.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    let mut rest = &trader.input[..];
    while let Ok(Some((what, payload, after))) = frame::split(rest, NEWS_BYTES_MAX) {
        rest = after;
        if let (kind::BLOCK, Ok(packet)) = (what, Packet::read(payload)) {
            let now_ns = pares_os::clock::now_ns();
            for (_, record) in packet.messages() {
                trader.items += 1;
                if let (true, Ok(ordered)) = (measures, OrderedItem::read(record)) {
                    delays.push(now_ns.saturating_sub(ordered.item.stamp_ns));
                }
            }
        }
    }
    let left = rest.len();
    trader.input.drain(..trader.input.len() - left);
    Ok(())
}
