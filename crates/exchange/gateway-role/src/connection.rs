//! One client's connection: bytes in, bytes out, and how much of either is tolerated.
//!
//! A client that sends rubbish, half a frame and then nothing, never reads, or sends without end must cost the others
//! nothing (invariant I8): input is bounded by one buffer, and by a portion of it where the rules want the session read more
//! slowly; output by [`OUT_MAX`], silence by a deadline.

mod translating;

use pares_port::TapDoor;
use std::io::{ErrorKind, Read, Write};

use pares_table::Origin;
use pares_wire::WireError;
use pares_wire::frame;

use crate::door_end::ProtocolAdapter;
use crate::tap::{Tap, Tapped};
use crate::types::{Asked, Close, Incoming};

/// Unread output a client may pile up before it is disconnected.
const OUT_MAX: usize = 8 << 20;
/// The same while all clients together have piled up too much.
const OUT_MAX_CROWDED: usize = 256 << 10;
/// Output buffers larger than this are given back once they are empty.
const OUT_KEPT: usize = 256 << 10;
/// Input read at a time: some four hundred orders, so that the next connection's turn comes within a fraction of a millisecond.
const IN_BYTES: usize = 16 << 10;
/// The same for a session that is read more slowly: a hundred orders, refused within some thirty microseconds.
const PORTION_BYTES: usize = 4 << 10;

fn close_of(error: &std::io::Error) -> Close {
    if error.kind() == ErrorKind::InvalidData { Close::Malformed } else { Close::Gone }
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadState {
    /// Nothing more for now.
    Drained,
    /// The budget is used up; there may be more.
    More,
}

pub(crate) struct Connection<T> {
    stream: T,
    /// What its tap knows of it.
    pub(crate) tapped: Tapped,
    /// It came to the port of another protocol.
    pub(crate) end: Option<Box<ProtocolAdapter>>,
    pub(crate) generation: u32,
    /// Since when it has not signed on, by the monotonic clock.
    pub(crate) stranger_since_ns: Option<u64>,
    of_operator: bool,
    /// It came to the operators' socket.
    pub(crate) at_operators: bool,
    /// Where its client is.
    pub(crate) origin: Origin,
    /// It has to prove who it is.
    pub(crate) asked: Option<Asked>,
    /// Since when a frame is incomplete.
    incomplete_since_ns: Option<u64>,
    pub(crate) input: Box<[u8]>,
    pub(crate) input_len: usize,
    pub(crate) output: Vec<u8>,
    pub(crate) sent: usize,
    /// How much of the output was unsent after the last flush.
    pub(crate) unsent_noted: usize,
    pub(crate) reading: bool,
    pub(crate) flushing: bool,
    pub(crate) broken: Option<Close>,
    /// It received why it ends: what it sent besides is not looked at.
    pub(crate) refused: bool,
    /// How long it may be silent, ns; 0: for as long as it likes.
    pub(crate) silence_max_ns: u64,
    /// When it is looked whether it was.
    pub(crate) silent_ns: u64,
    /// When something came last.
    pub(crate) heard_ns: u64,
    /// Not to be read before, by the monotonic clock.
    later_ns: u64,
    /// Read in portions, since it was left unread and has not been read empty since.
    in_portions: bool,
}

impl<T: Read + Write> Connection<T> {
    pub(crate) fn new(stream: T, generation: u32, mono_ns: u64) -> Self {
        Self {
            stream,
            tapped: Tapped::new(generation, TapDoor::Binary),
            end: None,
            generation,
            stranger_since_ns: Some(mono_ns),
            of_operator: false,
            at_operators: false,
            origin: None,
            asked: None,
            incomplete_since_ns: None,
            // Small until the client proves to be one: ten thousand idle connections cost little.
            input: vec![0; 512].into_boxed_slice(),
            input_len: 0,
            output: Vec::new(),
            sent: 0,
            unsent_noted: 0,
            reading: false,
            flushing: false,
            broken: None,
            refused: false,
            silence_max_ns: 0,
            silent_ns: 0,
            heard_ns: mono_ns,
            later_ns: 0,
            in_portions: false,
        }
    }

    pub(crate) fn stream(&mut self) -> &mut T {
        &mut self.stream
    }

    /// One that came to the port of another protocol: a message of it may need more room than a sign-on.
    pub(crate) fn with_end(mut self, end: Box<ProtocolAdapter>) -> Self {
        self.tapped = Tapped::new(self.generation, end.as_taped());
        self.end = Some(end);
        self.grow_input();
        self
    }

    pub(crate) fn sign_on(&mut self, of_operator: bool) {
        self.of_operator = of_operator;
        // From now on the client may be silent for as long as it likes, but within a frame.
        self.stranger_since_ns = None;
        self.grow_input();
    }

    fn grow_input(&mut self) {
        if self.input.len() < IN_BYTES {
            let mut larger = vec![0; IN_BYTES].into_boxed_slice();
            larger[..self.input_len].copy_from_slice(&self.input[..self.input_len]);
            self.input = larger;
        }
    }

    /// Leaves it unread until then, and reads it in portions afterwards.
    pub(crate) fn read_later(&mut self, later_ns: u64) {
        (self.later_ns, self.in_portions) = (later_ns, true);
    }

    /// When it may be read, by the monotonic clock.
    pub(crate) fn later_ns(&self) -> u64 {
        self.later_ns
    }

    /// Reads what there is room for, or a portion. An operator that has hung up may have asked elsewhere for something else instead: what it
    /// sent is not taken in.
    pub(crate) fn read(&mut self, mono_ns: u64, tap: &mut Tap) -> Result<ReadState, Close> {
        let state = self.fill(tap)?;
        self.heard_ns = mono_ns;
        if self.of_operator && self.input_len < self.input.len() { self.fill(tap) } else { Ok(state) }
    }

    /// Whether an operator has sent something that nobody has read.
    pub(crate) fn has_unread_of_operator(&mut self, tap: &mut Tap) -> Result<bool, Close> {
        let before = self.input_len;
        Ok(self.of_operator && self.fill(tap).map(|_| self.input_len > before)?)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.input_len == self.input.len()
    }

    fn fill(&mut self, tap: &mut Tap) -> Result<ReadState, Close> {
        // Its door takes nothing for now: it is read again when there is room.
        if self.end.is_some() && self.is_full() {
            return Ok(ReadState::Drained);
        }
        assert!(self.input_len <= self.input.len(), "input lies within its buffer");
        let room = self.input.len() - self.input_len;
        let wanted = if self.in_portions { room.min(PORTION_BYTES) } else { room };
        match self.stream.read(&mut self.input[self.input_len..][..wanted]) {
            Ok(0) => Err(Close::Gone),
            Ok(read) => {
                tap.came(&mut self.tapped, &self.input[self.input_len..][..read]);
                self.input_len += read;
                self.in_portions &= read == wanted;
                Ok(if read == wanted { ReadState::More } else { ReadState::Drained })
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.in_portions = false;
                Ok(ReadState::Drained)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => self.fill(tap),
            Err(error) => Err(close_of(&error)),
        }
    }

    /// Hands each whole frame to `on_frame` and keeps the rest for later.
    pub(crate) fn take_frames(
        &mut self,
        mono_ns: u64,
        mut on_frame: impl FnMut(Incoming),
    ) -> Result<(), Close> {
        let mut rest = &self.input[..self.input_len];
        let mut result = Ok(());
        while result.is_ok() {
            match frame::split(rest) {
                Ok(Some((kind, body, after))) => {
                    rest = after;
                    result = decode(kind, body).map(&mut on_frame);
                }
                Ok(None) => break,
                Err(_) => result = Err(Close::Malformed),
            }
        }
        let left = rest.len();
        self.keep_rest(left, mono_ns);
        result
    }

    /// Keeps the last `left` bytes of the input.
    pub(crate) fn keep_rest(&mut self, left: usize, mono_ns: u64) {
        assert!(left <= self.input_len, "what is kept of the input came in");
        let progress = left < self.input_len;
        self.input.copy_within(self.input_len - left..self.input_len, 0);
        self.input_len = left;
        // A busy client's reads may always end within a frame; it is not the same frame for long.
        self.incomplete_since_ns = match self.incomplete_since_ns {
            _ if left == 0 => None,
            Some(since_ns) if !progress => Some(since_ns),
            _ => Some(mono_ns),
        };
    }

    /// Since when it waits for the rest of a frame, or for its sign-on.
    pub(crate) fn waits_since_ns(&self) -> Option<u64> {
        self.stranger_since_ns.or(self.incomplete_since_ns)
    }

    /// Where the gateway's frames go.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        match &mut self.end {
            None => &mut self.output,
            Some(end) => &mut end.frames,
        }
    }

    /// Bytes waiting to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() - self.sent + self.end.as_ref().map_or(0, |end| end.untold())
    }

    /// Sends what the socket takes. What it does not take waits, up to [`OUT_MAX`], or to much less if `crowded`.
    pub(crate) fn flush(&mut self, crowded: bool, tap: &mut Tap) -> Result<(), Close> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(Close::Gone),
                Ok(written) => {
                    tap.went(&mut self.tapped, &self.output[self.sent..][..written]);
                    self.sent += written;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(close_of(&error)),
            }
        }
        // A stream may have taken bytes that its socket has not.
        match self.stream.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(close_of(&error)),
            _ => {}
        }
        self.give_back_sent();
        let unsent_max = if crowded { OUT_MAX_CROWDED } else { OUT_MAX };
        if self.unsent() > unsent_max { Err(Close::Slow) } else { Ok(()) }
    }

    /// What is sent takes no more room than what is not: a client that reads all the time and is never quite done would
    /// otherwise have all it was ever sent kept.
    fn give_back_sent(&mut self) {
        assert!(self.sent <= self.output.len(), "no more is sent than there was to send");
        if self.sent == self.output.len() {
            self.output.clear();
            self.output.shrink_to(OUT_KEPT);
            self.sent = 0;
        } else if self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }
}

fn decode(kind: u8, body: &[u8]) -> Result<Incoming, Close> {
    match frame::decode_client(kind, body) {
        Ok(frame) => Ok(Incoming::Frame(frame)),
        Err(WireError::UnknownSchema { .. }) => Err(Close::Malformed),
        Err(_) => Ok(Incoming::Unreadable(frame::request_name(kind, body))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that takes so many bytes at a time, every other time it is asked.
    struct Narrow {
        takes: usize,
        asked: bool,
    }

    impl Read for Narrow {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(ErrorKind::WouldBlock.into())
        }
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.asked = !self.asked;
            match self.asked && self.takes > 0 {
                true => Ok(self.takes.min(bytes.len())),
                false => Err(ErrorKind::WouldBlock.into()),
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn connection(takes: usize) -> Connection<Narrow> {
        Connection::new(Narrow { takes, asked: false }, 1, 0)
    }

    #[test]
    fn sent_bytes_take_no_room_for_busy_client() {
        const BACKLOG: usize = 1 << 20;
        let mut connection = connection(64 << 10);
        connection.output().resize(BACKLOG, 7);
        for _ in 0..512 {
            let longer = connection.output().len() + (64 << 10);
            connection.output().resize(longer, 7);
            connection.flush(false, &mut Tap::off()).unwrap();
            assert_eq!(connection.unsent(), BACKLOG, "never quite done");
            assert!(connection.output().len() <= 3 * BACKLOG, "{}", connection.output().len());
        }
    }

    #[test]
    fn non_reading_client_keeps_little_when_all_keep_much() {
        let mut connection = connection(0);
        connection.output().resize(OUT_MAX_CROWDED + 1, 7);
        let mut flush = |crowded| connection.flush(crowded, &mut Tap::off());
        assert_eq!((flush(false), flush(true)), (Ok(()), Err(Close::Slow)));
        connection.output().resize(OUT_MAX + 1, 7);
        assert_eq!(connection.flush(false, &mut Tap::off()), Err(Close::Slow));
    }
}
