//! All traders' connections, read on one thread.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use pares_desk::frame::{self, DeskSignOn, FROM_NOW, NEWS_BYTES_MAX, WANTS_LOCAL, kind};
use pares_desk::item::{OrderedItem, TraderId};
use pares_feed::mold::Packet;
use pares_load::{HttpConnection, first_frame, text_frame};
use pares_os::clock;
use zerocopy::IntoBytes;

use super::{Plan, Way};

/// The first of them; others have names below.
const FIRST: u32 = 1_000;
const READ_BYTES: usize = 256 << 10;
/// What a text of an item says first, and where the time of its submission is.
const ITEM: &[u8] = b"\"type\":\"item\"";
const TIME: &[u8] = b"\"time_ns\":\"";

/// What was read.
pub(super) struct Heard {
    pub(super) items: u64,
    /// From the first item to the last.
    pub(super) took: Duration,
    pub(super) delays: Histogram<u64>,
}

struct Trader {
    connection: TcpStream,
    input: Vec<u8>,
    is_measured: bool,
    is_slow: bool,
}

/// All traders.
pub(super) struct Reader {
    way: Way,
    poll: Poll,
    traders: Vec<Trader>,
    /// How many items were read so far.
    told: Arc<AtomicU64>,
    delays: Histogram<u64>,
    began: Option<Instant>,
    ended: Instant,
}

impl Reader {
    /// Connects and signs on all traders.
    ///
    /// # Errors
    /// If one cannot.
    pub(super) fn connect(server: SocketAddr, plan: Plan, told: Arc<AtomicU64>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let open = |trader: u32| {
            let (stream, input) = match plan.way {
                Way::Stream => sign_on(server, trader)?,
                Way::Web => sign_on_web(server, trader)?,
            };
            stream.set_nonblocking(true)?;
            let mut connection = TcpStream::from_std(stream);
            poll.registry().register(&mut connection, Token(trader as usize), Interest::READABLE)?;
            let (is_measured, is_slow) = (plan.is_measured(trader), plan.is_slow(trader));
            Ok(Trader { connection, input, is_measured, is_slow })
        };
        let traders = (0..plan.traders).map(open).collect::<io::Result<Vec<_>>>()?;
        let delays = super::super::delays();
        Ok(Self { way: plan.way, poll, traders, told, delays, began: None, ended: Instant::now() })
    }

    /// Reads until `stop` is set.
    ///
    /// # Errors
    /// If a trader who reads is cut off.
    pub(super) fn run(mut self, stop: &AtomicBool) -> io::Result<Heard> {
        let (mut events, mut bytes) = (Events::with_capacity(1_024), vec![0; READ_BYTES]);
        while !stop.load(Ordering::Relaxed) {
            self.poll.poll(&mut events, Some(Duration::from_millis(20)))?;
            for event in &events {
                let Token(index) = event.token();
                let items = self.read(index, &mut bytes)?;
                if items > 0 {
                    self.ended = Instant::now();
                    self.began.get_or_insert(self.ended);
                    self.told.fetch_add(items, Ordering::Relaxed);
                }
            }
        }
        let (items, ended) = (self.told.load(Ordering::Relaxed), self.ended);
        let took = self.began.map_or(Duration::ZERO, |began| ended - began);
        Ok(Heard { items, took, delays: self.delays })
    }

    /// Reads what has come to a trader. How many items that was.
    fn read(&mut self, index: usize, bytes: &mut [u8]) -> io::Result<u64> {
        let trader = &mut self.traders[index];
        let mut items = 0;
        while !trader.is_slow {
            let length = match trader.connection.read(bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            trader.input.extend_from_slice(&bytes[..length]);
            let (read, count) = match self.way {
                Way::Stream => packets(trader, &mut self.delays),
                Way::Web => texts(trader, &mut self.delays),
            };
            trader.input.drain(..read);
            items += count;
            // The socket has no more: whatever comes next is another event.
            if length < bytes.len() {
                break;
            }
        }
        Ok(items)
    }
}

/// Whole frames of packets: bytes, items.
fn packets(trader: &Trader, delays: &mut Histogram<u64>) -> (usize, u64) {
    let (mut rest, mut items) = (&trader.input[..], 0);
    while let Ok(Some((what, payload, after))) = frame::split(rest, NEWS_BYTES_MAX) {
        rest = after;
        let (kind::BLOCK, Ok(packet)) = (what, Packet::read(payload)) else { continue };
        items += packet.next() - packet.sequence;
        if trader.is_measured {
            let now_ns = clock::now_ns();
            let records = packet.messages().filter_map(|(_, record)| OrderedItem::read(record).ok());
            records.for_each(|of| delays.saturating_record(now_ns.saturating_sub(of.item.stamp_ns)));
        }
    }
    (trader.input.len() - rest.len(), items)
}

/// Whole texts of a WebSocket: bytes, items.
fn texts(trader: &Trader, delays: &mut Histogram<u64>) -> (usize, u64) {
    let (mut rest, mut items) = (&trader.input[..], 0);
    while let Some((_, text, length)) = first_frame(rest) {
        rest = &rest[length..];
        // Nearly all are items; other texts are short.
        if text.len() < 100 || !contains(text, ITEM) {
            continue;
        }
        items += 1;
        if trader.is_measured
            && let Some(stamp_ns) = stamp_ns(text)
        {
            delays.saturating_record(clock::now_ns().saturating_sub(stamp_ns));
        }
    }
    (trader.input.len() - rest.len(), items)
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).rev().any(|window| window == what)
}

fn stamp_ns(text: &[u8]) -> Option<u64> {
    let at = text.windows(TIME.len()).position(|window| window == TIME)? + TIME.len();
    let mut digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.try_fold(0, |sum: u64, digit| Some(sum * 10 + u64::from(digit - b'0')))
}

/// Connects a trader and waits until it is signed on. What came behind that.
fn sign_on(server: SocketAddr, trader: u32) -> io::Result<(std::net::TcpStream, Vec<u8>)> {
    let mut stream = std::net::TcpStream::connect(server)?;
    let (mut bytes, mut input) = (Vec::new(), Vec::new());
    let signs_on = DeskSignOn::new(TraderId(FIRST + trader), WANTS_LOCAL, 0, FROM_NOW);
    frame::write(&mut bytes, kind::SIGN_ON, &[signs_on.as_bytes()]);
    stream.write_all(&bytes)?;
    read_until(&mut stream, &mut input, |input| matches!(frame::split(input, NEWS_BYTES_MAX), Ok(Some(_))))?;
    Ok((stream, input))
}

fn sign_on_web(server: SocketAddr, trader: u32) -> io::Result<(std::net::TcpStream, Vec<u8>)> {
    let (mut stream, mut input) = HttpConnection::connect(server)?.open_socket("/")?;
    stream.write_all(&text_frame(&format!("{{\"type\":\"sign_on\",\"trader\":{}}}", FIRST + trader)))?;
    read_until(&mut stream, &mut input, |input| first_frame(input).is_some())?;
    Ok((stream, input))
}

fn read_until(
    stream: &mut std::net::TcpStream,
    input: &mut Vec<u8>,
    is_enough: impl Fn(&[u8]) -> bool,
) -> io::Result<()> {
    let mut bytes = [0; 4_096];
    while !is_enough(input) {
        match stream.read(&mut bytes)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => input.extend_from_slice(&bytes[..length]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_and_their_times_read() {
        let text = r#"{"kind":"message","number":1,"text":"x","time_ns":"123","type":"item"}"#;
        let bytes = [&[0x81, text.len() as u8][..], text.as_bytes(), &[0x81, 126, 0]].concat();
        let (_, first, length) = first_frame(&bytes).unwrap();
        assert_eq!((first, bytes[length..].len()), (text.as_bytes(), 3));
        assert_eq!((stamp_ns(first), contains(first, ITEM)), (Some(123), true));
        assert_eq!(first_frame(&bytes[length..]), None);
    }
}
