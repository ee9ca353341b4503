//! A connection to a gateway.

mod sign_on;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use pares_keys::KeyFile;
use pares_tls::{Stream, TlsStream};
use pares_types::{
    Answer, ClientOrderId, ClientRequest, Command, GatewayId, InstrumentId, MemberId, NewOrder, NewTerms,
    ShardId, Side,
};
use pares_wire::frame::{self, CancelAfter, Ping};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::buffers::{Inbox, Outbox};
use crate::heartbeat::Heartbeat;
use crate::options::{Credential, Options, Tls};
use crate::{ClientError, Update};

/// The pings of heartbeats, whose answers are not told.
const HEARTBEAT_TOKEN: u64 = u64::MAX;

/// A signed-on connection to a gateway. Nothing blocks but connecting, [`Client::wait`] and
/// [`Client::submit_and_wait`].
pub struct Client {
    stream: Stream<Box<dyn Socket>>,
    inbox: Inbox,
    pub(crate) outbox: Outbox,
    /// Updates that came while something else was waited for; they are handed out first.
    set_aside: VecDeque<Update>,
    member: MemberId,
    gateway: GatewayId,
    in_flight_max: u16,
    heartbeat: Option<Heartbeat>,
    patience: Duration,
}

/// What bytes of a connection go through.
trait Socket: Read + Write + AsFd + Send + Sync {}
impl Socket for TcpStream {}
impl Socket for UnixStream {}

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
        let stream: Box<dyn Socket> = Box::new(stream);
        let stream = match &options.tls {
            None => Stream::Plain(stream),
            Some(Tls { trust, server_name }) => {
                Stream::Tls(Box::new(TlsStream::new(stream, trust.dial(server_name)?)))
            }
        };
        Self::over(stream, member, &options)
    }

    /// Signs `member` on at a gateway's socket on this machine, where there is no TLS.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn at_socket(socket: UnixStream, member: MemberId, options: &Options) -> Result<Self, ClientError> {
        socket.set_nonblocking(true)?;
        Self::over(Stream::Plain(Box::new(socket)), member, options)
    }

    fn over(
        stream: Stream<Box<dyn Socket>>,
        member: MemberId,
        options: &Options,
    ) -> Result<Self, ClientError> {
        let mut client = Self {
            stream,
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            set_aside: VecDeque::new(),
            member,
            gateway: GatewayId(0),
            in_flight_max: 0,
            heartbeat: None,
            patience: options.patience,
        };
        client.sign_on(options)?;
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

    /// Buffers the wish for the member's stream of a shard, or of each, from number `next` on (0: from now on): all that the member receives
    /// there, answers to its other sessions included, once and in order. [`Update::Resumed`] says that what was missed has been sent.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn resume(&mut self, shard: Option<ShardId>, next: u64) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write_resume(out, shard, next))
    }

    /// Buffers a ping; the gateway answers with [`Update::Pong`].
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn ping(&mut self, token: u64) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write(out, &Ping { token: token.into() }))
    }

    /// Buffers a dead man's timer: unless it is set again within `after`, what the session guards is cancelled. `None` stops it.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn cancel_after(&mut self, after: Option<Duration>) -> Result<(), ClientError> {
        let after_ms = after.map_or(0, |after| after.as_millis().clamp(1, u32::MAX.into()) as u32).into();
        self.outbox.push(|out| frame::write(out, &CancelAfter { after_ms, reserved: 0.into() }))
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

    /// Hands out what has come in, reading the connection at most once, and returns how many updates that was. With a
    /// heartbeat it has to be called that often, and [`Client::flush`] after it.
    ///
    /// # Errors
    /// If the connection is lost or does not make sense, or the gateway is silent; updates handed out before it count.
    pub fn poll(&mut self, mut on_update: impl FnMut(Update)) -> Result<usize, ClientError> {
        let mut count = 0;
        while let Some(update) = self.set_aside.pop_front() {
            on_update(update);
            count += 1;
        }
        self.fill()?;
        while let Some(update) = self.next_update()? {
            on_update(update);
            count += 1;
        }
        self.keep_alive()?;
        Ok(count)
    }

    fn fill(&mut self) -> Result<bool, ClientError> {
        let has_come = self.inbox.fill(&mut self.stream)?;
        if let Some(heartbeat) = self.heartbeat.as_mut().filter(|_| has_come) {
            heartbeat.hear(Instant::now());
        }
        Ok(has_come)
    }

    /// The next that has come, answers to heartbeats aside.
    fn next_update(&mut self) -> Result<Option<Update>, ClientError> {
        loop {
            match self.inbox.next()? {
                Some(Update::Pong { token: HEARTBEAT_TOKEN }) => {}
                update => return Ok(update),
            }
        }
    }

    /// Says that this end is there, if it is time to.
    fn keep_alive(&mut self) -> Result<(), ClientError> {
        let Some(heartbeat) = &mut self.heartbeat else { return Ok(()) };
        let now = Instant::now();
        if heartbeat.is_missed(now) {
            return Err(ClientError::Silent);
        }
        // A full outbox says as much.
        if heartbeat.is_due(now) && !matches!(self.ping(HEARTBEAT_TOKEN), Err(ClientError::Backlogged)) {
            self.flush()?;
        }
        Ok(())
    }

    /// Waits until there is something to [`Client::poll`] (a lost connection included), or buffered requests
    /// can be flushed, or `timeout` is over, which is exact to the nanosecond, or it is time for a heartbeat, which `poll` sends.
    /// Whether there is something to poll.
    ///
    /// # Errors
    /// If the operating system refuses to wait.
    pub fn wait(&self, timeout: Duration) -> Result<bool, ClientError> {
        let is_there = !self.set_aside.is_empty() || self.stream.holds_input();
        let timeout = self.until_heartbeat(timeout);
        if is_there { Ok(true) } else { self.wait_for_stream(timeout) }
    }

    fn until_heartbeat(&self, timeout: Duration) -> Duration {
        self.heartbeat.as_ref().map_or(timeout, |heartbeat| timeout.min(heartbeat.left(Instant::now())))
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
    pub(crate) fn wait_for<T>(
        &mut self,
        wanted: impl Fn(&Update) -> Option<Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + self.patience;
        let mut is_late = false;
        loop {
            self.flush()?;
            while let Some(update) = self.next_update()? {
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
            if !self.fill()? && !is_late {
                self.wait_for_stream(self.until_heartbeat(left))?;
            }
            self.keep_alive()?;
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
