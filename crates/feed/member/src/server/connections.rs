//! All connections of a server: traders, and peers either way. One thread, no waiting.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use pares_desk::frame::{self, CutOff, NEWS_BYTES_MAX, REQUEST_BYTES_MAX};
use pares_desk::item::TraderId;
use pares_desk::session::SessionBuffers;
use pares_desk::shown::ShownCursor;
use pares_desk::transfer::TransferPace;
use pares_roles::world::Ready;
use pares_types::Position;

use super::web::write_text;
use super::web_end::WebEnd;
use crate::config::MemberConfig;
use crate::world::Dial;

/// Connections beyond those of traders: peers', both ways.
pub(crate) const PEERS_MAX: usize = 32;
/// Bytes read of a connection in one go.
const READ_BYTES: usize = 16 << 10;
/// Connections taken in a turn.
const ACCEPTED_MAX: usize = 64;
/// How long a stranger may take to say who it is, nanoseconds.
const STRANGER_NS: u64 = 10_000_000_000;

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(super) enum Who {
    /// It has not said so yet.
    Stranger { since_ns: u64 },
    /// A trader.
    Trader { trader: TraderId },
    /// A peer that connected to this server, and perhaps wants the stream.
    Peer { transfer: Option<Transfer> },
    /// A peer that this server connected to.
    Dialled { peer: u16 },
}

/// A peer being filled.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) next: Position,
    pub(super) pace: TransferPace,
}

/// How much of the market a trader was shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShownBy {
    pub(super) books: ShownCursor,
    /// Up to which change of states it was sent those that are not current, and those that are.
    pub(super) warned: u64,
    pub(super) told: u64,
}

/// One connection.
pub(super) struct Connection<T> {
    stream: T,
    pub(super) buffers: SessionBuffers,
    pub(super) who: Who,
    /// If it wants books.
    pub(super) shown: Option<ShownBy>,
    /// If it speaks WebSocket.
    web: Option<Box<WebEnd>>,
    is_readable: bool,
    is_writable: bool,
    is_over: bool,
    /// Why the server ended it, if it did.
    cut_off: CutOff,
}

impl<T: Read + Write> Connection<T> {
    fn new(stream: T, who: Who) -> Self {
        let bytes_max = if matches!(who, Who::Dialled { .. }) { NEWS_BYTES_MAX } else { REQUEST_BYTES_MAX };
        let buffers = SessionBuffers::new(bytes_max);
        let (shown, web) = (None, None);
        Self {
            stream,
            buffers,
            who,
            shown,
            web,
            is_readable: true,
            is_writable: true,
            is_over: false,
            cut_off: CutOff::None,
        }
    }

    pub(super) fn is_web(&self) -> bool {
        self.web.is_some()
    }

    /// Whether it speaks WebSocket, as far as what has come says so.
    fn turns_web(&mut self, origins: &Arc<[String]>) -> bool {
        if self.web.is_none() && matches!(self.who, Who::Stranger { .. }) && self.buffers.begins_with(b"GET ")
        {
            self.web = Some(Box::new(WebEnd::new(origins)));
        }
        self.web.is_some()
    }

    /// The next text that came on a WebSocket.
    pub(super) fn next_text(&mut self, now_ns: u64) -> Option<String> {
        let web = self.web.as_mut().filter(|_| !self.is_over)?;
        let input = self.buffers.take_input();
        web.on_input(&input);
        let text = web.next_text();
        let (output, is_over) = (web.take_output(), web.is_over());
        if !output.is_empty() {
            self.answer(|out| out.extend_from_slice(&output));
        }
        if is_over && text.is_none() {
            let _ = self.write(now_ns);
            self.is_over = true;
        }
        text
    }

    /// The next frame that came, into `payload`: its kind.
    pub(super) fn next_frame(&mut self, payload: &mut Vec<u8>) -> Option<u8> {
        // What was said behind the last word that made sense is not done.
        if self.is_over {
            return None;
        }
        match self.buffers.next_frame() {
            Ok(Some((kind, bytes))) => {
                payload.clear();
                payload.extend_from_slice(bytes);
                Some(kind)
            }
            Ok(None) => None,
            Err(_) => {
                self.end(CutOff::Malformed);
                None
            }
        }
    }

    /// Answers; one that does not read its answers is cut off.
    pub(super) fn answer(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.buffers.answer(write) {
            self.end(CutOff::TooSlow);
        }
    }

    /// Ends the connection, with a last word if it would be understood.
    pub(super) fn end(&mut self, cut_off: CutOff) {
        if !self.is_over && self.buffers.is_between_frames() && cut_off != CutOff::None {
            let mut word = Vec::new();
            match self.is_web() {
                true => write_text(&mut word, &ended_text(cut_off)),
                false => frame::write_ended(&mut word, cut_off),
            }
            // It may have no room; then the next sign-on tells.
            let _ = self.stream.write(&word);
        }
        if !self.is_over {
            (self.is_over, self.cut_off) = (true, cut_off);
        }
    }

    /// Reads once. Whether anything came.
    fn read(&mut self, scratch: &mut [u8]) -> bool {
        while self.is_readable && !self.is_over {
            let room = scratch.len().min(self.buffers.room());
            if room == 0 {
                return false;
            }
            match self.stream.read(&mut scratch[..room]) {
                Ok(0) => self.is_over = true,
                Ok(bytes) => {
                    self.buffers.on_input(&scratch[..bytes]);
                    return true;
                }
                Err(error) if is_not_now(&error) => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_over = true,
            }
        }
        false
    }

    /// Sends what there is, as far as the connection takes it. Whether it takes more.
    pub(super) fn write(&mut self, now_ns: u64) -> bool {
        while self.is_writable && !self.is_over {
            let unsent = self.buffers.unsent();
            if unsent.is_empty() {
                return true;
            }
            match self.stream.write(unsent) {
                Ok(0) => self.is_over = true,
                Ok(bytes) => self.buffers.sent(bytes, now_ns),
                Err(error) if is_not_now(&error) => self.is_writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_over = true,
            }
        }
        if !self.is_over {
            self.buffers.sent(0, now_ns);
        }
        false
    }
}

fn ended_text(cut_off: CutOff) -> String {
    serde_json::json!({ "type": "ended", "why": cut_off.word() }).to_string()
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

/// All of them.
pub(super) struct Connections<S: Dial> {
    sockets: S,
    slots: Vec<Option<Connection<S::Stream>>>,
    free: Vec<usize>,
    count: usize,
    count_max: usize,
    ready: Vec<Ready>,
    scratch: Box<[u8]>,
    /// Whether a connection may wait to be accepted.
    is_wanted: bool,
    /// Whether a connection became writable.
    is_writable: bool,
    /// Of which pages are let in.
    origins: Arc<[String]>,
}

impl<S: Dial> Connections<S> {
    pub(super) fn new(sockets: S, config: &MemberConfig) -> Self {
        Self {
            sockets,
            slots: Vec::new(),
            free: Vec::new(),
            count: 0,
            count_max: config.traders_max,
            ready: Vec::new(),
            scratch: vec![0; READ_BYTES].into(),
            is_wanted: true,
            is_writable: false,
            origins: config.web_origins.as_slice().into(),
        }
    }

    /// Whether the one on that slot speaks WebSocket, as far as what has come says so.
    pub(super) fn turns_web(&mut self, slot: usize) -> bool {
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return false };
        connection.turns_web(&self.origins)
    }

    /// Waits at most that long for something to happen, and notes it.
    pub(super) fn poll(&mut self, timeout: Duration) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        self.sockets.poll(timeout, &mut ready)?;
        for event in ready.drain(..) {
            match event {
                Ready::Listener => self.is_wanted = true,
                Ready::Stream { slot, readable, writable } => {
                    if let Some(Some(connection)) = self.slots.get_mut(slot) {
                        connection.is_readable |= readable;
                        connection.is_writable |= writable;
                        self.is_writable |= writable;
                    }
                }
            }
        }
        self.ready = ready;
        Ok(())
    }

    /// Takes those who want to connect.
    pub(super) fn accept(&mut self, now_ns: u64) {
        for _ in 0..ACCEPTED_MAX {
            if !self.is_wanted {
                return;
            }
            match self.sockets.accept() {
                Ok(stream) => {
                    let mut connection = Connection::new(stream, Who::Stranger { since_ns: now_ns });
                    match self.count < self.count_max + PEERS_MAX {
                        true => drop(self.add(connection)),
                        false => {
                            connection.end(CutOff::TooMany);
                            self.end_a_stranger();
                        }
                    }
                }
                // The next event says when there is a connection again.
                Err(error) if is_not_now(&error) => self.is_wanted = false,
                // No descriptors, or who wanted to connect is gone: tried again in the next turn.
                Err(_) => return,
            }
        }
    }

    /// Connects to a peer. Under which slot it is known.
    pub(super) fn dial(&mut self, peer: u16) -> io::Result<usize> {
        let stream = self.sockets.dial(peer)?;
        self.add(Connection::new(stream, Who::Dialled { peer }))
    }

    /// Sends a packet to the server's group.
    pub(super) fn cast(&mut self, packet: &[u8]) {
        self.sockets.cast(packet);
    }

    fn add(&mut self, mut connection: Connection<S::Stream>) -> io::Result<usize> {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if let Err(error) = self.sockets.register(&mut connection.stream, slot) {
            if slot < self.slots.len() {
                self.free.push(slot);
            }
            return Err(error);
        }
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(connection);
        self.count += 1;
        Ok(slot)
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Connection<S::Stream>> {
        self.slots.get_mut(slot)?.as_mut()
    }

    /// Slots there may be, used or not.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Reads what has come on a slot. Whether anything has.
    pub(super) fn read(&mut self, slot: usize) -> bool {
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return false };
        connection.read(&mut self.scratch)
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Connection<S::Stream>> {
        self.slots.get(slot)?.as_ref()
    }

    /// Whether there is no place for another trader; peers and strangers take none.
    pub(super) fn is_full(&self) -> bool {
        let traders = self.slots.iter().flatten().filter(|of| matches!(of.who, Who::Trader { .. }));
        traders.count() >= self.count_max
    }

    /// Ends the connection of the stranger who has said nothing for longest, so that silence keeps nobody out: peers and traders
    /// say who they are at once.
    fn end_a_stranger(&mut self) {
        let since = |of: &&mut Connection<S::Stream>| match of.who {
            Who::Stranger { since_ns } if !of.is_over => since_ns,
            _ => u64::MAX,
        };
        if let Some(oldest) = self.slots.iter_mut().flatten().min_by_key(since)
            && matches!(oldest.who, Who::Stranger { .. })
        {
            oldest.end(CutOff::TooMany);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether a connection takes more again, since this was last asked.
    pub(super) fn take_writable(&mut self) -> bool {
        std::mem::take(&mut self.is_writable)
    }

    /// Ends connections that are over, or should be: of strangers that say nothing, and those that take nothing. Hands on who it was.
    pub(super) fn bury(&mut self, now_ns: u64, mut on: impl FnMut(usize, &Who, CutOff)) {
        for slot in 0..self.slots.len() {
            let Some(connection) = &mut self.slots[slot] else { continue };
            let mut cut_off = connection.buffers.cut_off(now_ns).unwrap_or_default();
            if let Who::Stranger { since_ns } = connection.who
                && now_ns.saturating_sub(since_ns) > STRANGER_NS
            {
                cut_off = CutOff::TooSlow;
            }
            if cut_off != CutOff::None {
                connection.end(cut_off);
            }
            if !connection.is_over {
                continue;
            }
            if let Some(mut connection) = self.slots[slot].take() {
                self.sockets.deregister(&mut connection.stream);
                on(slot, &connection.who, connection.cut_off);
                self.free.push(slot);
                self.count -= 1;
            }
        }
    }
}
