//! A connection to a gateway.

use std::collections::VecDeque;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use pares_keys::KeyFile;
use pares_tls::{Stream, TlsStream};
use pares_types::{
    Answer, ClientOrderId, ClientRequest, Command, GatewayId, InstrumentId, MemberId, NewOrder, NewTerms,
    OrderKey, ShardId, Side,
};
use pares_wire::Transcript;
use pares_wire::frame::{self, Ping, Proof, SIGN_ON_JOURNALLED, SIGN_ON_RESUMES, SignOn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::buffers::{Inbox, Outbox};
use crate::options::{Credential, Options, Tls};
use crate::{ClientError, Update};

/// A signed-on connection to a gateway. Nothing blocks but connecting, [`Client::wait`] and
/// [`Client::submit_and_wait`].
pub struct Client {
    stream: Stream<TcpStream>,
    inbox: Inbox,
    outbox: Outbox,
    /// Updates that came while something else was waited for; they are handed out first.
    set_aside: VecDeque<Update>,
    member: MemberId,
    gateway: GatewayId,
    in_flight_max: u16,
    patience: Duration,
}

impl Client {
    /// Connects to the gateway at `address` and signs `member` on.
    ///
    /// # Errors
    /// [`ClientError::Connect`] if nobody listens there; [`ClientError::TimedOut`], [`ClientError::Closed`]
    /// or [`ClientError::Protocol`] if what listens there is no gateway.
    pub fn connect(address: impl ToSocketAddrs + ToString, member: MemberId) -> Result<Self, ClientError> {
        Self::connect_with(address, member, Options::default())
    }

    /// The same with `options`.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_with(
        address: impl ToSocketAddrs + ToString,
        member: MemberId,
        options: Options,
    ) -> Result<Self, ClientError> {
        let name = address.to_string();
        let stream = TcpStream::connect(address).and_then(prepare);
        let stream = stream.map_err(|source| ClientError::Connect { address: name, source })?;
        let stream = match &options.tls {
            None => Stream::Plain(stream),
            Some(Tls { trust, server_name }) => {
                Stream::Tls(Box::new(TlsStream::new(stream, trust.dial(server_name)?)))
            }
        };
        let mut client = Self {
            stream,
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            set_aside: VecDeque::new(),
            member,
            gateway: GatewayId(0),
            in_flight_max: 0,
            patience: options.patience,
        };
        client.sign_on(&options)?;
        Ok(client)
    }

    /// Connects and signs on as the session that a key file names.
    ///
    /// # Errors
    /// As [`Client::connect`]; [`ClientError::Rejected`] if the exchange does not know that key.
    pub fn connect_as(address: impl ToSocketAddrs + ToString, key: &KeyFile) -> Result<Self, ClientError> {
        let credential = Some(Credential::from(key));
        Self::connect_with(address, MemberId(key.member), Options { credential, ..Options::default() })
    }

    fn sign_on(&mut self, options: &Options) -> Result<(), ClientError> {
        let journalled = if options.journalled { SIGN_ON_JOURNALLED } else { 0 };
        let flags = journalled | if options.resumes { SIGN_ON_RESUMES } else { 0 };
        let session = options.credential.as_ref().map_or(0, |credential| credential.session);
        let member = self.member.0.into();
        let sign_on = SignOn { member, flags: flags.into(), session: session.into(), ..SignOn::default() };
        self.outbox.push(|out| frame::write(out, &sign_on))?;
        let asked = self.wait_for(|update| match *update {
            Update::SignedOn { gateway, in_flight_max, .. } => Some(Ok(Err((gateway, in_flight_max)))),
            Update::Challenged { gateway, nonce } => Some(Ok(Ok((gateway, nonce)))),
            Update::Rejected { reason, .. } => Some(Err(ClientError::Rejected(reason))),
            _ => None,
        })?;
        (self.gateway, self.in_flight_max) = match asked {
            Err(signed_on) => signed_on,
            Ok(challenge) => self.prove(challenge, options.credential.as_ref())?,
        };
        Ok(())
    }

    /// Answers the challenge.
    fn prove(
        &mut self,
        (gateway, nonce): (GatewayId, [u8; 32]),
        credential: Option<&Credential>,
    ) -> Result<(GatewayId, u16), ClientError> {
        let Credential { session, secret } = credential.ok_or(ClientError::NoKey)?;
        let transcript = Transcript { nonce, gateway, member: self.member, session: *session, token: 0 };
        let proof = secret.prove(&transcript.bytes());
        let (first, second) = proof.split_first_chunk().expect("a proof has 64 bytes");
        let second = second.try_into().expect("a proof has 64 bytes");
        self.outbox.push(|out| frame::write(out, &Proof { first: *first, second }))?;
        self.wait_for(|update| match *update {
            Update::SignedOn { gateway, in_flight_max, .. } => Some(Ok((gateway, in_flight_max))),
            Update::Rejected { reason, .. } => Some(Err(ClientError::Rejected(reason))),
            _ => None,
        })
    }

    /// The gateway at the other end.
    #[must_use]
    pub fn gateway(&self) -> GatewayId {
        self.gateway
    }

    /// Who is signed on.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.member
    }

    /// Requests that may be unanswered on this connection; more are rejected as overload.
    #[must_use]
    pub fn in_flight_max(&self) -> u16 {
        self.in_flight_max
    }

    /// Buffers a request; [`Client::flush`] sends it.
    ///
    /// # Errors
    /// [`ClientError::Backlogged`], with nothing buffered.
    pub fn send(&mut self, request: &ClientRequest) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write_request(out, request))
    }

    /// Buffers a new order.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn enter(
        &mut self,
        client_order_id: ClientOrderId,
        instrument: InstrumentId,
        order: NewOrder,
    ) -> Result<(), ClientError> {
        self.send(&ClientRequest::Enter { client_order_id, instrument, order })
    }

    /// Buffers a change of the order entered as `target`; [`NewTerms::new`] changes price and total quantity.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn amend(
        &mut self,
        client_order_id: ClientOrderId,
        target: ClientOrderId,
        terms: NewTerms,
    ) -> Result<(), ClientError> {
        self.send(&ClientRequest::Amend { client_order_id, target, terms })
    }

    /// Buffers a cancel of the order entered as `target`.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn cancel(
        &mut self,
        client_order_id: ClientOrderId,
        target: ClientOrderId,
    ) -> Result<(), ClientError> {
        self.send(&ClientRequest::Cancel { client_order_id, target })
    }

    /// Buffers a cancel of all the member's orders in `instrument`, or everywhere if that is 0; with a
    /// `side` only of its bids, or its offers.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn mass_cancel(
        &mut self,
        client_order_id: ClientOrderId,
        instrument: InstrumentId,
        side: Option<Side>,
    ) -> Result<(), ClientError> {
        self.send(&ClientRequest::MassCancel { client_order_id, instrument, side })
    }

    /// Buffers a request of the exchange, or [`Command::Block`] of the client's own member: phases, rules,
    /// instruments, blocks, busts, the time. What is for all instruments is for instrument 0.
    ///
    /// # Errors
    /// As [`Client::send`].
    ///
    /// # Panics
    /// If the command is one that members have requests of their own for.
    pub fn exchange(
        &mut self,
        client_order_id: ClientOrderId,
        instrument: InstrumentId,
        command: Command,
    ) -> Result<(), ClientError> {
        self.send(&ClientRequest::Exchange { client_order_id, instrument, command })
    }

    /// Buffers the wish for the member's stream of a shard, or of each, from number `next` on (0: from now on): all that the member is told
    /// there, answers to its other sessions included, once and in order. [`Update::Resumed`] says that what was missed has been told.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn resume(&mut self, shard: Option<ShardId>, next: u64) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write_resume(out, shard, next))
    }

    /// Buffers the question how an order of the member is; the gateway answers with [`Update::OrderStatus`] or [`Update::UnknownOrder`].
    /// Questions are answered in the order they were asked.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn order_status(&mut self, key: OrderKey) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write_order_status_request(out, key))
    }

    /// Buffers a ping; the gateway answers with [`Update::Pong`].
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn ping(&mut self, token: u64) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write(out, &Ping { token: token.into() }))
    }

    /// Sends what is buffered, as far as the connection takes it. Whether that was everything.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn flush(&mut self) -> Result<bool, ClientError> {
        Ok(self.outbox.flush(&mut self.stream)? && !self.stream.holds_output())
    }

    /// Flushes; if not everything went, waits a while for the gateway to read on.
    pub(crate) fn flush_or_wait(&mut self) -> Result<(), ClientError> {
        if !self.flush()? {
            self.wait_for_stream(self.patience)?;
        }
        Ok(())
    }

    /// Hands out what has come in, reading the connection at most once, and returns how many updates that was.
    ///
    /// # Errors
    /// If the connection is lost or does not make sense; updates handed out before it count.
    pub fn poll(&mut self, mut on_update: impl FnMut(Update)) -> Result<usize, ClientError> {
        let mut count = 0;
        while let Some(update) = self.set_aside.pop_front() {
            on_update(update);
            count += 1;
        }
        self.inbox.fill(&mut self.stream)?;
        while let Some(update) = self.inbox.next()? {
            on_update(update);
            count += 1;
        }
        Ok(count)
    }

    /// Waits until there is something to [`Client::poll`] (a lost connection included), or buffered requests
    /// can be flushed, or `timeout` is over, which is exact to the nanosecond. Whether there is something
    /// to poll.
    ///
    /// # Errors
    /// If the operating system refuses to wait.
    pub fn wait(&self, timeout: Duration) -> Result<bool, ClientError> {
        let is_there = !self.set_aside.is_empty() || self.stream.holds_input();
        if is_there { Ok(true) } else { self.wait_for_stream(timeout) }
    }

    fn wait_for_stream(&self, timeout: Duration) -> Result<bool, ClientError> {
        let is_sent = self.outbox.is_empty() && !self.stream.holds_output();
        let write = if is_sent { PollFlags::empty() } else { PollFlags::OUT };
        let mut fds = [PollFd::new(self.stream.socket_ref(), PollFlags::IN | write)];
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(fds[0].revents().intersects(!PollFlags::OUT)),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }

    /// Sends `request` (and all that is buffered) and waits for its answer. Other updates are kept for
    /// the next [`Client::poll`].
    ///
    /// # Errors
    /// [`ClientError::Rejected`] if the gateway did not take it in; [`ClientError::TimedOut`] after the
    /// [`Options::patience`]; others if the connection is lost.
    pub fn submit_and_wait(&mut self, request: &ClientRequest) -> Result<Answer, ClientError> {
        self.send(request)?;
        let name = request.client_order_id();
        self.wait_for(|update| match *update {
            Update::Answer(answer) if answer.client_order_id == name && !answer.is_part() => Some(Ok(answer)),
            Update::Rejected { client_order_id, reason } if client_order_id == name => {
                Some(Err(ClientError::Rejected(reason)))
            }
            _ => None,
        })
    }

    /// Flushes and reads until `wanted` says what an update means; sets all others aside.
    fn wait_for<T>(
        &mut self,
        wanted: impl Fn(&Update) -> Option<Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + self.patience;
        let mut is_late = false;
        loop {
            self.flush()?;
            while let Some(update) = self.inbox.next()? {
                match wanted(&update) {
                    Some(result) => return result,
                    None => self.set_aside.push_back(update),
                }
            }
            // Also while other updates keep coming; but what has come is looked at.
            if is_late {
                return Err(ClientError::TimedOut);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            is_late = left.is_zero();
            if !self.inbox.fill(&mut self.stream)? && !is_late {
                self.wait_for_stream(left)?;
            }
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.socket_ref().as_fd()
    }
}

fn prepare(stream: TcpStream) -> std::io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
