//! All connections of one site, on one thread that never blocks but in [`Links::poll`].
//!
//! Two sites that dial each other end up with two connections or, each giving way to the other, with none. So only the
//! lower-numbered of a pair dials; the other listens. The dialler never gives up, with pauses that grow to a bound,
//! since a site may be away for days and must be found again without an operator's help.
//!
//! ```text
//!            dial              hello both ways
//!  away ------------> dialled -----------------> connected
//!   ^                    |                           |
//!   +---- pause <--------+---------------------------+   refused, silent, lost, full
//! ```
//! Nothing is kept for a site that is away, and a connection that ends takes what was unsent with it: what must
//! arrive is repeated by the protocol above, which knows what is still wanted (paper 3 assumes channels that never
//! lose, which no network gives).

mod accepting;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use crate::clients::ClientId;
use crate::config::LinksConfig;
use crate::ended::Ended;
use crate::hello::UNDERSTANDS;
use crate::listen::listen;
use crate::remote::Remote;
use crate::revoked::Watch;
use crate::sink::{Counts, LinkSink, LinksError, SendError, Waker};
use crate::table::{Entry, Role, Table, is_connected};
use crate::tls::site_name;
use crate::turn::Turn;

const SITES: Token = Token(usize::MAX);
const CLIENTS: Token = Token(usize::MAX - 1);
const WAKER: Token = Token(usize::MAX - 2);

/// All connections of one site.
pub struct Links {
    poll: Poll,
    events: Events,
    waker: Waker,
    listener: TcpListener,
    client_listener: Option<TcpListener>,
    config: LinksConfig,
    remotes: BTreeMap<u16, Remote>,
    table: Table,
    clients: usize,
    /// When to accept again without an event from the listener.
    accept_at: Option<Instant>,
    /// Looks for a new list of revoked certificates; without TLS there is none.
    revoked: Option<Watch>,
    counts: Counts,
}

impl Links {
    /// Listens, and begins to dial with the first poll.
    ///
    /// # Errors
    /// If the configuration contradicts itself, the certificate does not name this site, or a port is taken.
    pub fn open(config: LinksConfig) -> Result<Self, LinksError> {
        config.check().map_err(LinksError::Config)?;
        if let Some(identity) = &config.identity {
            identity.check_own_name(&site_name(config.number, &config.system))?;
        }
        let held_max = config.clients.as_ref().map_or(0, |clients| clients.held_max);
        let poll = Poll::new()?;
        let waker = Waker(Arc::new(mio::Waker::new(poll.registry(), WAKER)?));
        let listener = listen(&poll, config.listen, SITES)?;
        let client_listener =
            config.clients.as_ref().map(|clients| listen(&poll, clients.listen, CLIENTS)).transpose()?;
        let now = Instant::now();
        let remotes =
            config.peers.iter().map(|peer| (peer.number, Remote::new(peer, &config, now))).collect();
        let revoked = config.identity.as_ref().map(|identity| Watch::new(identity.revoked(), now));
        Ok(Self {
            poll,
            events: Events::with_capacity(256),
            waker,
            listener,
            client_listener,
            config,
            remotes,
            table: Table::new(held_max),
            clients: 0,
            accept_at: None,
            revoked,
            counts: Counts::default(),
        })
    }

    /// Where other sites reach it.
    ///
    /// # Errors
    /// If the operating system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where applications reach it, if they do.
    ///
    /// # Errors
    /// If the operating system does not say.
    pub fn clients_address(&self) -> io::Result<Option<SocketAddr>> {
        self.client_listener.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// What other threads wake the poll with.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Has a poll end when `fd` can be read, as by its owner it can when there is other work. Who owns it reads it.
    ///
    /// # Errors
    /// If the operating system cannot wait for it.
    pub fn end_polls_at(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&fd.as_raw_fd()), WAKER, Interest::READABLE)
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sends what is pending, waits until something happens, `timeout` passes or the waker is used, and tells `sink` what
    /// happened. With no `timeout` it waits for as long as that takes. It may return early, and with nothing to tell.
    ///
    /// # Errors
    /// If the operating system cannot wait. `sink` receives what happens to single connections.
    pub fn poll(&mut self, timeout: Option<Duration>, sink: &mut impl LinkSink) -> io::Result<()> {
        self.table.flush();
        self.bury(sink);
        self.wait(timeout)?;
        self.read(sink);
        let now = Instant::now();
        self.table.end_late(now);
        self.look_for_revoked(now, sink);
        self.dial_due(now, sink);
        self.table.flush();
        self.bury(sink);
        Ok(())
    }

    /// Appends a frame to what goes to `peer`. It leaves with the next flush or poll.
    ///
    /// # Errors
    /// If there is no connection, or the frame is too long. If more than `backlog_max` would be waiting, the connection
    /// is ended too, this and later frames are dropped, and `disconnected` follows with the next poll: a site so far
    /// behind is better served by a new connection than by memory without bound.
    pub fn send(&mut self, peer: u16, payload: &[u8]) -> Result<(), SendError> {
        let slot = self.remotes.get(&peer).and_then(|remote| remote.slot).ok_or(SendError::NotConnected)?;
        self.push(slot, payload, self.config.frame_max, self.config.backlog_max)
    }

    /// Sends what is pending: to each site and application one write with everything.
    pub fn flush(&mut self) {
        self.table.flush();
    }

    /// Bytes that wait to be taken by the socket to `peer`; 0 without connection. TLS may hold some 256 KiB more.
    #[must_use]
    pub fn backlog(&self, peer: u16) -> usize {
        let slot = self.remotes.get(&peer).and_then(|remote| remote.slot);
        slot.map_or(0, |slot| self.table.backlog(slot))
    }

    /// The version that this site speaks.
    #[must_use]
    pub fn speaks(&self) -> u16 {
        self.config.speaks
    }

    /// The version of the connection to `peer`, or of the last one; without any the lowest.
    #[must_use]
    pub fn version(&self, peer: u16) -> u16 {
        self.remotes.get(&peer).map_or(UNDERSTANDS, |remote| remote.version)
    }

    /// Whether `peer` is connected.
    #[must_use]
    pub fn is_connected(&self, peer: u16) -> bool {
        self.remotes.get(&peer).is_some_and(|remote| remote.slot.is_some())
    }

    /// Ends the connection to `peer`, whom the caller believes dead; a new one will be made. `disconnected` follows
    /// with the next poll.
    pub fn disconnect(&mut self, peer: u16) {
        if let Some(slot) = self.remotes.get(&peer).and_then(|remote| remote.slot) {
            self.table.end(slot, Ended::Closed);
        }
    }

    /// Appends a frame to what goes to an application.
    ///
    /// # Errors
    /// As [`Self::send`]; an application with too much waiting is closed for good.
    pub fn send_client(&mut self, client: ClientId, payload: &[u8]) -> Result<(), SendError> {
        let Some(limits) = &self.config.clients else { return Err(SendError::NotConnected) };
        let (reply_max, backlog_max) = (limits.reply_max, limits.backlog_max);
        let known = self.table.client(client.slot(), client.generation()).is_some_and(|entry| entry.known);
        if !known {
            return Err(SendError::NotConnected);
        }
        self.push(client.slot(), payload, reply_max, backlog_max)
    }

    /// Closes an application's connection, what is unsent included. `client_gone` follows with the next poll.
    pub fn close_client(&mut self, client: ClientId) {
        if self.table.client(client.slot(), client.generation()).is_some() {
            self.table.end(client.slot(), Ended::Closed);
        }
    }

    fn push(&mut self, slot: usize, payload: &[u8], max: usize, backlog_max: usize) -> Result<(), SendError> {
        if payload.len() > max {
            return Err(SendError::TooLong);
        }
        let Some(entry) = self.table.get(slot) else { return Err(SendError::NotConnected) };
        let backlog = entry.wire.backlog();
        if backlog + payload.len() > backlog_max {
            self.table.end(slot, Ended::Slow(backlog));
            return Err(SendError::Full);
        }
        entry.wire.push(payload);
        self.table.mark_dirty(slot);
        if self.table.recount(slot) { Ok(()) } else { Err(SendError::Full) }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = if self.table.is_busy() { Some(Duration::ZERO) } else { self.bound(timeout) };
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        let again = self.accept_at.take_if(|at| *at <= Instant::now()).is_some();
        let (mut sites, mut clients) = (again, again);
        let mut writable = Vec::new();
        for event in &self.events {
            match event.token() {
                SITES => sites = true,
                CLIENTS => clients = true,
                WAKER => {}
                Token(slot) => {
                    if event.is_readable() || event.is_read_closed() || event.is_error() {
                        self.table.mark_readable(slot);
                    }
                    if event.is_writable() || event.is_error() {
                        writable.push(slot);
                    }
                }
            }
        }
        writable.into_iter().for_each(|slot| self.on_writable(slot));
        if sites {
            self.accept_sites();
        }
        if clients {
            self.accept_clients();
        }
        Ok(())
    }

    /// Believes no peer any more whose certificate has been revoked.
    fn look_for_revoked(&mut self, now: Instant, sink: &mut impl LinkSink) {
        let (Some(watch), Some(identity)) = (&mut self.revoked, &mut self.config.identity) else { return };
        if !watch.has_changed(now) {
            return;
        }
        match identity.again(&site_name(self.config.number, &self.config.system)) {
            Ok(again) => {
                *identity = again;
                self.table.end_tls(|| Ended::Revised);
            }
            Err(why) => {
                watch.again();
                sink.failed(None, self.config.listen, &Ended::Unreadable(why));
            }
        }
    }

    /// The time to wait, given what else has its time.
    fn bound(&self, timeout: Option<Duration>) -> Option<Duration> {
        let dial = self.remotes.values().filter_map(|remote| remote.dial_at);
        let look = self.revoked.as_ref().map(|watch| watch.at);
        let next = dial.chain(self.table.next_deadline()).chain(self.accept_at).chain(look).min();
        let until = next.map(|next| next.saturating_duration_since(Instant::now()));
        match (timeout, until) {
            (Some(timeout), Some(until)) => Some(timeout.min(until)),
            (timeout, until) => timeout.or(until),
        }
    }

    fn on_writable(&mut self, slot: usize) {
        let Some(entry) = self.table.get(slot) else { return };
        if let (Role::Dialled(peer), false) = (entry.role, entry.connected) {
            match is_connected(entry.wire.stream()) {
                Ok(true) => entry.connected = true,
                Ok(false) => return,
                Err(error) => return self.table.end(slot, Ended::Unreachable(error)),
            }
            // Latency matters more than segments; a socket that cannot be told so still works.
            let _ = entry.wire.stream().set_nodelay(true);
            entry.wire.push(&self.config.hello_to(peer));
            self.table.mark_readable(slot);
        }
        self.table.mark_dirty(slot);
    }

    fn dial_due(&mut self, now: Instant, sink: &mut impl LinkSink) {
        let is_due = |remote: &Remote| remote.dial_at.is_some_and(|at| at <= now);
        for (&number, remote) in self.remotes.iter_mut().filter(|(_, remote)| is_due(remote)) {
            remote.dial_at = None;
            let (address, deadline) = (remote.peer.address, now + self.config.hello_max);
            let inserted = remote.dial(&self.config).and_then(|wire| {
                let role = Role::Dialled(number);
                let inserted = self.table.insert(self.poll.registry(), wire, role, address, Some(deadline));
                inserted.map_err(Ended::Unreachable)
            });
            if let Err(why) = inserted {
                remote.dial_later(now, self.config.pause_max);
                self.counts.failed += 1;
                sink.failed(Some(number), address, &why);
            }
        }
    }

    /// Reports what ended.
    fn bury(&mut self, sink: &mut impl LinkSink) {
        while let Some((slot, entry, why)) = self.table.bury(self.poll.registry()) {
            self.counts.refused += u64::from(why.is_refusal());
            if entry.role == Role::Client {
                self.clients -= 1;
            }
            if entry.known {
                self.report_lost(slot, &entry, &why, sink);
            } else if !matches!(why, Ended::Replaced) {
                self.counts.failed += 1;
                let peer = if let Role::Dialled(peer) = entry.role { Some(peer) } else { None };
                sink.failed(peer, entry.address, &why);
            }
            if let Role::Site(peer) | Role::Dialled(peer) = entry.role
                && let Some(remote) = self.remotes.get_mut(&peer)
                && remote.dials
            {
                remote.dial_later(Instant::now(), self.config.pause_max);
            }
        }
    }

    fn report_lost(&mut self, slot: usize, entry: &Entry, why: &Ended, sink: &mut impl LinkSink) {
        match entry.role {
            Role::Site(peer) => {
                self.counts.disconnected += 1;
                let remote = self.remotes.get_mut(&peer).expect("only configured sites are known");
                assert_eq!(remote.slot.take(), Some(slot), "a replaced connection is not known");
                sink.disconnected(peer, why);
            }
            Role::Client => {
                self.counts.clients_slow += u64::from(matches!(why, Ended::Slow(_)));
                sink.client_gone(ClientId::new(slot, entry.generation), why);
            }
            Role::Stranger | Role::Dialled(_) => unreachable!("known means that it has said who it is"),
        }
    }

    fn read(&mut self, sink: &mut impl LinkSink) {
        let Self { table, remotes, config, counts, .. } = self;
        table.read(|table, slot| {
            Turn { slot, table, remotes, config, counts }.take(sink);
        });
    }
}
