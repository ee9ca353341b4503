//! Connections that call a server: one request at a time on each, all of them on one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_load::{HttpConnection, LabError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The price of all orders.
const START: &str = "100";
/// Between two looks at whether the system stands.
const LOOK: Duration = Duration::from_millis(100);
/// What is sent within this counts for nothing.
const WARM_UP: Duration = Duration::from_millis(500);

/// A connection.
struct Caller {
    connection: HttpConnection,
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
            let mut connection = HttpConnection::connect(server).map_err(lost)?;
            if number < sessions {
                tokens.push(connection.sign_on(number + 1, 0).map_err(lost)?);
            }
            connection.set_token(&tokens[number as usize % tokens.len()]);
            connection.stream().set_nonblocking(true).map_err(lost)?;
            all.push(Caller { connection, asked: None });
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
            waiting.map(|caller| PollFd::new(caller.connection.stream(), PollFlags::IN)).collect();
        let timeout = Timespec::try_from(at_most).expect("some milliseconds");
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(lost(error.into())),
        }
    }
}

impl Caller {
    /// Two orders in turn meet each other.
    fn send(&mut self, number: u64, due: Instant) -> Result<(), LabError> {
        let (side, symbol) = (if number.is_multiple_of(2) { "sell" } else { "buy" }, number / 2 % 10 + 1);
        let body = format!(
            "{{\"client_order_id\":\"{}\",\"symbol\":\"{}\",\"side\":\"{side}\",\"price\":\"{START}\",\"quantity\":\"100\"}}",
            number + 1,
            pares_load::setup::instrument(u32::try_from(symbol).expect("of ten")).symbol,
        );
        self.asked = Some(due);
        self.connection.put("POST", "/v1/orders", "", &body);
        self.connection.flush().map_err(lost)
    }

    /// The answer, once it is whole: when it was asked for, and whether the order was taken in.
    fn hear(&mut self) -> Result<Option<(Instant, bool)>, LabError> {
        let Some(asked) = self.asked else { return Ok(None) };
        self.connection.read().map_err(lost)?;
        let Some(answer) = self.connection.next_answer().map_err(lost)? else { return Ok(None) };
        self.asked = None;
        Ok(Some((asked, answer.status == 201)))
    }
}
