//! One client's connection: bytes in, bytes out, and how much of either is tolerated.
//!
//! A client that sends rubbish, half a frame and then nothing, or never reads, must cost the others
//! nothing (invariant I8): input is bounded by one buffer, output by [`OUT_MAX`], silence by a deadline.

use std::io::{ErrorKind, Read, Write};

use mio::net::TcpStream;
use pares_types::ClientOrderId;
use pares_wire::WireError;
use pares_wire::frame::{self, ClientFrame};

use crate::crash::{self, Point};

/// Unread output a client may pile up before it is disconnected.
const OUT_MAX: usize = 8 << 20;
/// Input read at a time.
const IN_BYTES: usize = 64 << 10;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// The client closed it, or it broke.
    Gone,
    /// The client sent something that is not the protocol.
    Malformed,
    /// The client does not read what it is sent.
    Slow,
    /// Nothing useful came for too long.
    Silent,
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    /// Nothing more for now.
    Drained,
    /// The budget is used up; there may be more.
    More,
}

pub(super) struct Connection {
    stream: TcpStream,
    pub(super) generation: u32,
    pub(super) signed_on: bool,
    /// When the oldest incomplete thing (sign-on, frame) began, ns; 0 if nothing is incomplete.
    pub(super) incomplete_since_ns: u64,
    input: Box<[u8]>,
    input_len: usize,
    output: Vec<u8>,
    sent: usize,
    pub(super) reading: bool,
    pub(super) flushing: bool,
    pub(super) broken: Option<Close>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, generation: u32, now_ns: u64) -> Self {
        Self {
            stream,
            generation,
            signed_on: false,
            incomplete_since_ns: now_ns,
            // Small until the client proves to be one: ten thousand idle connections cost little.
            input: vec![0; 512].into_boxed_slice(),
            input_len: 0,
            output: Vec::new(),
            sent: 0,
            reading: false,
            flushing: false,
            broken: None,
        }
    }

    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(super) fn sign_on(&mut self) {
        self.signed_on = true;
        if self.input_len == 0 {
            // Only the sign-on was missing; from now on the client may be silent for as long as it likes.
            self.incomplete_since_ns = 0;
        }
        if self.input.len() < IN_BYTES {
            let mut larger = vec![0; IN_BYTES].into_boxed_slice();
            larger[..self.input_len].copy_from_slice(&self.input[..self.input_len]);
            self.input = larger;
        }
    }

    /// Reads what there is room for, once.
    pub(super) fn fill(&mut self) -> Result<ReadState, Close> {
        match self.stream.read(&mut self.input[self.input_len..]) {
            Ok(0) => Err(Close::Gone),
            Ok(read) => {
                self.input_len += read;
                Ok(if self.input_len == self.input.len() { ReadState::More } else { ReadState::Drained })
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(ReadState::Drained),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(ReadState::More),
            Err(_) => Err(Close::Gone),
        }
    }

    /// Hands each whole frame to `on_frame` and keeps the rest for later.
    pub(super) fn take_frames(
        &mut self,
        now_ns: u64,
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
        let progress = left < self.input_len;
        self.input.copy_within(self.input_len - left..self.input_len, 0);
        self.input_len = left;
        // A busy client's reads may always end within a frame; it is not the same frame for long.
        self.incomplete_since_ns = match self.incomplete_since_ns {
            since if !self.signed_on => since,
            _ if left == 0 => 0,
            since if since == 0 || progress => now_ns,
            since => since,
        };
        result
    }

    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Sends what the socket takes. What it does not take waits, up to [`OUT_MAX`].
    pub(super) fn flush(&mut self) -> Result<(), Close> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(Close::Gone),
                Ok(written) => {
                    crash::at(Point::GatewaySent);
                    self.sent += written;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Close::Gone),
            }
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        } else if self.output.len() - self.sent > OUT_MAX {
            return Err(Close::Slow);
        }
        Ok(())
    }
}

/// What a client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A message.
    Frame(ClientFrame),
    /// A request of which a field makes no sense; its name, 0 if even that is missing.
    Unreadable(ClientOrderId),
}

fn decode(kind: u8, body: &[u8]) -> Result<Incoming, Close> {
    match frame::decode_client(kind, body) {
        Ok(frame) => Ok(Incoming::Frame(frame)),
        Err(WireError::UnknownSchema { .. }) => Err(Close::Malformed),
        Err(_) => Ok(Incoming::Unreadable(frame::request_name(kind, body))),
    }
}
