//! Questions to the sites, one after the other: what is asked earlier is executed earlier.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pares_broker::{Asked, BrokerRead, BrokerReply, BrokerRequest};
use pares_front::FrontNumbers;
use pares_os::clock;
use pares_site::protocol::Code;
use pares_site::{CallError, Client};
use pares_wice::codec::Coded as _;

use crate::RoutingError;

/// After so long it is looked whether this process is to end.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);
/// Numbers of clients that draw their own begin here: sessions' are below.
const OWN_NUMBERS: u64 = 1 << 62;

/// See the module.
pub struct AccountsClient {
    client: Client,
    /// Its numbers as a front's.
    numbers: FrontNumbers,
}

impl AccountsClient {
    /// By that client, which nobody else uses.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, numbers: FrontNumbers::default() }
    }

    /// A number for a client, drawn from the time: two that are drawn in the same nanosecond are the same.
    #[must_use]
    pub fn draw_number() -> u64 {
        OWN_NUMBERS | (clock::now_ns() ^ u64::from(std::process::id()) << 40) & (OWN_NUMBERS - 1)
    }

    /// Has something executed, once, for however long that takes; none if this process is to end.
    ///
    /// # Errors
    /// If the sites do not take it at all.
    pub fn execute(&mut self, asked: Asked, stop: &AtomicBool) -> Result<Option<BrokerReply>, RoutingError> {
        let number = match asked {
            Asked::BeginFront => 0,
            _ => match self.next_number(stop)? {
                Some(number) => number,
                None => return Ok(None),
            },
        };
        let time_ms = clock::now_ns() / 1_000_000;
        let request = BrokerRequest { number, after: 0, name: None, time_ms, quote: None, asked };
        let bytes = request.to_bytes();
        let mut is_asked = false;
        while !stop.load(Ordering::Relaxed) {
            let called = match is_asked {
                true => self.client.execute_again(&bytes, PATIENCE),
                false => self.client.execute(&bytes, PATIENCE),
            };
            is_asked = match called {
                Ok(reply) => return BrokerReply::from_bytes(&reply).map(Some).map_err(no_sense),
                Err(CallError::Silence(_)) => true,
                Err(error) => !self.may_ask_anew(error)?,
            };
        }
        Ok(None)
    }

    /// Its next number; a front's number is asked for first.
    fn next_number(&mut self, stop: &AtomicBool) -> Result<Option<u64>, RoutingError> {
        if self.numbers.peek().is_none() {
            match self.execute(Asked::BeginFront, stop)? {
                Some(BrokerReply::FrontNumber { front }) => self.numbers.begin(front),
                Some(other) => return Err(RoutingError::Sites(format!("no front's number: {other:?}"))),
                None => return Ok(None),
            }
        }
        Ok(self.numbers.next_own())
    }

    /// Reads, not older than what was executed before; none if this process is to end.
    ///
    /// # Errors
    /// If the sites do not take it at all.
    pub fn read(&mut self, read: BrokerRead, stop: &AtomicBool) -> Result<Option<Vec<u8>>, RoutingError> {
        let bytes = read.to_bytes();
        while !stop.load(Ordering::Relaxed) {
            match self.client.read_latest(&bytes, PATIENCE) {
                Ok(found) => return Ok(Some(found)),
                Err(error) => drop(self.may_ask_anew(error)?),
            }
        }
        Ok(None)
    }

    /// Whether nothing was done, and it may be asked again.
    fn may_ask_anew(&self, error: CallError) -> Result<bool, RoutingError> {
        match error {
            CallError::No { code: Code::Refused | Code::Denied, .. } | CallError::Shut(_) => {
                Err(RoutingError::Sites(error.to_string()))
            }
            CallError::No { .. } | CallError::Silence(_) => {
                std::thread::sleep(PAUSE);
                Ok(true)
            }
        }
    }
}

fn no_sense(error: impl ToString) -> RoutingError {
    RoutingError::Sites(format!("a site sent an invalid answer: {}", error.to_string()))
}
