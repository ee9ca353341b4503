//! Connections that call a server: one request at a time on each, all of them on one thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_load::LabError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The price of all orders.
const START: &str = "100";
/// Longest answer, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Between two looks at whether the system stands.
const LOOK: Duration = Duration::from_millis(100);
/// What is sent within this counts for nothing.
const WARM_UP: Duration = Duration::from_millis(500);

/// A connection.
struct Caller {
    stream: TcpStream,
    /// Of its session, as a header.
    bearer: String,
    answer: Vec<u8>,
    /// When what it waits for should have been sent.
    asked: Option<Instant>,
}

/// All of them.
pub(super) struct Callers {
    all: Vec<Caller>,
    sent: u64,
}

/// What came of it.
pub(super) struct Called {
    pub(super) answered: u64,
    pub(super) rejected: u64,
    latency_ns: Histogram<u64>,
}

impl Called {
    pub(super) fn quantile_us(&self, quantile: f64) -> f64 {
        self.latency_ns.value_at_quantile(quantile) as f64 / 1_000.0
    }
}

fn lost(error: std::io::Error) -> LabError {
    LabError::io("calling the server")(error)
}

impl Callers {
    /// Connects, and signs so many sessions on.
    pub(super) fn connect(server: SocketAddr, connections: u32, sessions: u32) -> Result<Self, LabError> {
        let mut all = Vec::new();
        let mut tokens: Vec<String> = Vec::new();
        for number in 0..connections {
            let stream = TcpStream::connect(server).map_err(lost)?;
            stream.set_nodelay(true).map_err(lost)?;
            let mut caller = Caller { stream, bearer: String::new(), answer: Vec::new(), asked: None };
            if number < sessions {
                tokens.push(caller.sign_on(number + 1)?);
            }
            caller.bearer = format!("Authorization: Bearer {}\r\n", tokens[number as usize % tokens.len()]);
            caller.stream.set_nonblocking(true).map_err(lost)?;
            all.push(caller);
        }
        Ok(Self { all, sent: 0 })
    }

    /// Sends orders for so long: each connection the next one when it is answered, or all together so many a second.
    pub(super) fn call(
        &mut self,
        rate: Option<u64>,
        lasting: Duration,
        mut look: impl FnMut(),
    ) -> Result<Called, LabError> {
        let begun = Instant::now();
        let (from, until) = (begun + WARM_UP, begun + WARM_UP + lasting);
        let mut looked = begun;
        let latency_ns = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("legal bounds");
        let mut called = Called { answered: 0, rejected: 0, latency_ns };
        loop {
            let now = Instant::now();
            if now >= until {
                return Ok(called);
            }
            if now - looked > LOOK {
                looked = now;
                look();
            }
            let next = self.send_due(rate, begun, now)?;
            self.wait(next.map_or(LOOK, |next| next.saturating_duration_since(Instant::now())))?;
            for caller in &mut self.all {
                if let Some((asked, is_taken)) = caller.hear()? {
                    let answered = Instant::now();
                    called.rejected += u64::from(!is_taken);
                    if asked >= from {
                        called.answered += 1;
                        let ns = u64::try_from((answered - asked).as_nanos()).unwrap_or(u64::MAX);
                        called.latency_ns.saturating_record(ns);
                    }
                }
            }
        }
    }

    /// Sends what is due on connections that wait for nothing. When the next one is due, if that is known.
    fn send_due(
        &mut self,
        rate: Option<u64>,
        begun: Instant,
        now: Instant,
    ) -> Result<Option<Instant>, LabError> {
        for at in 0..self.all.len() {
            if self.all[at].asked.is_some() {
                continue;
            }
            let due = rate.map_or(now, |rate| begun + Duration::from_nanos(self.sent * 1_000_000_000 / rate));
            if due > now {
                return Ok(Some(due));
            }
            self.all[at].send(self.sent, due)?;
            self.sent += 1;
        }
        Ok(None)
    }

    fn wait(&self, at_most: Duration) -> Result<(), LabError> {
        let waiting = self.all.iter().filter(|caller| caller.asked.is_some());
        let mut polled: Vec<PollFd<'_>> =
            waiting.map(|caller| PollFd::new(&caller.stream, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(at_most).expect("some milliseconds");
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(lost(error.into())),
        }
    }
}

impl Caller {
    fn sign_on(&mut self, member: u32) -> Result<String, LabError> {
        let body = format!("{{\"member\":{member}}}");
        self.post("/v1/sign-on", &body)?;
        while self.whole().is_none() {
            self.read()?;
        }
        let answer = String::from_utf8_lossy(&self.answer).into_owned();
        self.answer.clear();
        let token = answer.split("\"token\":\"").nth(1).and_then(|rest| rest.split('"').next());
        token.map(str::to_owned).ok_or_else(|| LabError::Failed(format!("not signed on: {answer}")))
    }

    /// Two orders in turn meet each other.
    fn send(&mut self, number: u64, due: Instant) -> Result<(), LabError> {
        let (side, symbol) = (if number.is_multiple_of(2) { "sell" } else { "buy" }, number / 2 % 10 + 1);
        let body = format!(
            "{{\"client_order_id\":\"{}\",\"symbol\":\"{}\",\"side\":\"{side}\",\"price\":\"{}\",\"quantity\":\"100\"}}",
            number + 1,
            pares_load::setup::instrument(u32::try_from(symbol).expect("of ten")).symbol,
            START,
        );
        self.asked = Some(due);
        self.post("/v1/orders", &body)
    }

    fn post(&mut self, path: &str, body: &str) -> Result<(), LabError> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.bearer,
            body.len()
        );
        // Some hundred bytes: a socket that was read empty takes them.
        self.stream.write_all(request.as_bytes()).map_err(lost)
    }

    fn read(&mut self) -> Result<(), LabError> {
        let mut bytes = [0; 4_096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(LabError::Failed("the server hung up".into())),
            Ok(count) if self.answer.len() + count > ANSWER_BYTES_MAX => {
                Err(LabError::Failed("an answer without end".into()))
            }
            Ok(count) => {
                self.answer.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(lost(error)),
        }
    }

    /// Whether the answer is whole.
    fn whole(&self) -> Option<()> {
        let head = self.answer.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&self.answer[..head]).ok()?;
        let length =
            text.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse::<usize>().ok()?;
        (self.answer.len() >= head + length).then_some(())
    }

    /// The answer, once it is whole: when it was asked for, and whether the order was taken in.
    fn hear(&mut self) -> Result<Option<(Instant, bool)>, LabError> {
        let Some(asked) = self.asked else { return Ok(None) };
        self.read()?;
        if self.whole().is_none() {
            return Ok(None);
        }
        let is_taken = self.answer.starts_with(b"HTTP/1.1 201");
        self.answer.clear();
        self.asked = None;
        Ok(Some((asked, is_taken)))
    }
}
