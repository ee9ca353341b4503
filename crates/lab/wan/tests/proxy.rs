//! The proxy between two real sockets. Times are lower bounds only: a busy machine is late, never early.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pares_wan::{Conditions, Direction, Handle, Proxy, ProxySettings};

const PATIENCE: Duration = Duration::from_secs(60);
const DELAY: Duration = Duration::from_millis(30);

/// Both ends of a connection through a proxy.
struct Through {
    proxy: Proxy,
    listener: TcpListener,
    near: TcpStream,
    far: TcpStream,
}

fn through(change: impl FnOnce(&mut ProxySettings)) -> Through {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = ProxySettings::to(listener.local_addr().unwrap(), DELAY);
    change(&mut settings);
    let proxy = Proxy::start(settings).unwrap();
    let near = TcpStream::connect(proxy.address()).unwrap();
    let (far, _) = listener.accept().unwrap();
    // Far beyond what anything takes: a defect fails instead of hanging.
    for end in [&near, &far] {
        end.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    Through { proxy, listener, near, far }
}

impl Through {
    fn handle(&self) -> Handle {
        self.proxy.handle()
    }

    /// How long four bytes take from here to there.
    fn trip(&mut self) -> Duration {
        let start = Instant::now();
        self.near.write_all(b"trip").unwrap();
        self.far.read_exact(&mut [0; 4]).unwrap();
        start.elapsed()
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 256 * 13) as u8).collect()
}

/// Sends `bytes` each way at the same time and returns what came.
fn exchange(through: &Through, bytes: &[u8]) -> [Vec<u8>; 2] {
    std::thread::scope(|scope| {
        let ends = [&through.near, &through.far];
        for mut end in ends {
            scope.spawn(move || {
                end.write_all(bytes).unwrap();
                end.shutdown(Shutdown::Write).unwrap();
            });
        }
        let readers = ends.map(|mut end| {
            scope.spawn(move || {
                let mut all = Vec::new();
                end.read_to_end(&mut all).unwrap();
                all
            })
        });
        readers.map(|reader| reader.join().unwrap())
    })
}

#[test]
fn what_enters_comes_out_unchanged_both_ways_to_the_end() {
    let bytes = pattern(3 << 20);
    let [near, far] = exchange(&through(|_| ()), &bytes);
    assert!(near == bytes && far == bytes);
}

#[test]
fn jitter_stalls_and_a_narrow_line_change_no_byte_and_no_order() {
    let through = through(|settings| {
        for way in [&mut settings.forth, &mut settings.back] {
            *way = Conditions {
                delay: Duration::from_millis(2),
                jitter: Duration::from_millis(2),
                bits_per_second: 100_000_000,
                lost_of_million: 20_000,
                stall: Duration::from_millis(5),
                ..*way
            };
        }
    });
    let bytes = pattern(1 << 20);
    let start = Instant::now();
    let [near, far] = exchange(&through, &bytes);
    assert!(near == bytes && far == bytes);
    assert!(start.elapsed() >= Duration::from_millis(83), "8 Mbit at 100 Mbit/s");
    assert!(through.handle().traffic(Direction::Forth).lost > 0);
}

#[test]
fn nothing_comes_before_its_delay_and_the_delay_can_change() {
    let mut through = through(|_| ());
    assert!(through.trip() >= DELAY);
    through.handle().set_delay(3 * DELAY);
    assert!(through.trip() >= 3 * DELAY);
    let start = Instant::now();
    through.far.write_all(b"back").unwrap();
    through.near.read_exact(&mut [0; 4]).unwrap();
    assert!(start.elapsed() >= 3 * DELAY, "the way back is as long");
}

#[test]
fn a_shorter_delay_lets_nothing_overtake() {
    let mut through = through(|settings| settings.forth.delay = 10 * DELAY);
    through.near.write_all(b"slow").unwrap();
    // Whether or not it had entered before the change, it comes out first.
    through.handle().set_delay(Duration::ZERO);
    through.near.write_all(b"fast").unwrap();
    let mut bytes = [0; 8];
    through.far.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"slowfast");
}

#[test]
fn each_way_has_its_own_conditions() {
    let mut through = through(|settings| settings.back = Conditions::delayed(20 * DELAY));
    through.trip();
    let start = Instant::now();
    through.far.write_all(b"back").unwrap();
    through.near.read_exact(&mut [0; 4]).unwrap();
    assert!(start.elapsed() >= 20 * DELAY);
}

#[test]
fn black_hole_swallows_and_returns_all_on_heal() {
    let mut through = through(|_| ());
    through.trip();
    through.handle().black_hole();
    let bytes = pattern(100_000);
    through.near.write_all(&bytes).unwrap();
    through.far.set_read_timeout(Some(4 * DELAY)).unwrap();
    let nothing = through.far.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(nothing.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{nothing}");
    // Not even that the near end has gone.
    through.near.shutdown(Shutdown::Write).unwrap();
    assert!(through.far.read(&mut [0; 1]).is_err());
    through.handle().heal();
    through.far.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut all = Vec::new();
    through.far.read_to_end(&mut all).unwrap();
    assert!(all == bytes);
}

#[test]
fn one_way_alone_can_be_a_black_hole() {
    let mut through = through(|_| ());
    let conditions = through.handle().conditions(Direction::Back);
    through.handle().set(Direction::Back, Conditions { black_hole: true, ..conditions });
    through.trip();
    through.far.write_all(b"lost").unwrap();
    through.near.set_read_timeout(Some(4 * DELAY)).unwrap();
    through.near.read_exact(&mut [0; 4]).unwrap_err();
    through.handle().heal();
    through.near.set_read_timeout(Some(PATIENCE)).unwrap();
    through.near.read_exact(&mut [0; 4]).unwrap();
}

#[test]
fn cut_breaks_existing_and_refuses_new_until_healed() {
    let mut through = through(|_| ());
    through.trip();
    through.handle().cut();
    for mut end in [&through.near, &through.far] {
        assert_eq!(end.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    // The kernel may say it at once or with the first read.
    let refused = TcpStream::connect(through.proxy.address()).and_then(|mut new| new.read(&mut [0; 1]));
    assert!(matches!(refused, Err(_) | Ok(0)));
    through.handle().heal();
    through.near = TcpStream::connect(through.proxy.address()).unwrap();
    (through.far, _) = through.listener.accept().unwrap();
    through.trip();
}

#[test]
fn a_connection_can_break_by_chance_and_the_seed_says_where() {
    let broken_at = |seed| {
        let through = through(|settings| {
            settings.seed = seed;
            settings.forth = Conditions { broken_of_million: 50_000, ..Conditions::delayed(Duration::ZERO) };
        });
        std::thread::scope(|scope| {
            let mut near = &through.near;
            scope.spawn(move || while near.write_all(&[7; 1 << 10]).is_ok() {});
            let mut far = &through.far;
            let end = loop {
                match far.read(&mut [0; 1 << 16]) {
                    Ok(0) => break None,
                    Ok(_) => {}
                    Err(error) => break Some(error.kind()),
                }
            };
            assert_eq!(end, Some(ErrorKind::ConnectionReset));
        });
        let traffic = through.handle().traffic(Direction::Forth);
        assert_eq!(traffic.broken, 1);
        traffic.bytes
    };
    assert_eq!(broken_at(1), broken_at(1));
    assert_ne!(broken_at(1), broken_at(2));
}

#[test]
fn a_sender_waits_when_much_is_under_way() {
    let through = through(|settings| settings.under_way_max = 1 << 20);
    through.handle().black_hole();
    through.near.set_nonblocking(true).unwrap();
    let mut near = &through.near;
    let (mut sent, mut refusals) = (0, 0);
    // What the sockets hold is bounded as well, by some megabytes.
    while refusals < 100 {
        match near.write(&[7; 64 << 10]) {
            Ok(bytes) => (sent, refusals) = (sent + bytes, 0),
            Err(_) => {
                refusals += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(sent < 64 << 20, "nobody stops it");
    }
    through.handle().heal();
    let mut far = &through.far;
    let mut bytes = vec![0; sent];
    far.read_exact(&mut bytes).unwrap();
}

#[test]
fn a_target_that_is_not_there_looks_like_a_broken_connection() {
    let Through { proxy, listener, .. } = through(|_| ());
    drop(listener);
    let mut near = TcpStream::connect(proxy.address()).unwrap();
    assert!(matches!(near.read(&mut [0; 1]), Err(_) | Ok(0)));
}
