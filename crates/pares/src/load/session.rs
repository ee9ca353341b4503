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

use std::net::SocketAddr;
use std::time::Duration;

use pares_client::{Client, ClientError, OpenRequests, Options, Update};
use pares_types::{ClientRequest, MemberId};

use super::LoadPlan;

/// Between two rounds of all gateways while none is there.
const RETRY_NS: u64 = 5_000_000;
/// How long a gateway may take to sign a returning member on.
const SIGN_ON_MAX: Duration = Duration::from_millis(500);

/// One member's connection.
pub(super) struct Session {
    member: MemberId,
    addresses: Vec<SocketAddr>,
    /// Index of the gateway this member uses while it is there.
    pub(super) home: usize,
    /// Index of the gateway in use, or to be tried next.
    at: usize,
    client: Option<Client>,
    /// What is unanswered, if lost connections are to be survived.
    open: Option<OpenRequests>,
    /// Requests that came due while there was no connection: their first sending is no repeat.
    unsent: u64,
    /// Gateways tried since the connection was lost.
    tried: usize,
    retry_ns: u64,
    /// Connected anew, and not answered since.
    fresh: bool,
}

impl Session {
    /// Connects member `member` of the plan.
    ///
    /// # Errors
    /// If its gateway cannot be reached.
    pub(super) fn connect(plan: &LoadPlan, member: u32) -> Result<Self, ClientError> {
        let home = (member - 1) as usize % plan.addresses.len();
        let member = MemberId(member);
        Ok(Self {
            member,
            addresses: plan.addresses.clone(),
            home,
            at: home,
            client: Some(Client::connect(plan.addresses[home], member)?),
            open: plan.resume.then(OpenRequests::new),
            unsent: 0,
            tried: 0,
            retry_ns: 0,
            fresh: false,
        })
    }

    /// The connection, if there is one.
    pub(super) fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// Whether it is connected to another gateway than its own, or to none.
    pub(super) fn is_away(&self) -> bool {
        self.client.is_none() || self.at != self.home
    }

    /// Buffers a request; without a connection it is kept for the next one.
    ///
    /// # Errors
    /// If too much is waiting to be sent.
    pub(super) fn send(&mut self, request: &ClientRequest) -> Result<(), ClientError> {
        match &mut self.client {
            Some(client) => client.send(request)?,
            None => self.unsent += 1,
        }
        if let Some(open) = &mut self.open {
            open.keep(request);
        }
        Ok(())
    }

    /// Sends what is buffered.
    ///
    /// # Errors
    /// If the connection is lost and losses are not to be survived.
    pub(super) fn flush(&mut self) -> Result<(), ClientError> {
        let flushed = self.client.as_mut().map_or(Ok(true), Client::flush);
        self.survive(flushed).map(|_| ())
    }

    /// Hands out what has come in. Says how many updates that was.
    ///
    /// # Errors
    /// As [`Session::flush`].
    pub(super) fn poll(&mut self, mut on: impl FnMut(Update)) -> Result<usize, ClientError> {
        let Some(client) = &mut self.client else { return Ok(0) };
        let open = &mut self.open;
        let polled = client.poll(|update| {
            if let Some(open) = open {
                open.on_update(&update);
            }
            on(update);
        });
        self.survive(polled).map(Option::unwrap_or_default)
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

    /// Without a connection, tries the next gateway and repeats what is open there. Says how many requests were
    /// sent a second time. With one there is nothing to do.
    pub(super) fn come_back(&mut self, now_ns: u64) -> u64 {
        if self.client.is_some() || now_ns < self.retry_ns {
            return 0;
        }
        let Some((client, repeated)) = self.connect_again(self.at) else {
            self.at = (self.at + 1) % self.addresses.len();
            self.tried += 1;
            if self.tried % self.addresses.len() == 0 {
                self.retry_ns = now_ns + RETRY_NS;
            }
            return 0;
        };
        (self.client, self.fresh) = (Some(client), true);
        repeated.saturating_sub(std::mem::take(&mut self.unsent))
    }

    /// Returns to its own gateway once nothing is open, so that nothing needs to be repeated.
    pub(super) fn go_home(&mut self) {
        let idle = self.open.as_ref().is_some_and(OpenRequests::is_empty);
        if self.client.is_some() && self.is_away() && idle {
            // It may be still dead: then it is tried again.
            if let Some((client, _)) = self.connect_again(self.home) {
                (self.client, self.at) = (Some(client), self.home);
            }
        }
    }

    fn connect_again(&mut self, at: usize) -> Option<(Client, u64)> {
        let options = Options { patience: SIGN_ON_MAX, ..Options::default() };
        let mut client = Client::connect_with(self.addresses[at], self.member, options).ok()?;
        let repeated = self.open.as_mut()?.repeat_all(&mut client).ok()?;
        Some((client, repeated as u64))
    }

    /// Whether this is the first answer on a connection that replaced a lost one.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }
}
