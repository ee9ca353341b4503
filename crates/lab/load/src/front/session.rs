//! One member, and how it continues at another gateway.
//!
//! ```text
//!              lost               the next gateway, by the same numbers
//!  [logged on] ----> [nowhere] --------------------------------------> [logging on] --Logon--> [logged on]
//!                        ^                                                  |                  all that is open goes out
//!                        +---------- refused, or no answer in time ---------+                  again
//! ```
//! It stays where it is: a session has no home but its numbers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use pares_os::clock::mono_ns;
use pares_types::{ClientOrderId, ClientRequest};

use super::{FrontEnd, FrontEngine, Heard};
use crate::LoadPlan;
use crate::connection::{Connection, Told};
use crate::error::LabError;

/// Between two rounds of all gateways while none is there.
const RETRY_NS: u64 = 5_000_000;
/// How long a gateway may take to answer a Logon.
const LOGON_MAX_NS: u64 = 2_000_000_000;
/// How long the first Logon may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// One member.
pub(crate) struct FrontSession<E: FrontEngine> {
    addresses: Vec<SocketAddr>,
    caller: E::Caller,
    /// Whether lost connections are to be survived.
    resume: bool,
    /// Index of the gateway in use, or to be tried next.
    at: usize,
    /// Its connection, which has its numbers.
    engine: Option<E>,
    is_on: bool,
    /// Its numbers without a connection.
    numbers: E::Numbers,
    /// When the next gateway is called, or the Logon must have been answered.
    until_ns: u64,
    /// What is unanswered, and whether it was sent.
    open: BTreeMap<u64, (ClientRequest, bool)>,
    repeated: u64,
    /// Gateways tried since the connection was lost.
    tried: usize,
    /// Connected again, and not answered since.
    fresh: bool,
}

impl<E: FrontEngine> FrontSession<E> {
    /// Connects a member of the plan, by its place among them, and waits until it is logged on.
    ///
    /// # Errors
    /// If its gateway cannot be reached, or refuses it.
    pub(crate) fn connect(plan: &LoadPlan, caller: E::Caller, place: usize) -> Result<Self, LabError> {
        let mut connected = Self {
            addresses: plan.addresses.clone(),
            caller,
            resume: true,
            at: place % plan.addresses.len(),
            engine: None,
            is_on: false,
            numbers: E::Numbers::default(),
            until_ns: 0,
            open: BTreeMap::new(),
            repeated: 0,
            tried: 0,
            fresh: false,
        };
        let begun = Instant::now();
        while !connected.is_on {
            if begun.elapsed() > PATIENCE {
                let name = E::name(&connected.caller);
                return Err(LabError::Failed(format!("{name}: nobody answers the Logon")));
            }
            connected.come_back(mono_ns());
            connected.flush()?;
            connected.poll(&mut |_| {})?;
            std::thread::yield_now();
        }
        (connected.resume, connected.fresh) = (plan.resume, false);
        Ok(connected)
    }

    /// Continues without this connection, if it may be lost.
    fn survive(&mut self, end: FrontEnd) -> Result<(), LabError> {
        match end {
            FrontEnd::Lost(_) if self.resume => {
                self.leave();
                self.turn_to_next();
                self.tried = 0;
                Ok(())
            }
            FrontEnd::Lost(why) | FrontEnd::Broken(why) => {
                Err(LabError::Failed(format!("{}: {why}", E::name(&self.caller))))
            }
        }
    }

    fn leave(&mut self) {
        if let Some(engine) = self.engine.take() {
            (self.numbers, self.is_on, self.until_ns) = (engine.into_numbers(), false, 0);
        }
    }

    fn turn_to_next(&mut self) {
        self.at = (self.at + 1) % self.addresses.len();
    }

    /// Calls the gateway whose turn it is.
    fn call(&mut self, now_ns: u64) {
        let numbers = std::mem::take(&mut self.numbers);
        match E::call(self.addresses[self.at], &self.caller, numbers) {
            Ok(engine) => (self.engine, self.until_ns) = (Some(engine), now_ns + LOGON_MAX_NS),
            Err((_, numbers)) => {
                self.numbers = numbers;
                self.turn_to_next();
                self.tried += 1;
                let is_round = self.tried.is_multiple_of(self.addresses.len());
                self.until_ns = if is_round { now_ns + RETRY_NS } else { 0 };
            }
        }
    }

    /// Sends all that is open: again what may have come before.
    fn repeat_all(&mut self) {
        let Some(engine) = self.engine.as_mut().filter(|_| self.is_on) else { return };
        for (request, was_sent) in self.open.values_mut() {
            engine.send(request, *was_sent);
            self.repeated += u64::from(*was_sent);
            *was_sent = true;
        }
    }

    /// What a connection has come to: logged on, or with requests lost on it.
    fn settle(&mut self) {
        let Some(engine) = &mut self.engine else { return };
        let (has_lost, is_new) = (engine.take_lost(), !self.is_on && engine.is_logged_on());
        (self.is_on, self.fresh) = (self.is_on || is_new, self.fresh || is_new);
        if has_lost || is_new {
            self.repeat_all();
        }
    }
}

impl<E: FrontEngine> Connection for FrontSession<E> {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.engine.as_ref().filter(|_| self.is_on).map(|engine| engine.socket().as_fd())
    }

    fn home(&self) -> usize {
        0
    }

    fn is_away(&self) -> bool {
        !self.is_on
    }

    fn send(&mut self, request: &ClientRequest) -> Result<(), LabError> {
        if !E::can_say(request) {
            return Err(LabError::Usage(
                "a load over a standard protocol enters limit and market orders, amends and cancels".into(),
            ));
        }
        if let Some(engine) = self.engine.as_mut().filter(|_| self.is_on) {
            engine.send(request, false);
        }
        self.open.insert(request.client_order_id().0, (*request, self.is_on));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LabError> {
        self.engine.as_mut().map_or(Ok(()), E::flush).or_else(|end| self.survive(end))
    }

    fn poll(&mut self, on: &mut dyn FnMut(Told)) -> Result<usize, LabError> {
        let Self { engine: Some(engine), open, .. } = self else { return Ok(0) };
        let polled = engine.poll(&mut |heard| match heard {
            Heard::Traded => on(Told::Traded),
            Heard::Answered(name) if open.remove(&name).is_some() => on(Told::Answered(ClientOrderId(name))),
            Heard::Rejected(name) if open.remove(&name).is_some() => on(Told::Rejected),
            Heard::Answered(_) | Heard::Rejected(_) => {}
        });
        match polled {
            Ok(count) => {
                self.settle();
                Ok(count)
            }
            Err(end) => self.survive(end).map(|()| 0),
        }
    }

    fn come_back(&mut self, now_ns: u64) -> u64 {
        if now_ns >= self.until_ns {
            match self.engine {
                None => self.call(now_ns),
                Some(_) if self.is_on => {}
                Some(_) => {
                    self.leave();
                    self.turn_to_next();
                }
            }
        }
        std::mem::take(&mut self.repeated)
    }

    fn go_home(&mut self) {}

    fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }
}
