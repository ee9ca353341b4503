//! One member's connection, and how it comes back.
//!
//! A benchmark whose gateway dies has nothing more to measure, and ends. A drill that kills gateways needs members that
//! do as real ones would: connect to whichever gateway is there and repeat, under the same names, what is
//! unanswered. Remembering that costs a little for each request, so it is done only where the plan asks for it.
//!
//! ```text
//!              lost                    next gateway, and the next ...
//!  [at home] -------> [disconnected] ------------------------> [away] --recalled, nothing open--> [at home]
//!                          ^                                      |
//!                          +------------------ lost --------------+
//! ```
//! Connecting and signing on wait for a gateway, and other members share this thread; so a thread of its own does it.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use pares_client::{Client, ClientError, OpenRequests, Options, Update};
use pares_types::{ClientRequest, MemberId, Role};

use crate::LoadPlan;
use crate::connection::{Connection, Told};
use crate::error::LabError;

/// Between two rounds of all gateways while none is there.
const RETRY_NS: u64 = 5_000_000;
/// How long a gateway may take to sign a returning member on.
const SIGN_ON_MAX: Duration = Duration::from_millis(500);

/// Whether the connection is still there that a turn was on.
///
/// # Errors
/// If something else is wrong.
pub fn keep_if_connected(turn: Result<(), ClientError>) -> Result<bool, LabError> {
    use ClientError::{Closed, Connect, Io, TimedOut};
    match turn {
        Ok(()) => Ok(true),
        Err(Closed | Io(_) | Connect { .. } | TimedOut) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// One member's connection.
pub(crate) struct Session {
    member: MemberId,
    addresses: Vec<SocketAddr>,
    options: Options,
    /// Index of the gateway this member uses while it is there.
    home: usize,
    /// Index of the gateway in use, or to be tried next.
    at: usize,
    client: Option<Client>,
    /// What is unanswered, if lost connections are to be survived.
    open: Option<OpenRequests>,
    /// Requests that came due while there was no connection: their first sending is no repeat.
    unsent: u64,
    /// A connection that is being made, and to which gateway.
    attempt: Option<(usize, JoinHandle<Result<Client, ClientError>>)>,
    /// A connection to the own gateway, while the one in use has something open.
    waiting: Option<Client>,
    /// Gateways tried since the connection was lost.
    tried: usize,
    retry_ns: u64,
    /// Connected again, and not answered since.
    fresh: bool,
}

impl Session {
    /// Connects a member of the plan, by its place among them.
    ///
    /// # Errors
    /// If its gateway cannot be reached.
    pub(crate) fn connect(plan: &LoadPlan, place: usize) -> Result<Self, ClientError> {
        let home = place % plan.addresses.len();
        let credential = plan.credentials.get(place).cloned();
        let member = plan.member(place);
        let options = Options { credential, tls: plan.tls.clone(), ..Options::default() };
        Ok(Self {
            member,
            addresses: plan.addresses.clone(),
            client: Some(Client::connect_with(plan.addresses[home], member, options.clone())?),
            options,
            home,
            at: home,
            open: plan.resume.then(OpenRequests::new),
            unsent: 0,
            attempt: None,
            waiting: None,
            tried: 0,
            retry_ns: 0,
            fresh: false,
        })
    }

    fn survive<T>(&mut self, result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(ClientError::Closed | ClientError::Io(_)) if self.open.is_some() => {
                self.client = None;
                self.at = (self.at + 1) % self.addresses.len();
                (self.tried, self.retry_ns) = (0, 0);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The connection asked for earlier, once it is made or has failed; asks for one to gateway `at` if there is none.
    fn connected(&mut self, at: usize) -> Option<Result<(usize, Client), ClientError>> {
        match self.attempt.take() {
            None => self.attempt = Some((at, self.attempt(at))),
            Some((at, attempt)) if !attempt.is_finished() => self.attempt = Some((at, attempt)),
            Some((at, attempt)) => {
                let connected = attempt.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                return Some(connected.map(|client| (at, client)));
            }
        }
        None
    }

    fn attempt(&self, at: usize) -> JoinHandle<Result<Client, ClientError>> {
        let (address, member) = (self.addresses[at], self.member);
        let options = Options { patience: SIGN_ON_MAX, ..self.options.clone() };
        std::thread::spawn(move || Client::connect_with(address, member, options))
    }
}

impl Connection for Session {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.client.as_ref().map(AsFd::as_fd)
    }

    fn home(&self) -> usize {
        self.home
    }

    fn is_away(&self) -> bool {
        self.client.is_none() || self.at != self.home
    }

    fn send(&mut self, request: &ClientRequest) -> Result<(), LabError> {
        match &mut self.client {
            Some(client) => client.send(request)?,
            None => self.unsent += 1,
        }
        if let Some(open) = &mut self.open {
            open.keep(request);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LabError> {
        let flushed = self.client.as_mut().map_or(Ok(true), Client::flush);
        Ok(self.survive(flushed).map(|_| ())?)
    }

    fn poll(&mut self, on: &mut dyn FnMut(Told)) -> Result<usize, LabError> {
        let Some(client) = &mut self.client else { return Ok(0) };
        let open = &mut self.open;
        let polled = client.poll(|update| {
            if let Some(open) = open {
                open.on_update(&update);
            }
            match update {
                Update::Answer(answer) => on(Told::Answered(answer.client_order_id)),
                Update::Rejected { .. } => on(Told::Rejected),
                Update::Trade(trade) if trade.role == Role::Incoming => on(Told::Traded),
                _ => {}
            }
        });
        Ok(self.survive(polled).map(Option::unwrap_or_default)?)
    }

    fn come_back(&mut self, now_ns: u64) -> u64 {
        if self.client.is_some() || now_ns < self.retry_ns {
            return 0;
        }
        let repeated = match self.connected(self.at) {
            None => return 0,
            Some(Ok((at, mut client))) => {
                let open = self.open.as_mut().expect("only who remembers loses a connection and goes on");
                open.repeat_all(&mut client).map(|repeated| (at, client, repeated as u64))
            }
            Some(Err(error)) => Err(error),
        };
        let Ok((at, client, repeated)) = repeated else {
            self.at = (self.at + 1) % self.addresses.len();
            self.tried += 1;
            if self.tried.is_multiple_of(self.addresses.len()) {
                self.retry_ns = now_ns + RETRY_NS;
            }
            return 0;
        };
        (self.client, self.at, self.fresh) = (Some(client), at, true);
        repeated.saturating_sub(std::mem::take(&mut self.unsent))
    }

    fn go_home(&mut self) {
        if self.client.is_none() || !self.is_away() {
            return;
        }
        if self.waiting.is_none() {
            // It may be still dead: then it is tried again.
            self.waiting = self.connected(self.home).and_then(Result::ok).map(|(_, client)| client);
        }
        if self.waiting.is_some() && self.open.as_ref().is_some_and(OpenRequests::is_empty) {
            (self.client, self.at) = (self.waiting.take(), self.home);
        }
    }

    fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }
}
