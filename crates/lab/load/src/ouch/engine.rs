//! A session on a connection.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use pares_types::{ClientOrderId, ClientRequest, MemberId};

use super::OuchCaller;
use super::messages::{self, SHARD, Told};
use crate::front::{self, FrontEnd, FrontEngine, FrontTold, Heard};

/// Bytes read at once; a packet is far shorter.
const READ_BYTES: usize = 64 << 10;

/// The number that the next packet has; what outlives connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next(u64);

impl Default for Next {
    fn default() -> Self {
        Self(1)
    }
}

/// A session on a connection.
#[derive(Debug)]
pub(crate) struct OuchEngine {
    socket: TcpStream,
    member: MemberId,
    told: Option<Arc<FrontTold>>,
    next: Next,
    is_logged_on: bool,
    input: Vec<u8>,
    filled: usize,
    output: Vec<u8>,
    /// Cancels without an answer, by their names and those of their orders, in the order in which they were sent.
    cancels: VecDeque<(u64, u32)>,
}

impl FrontEngine for OuchEngine {
    type Caller = OuchCaller;
    type Numbers = Next;

    fn name(caller: &OuchCaller) -> &str {
        &caller.name
    }

    fn can_say(request: &ClientRequest) -> bool {
        messages::message(request).is_some()
    }

    fn call(address: SocketAddr, caller: &OuchCaller, next: Next) -> Result<Self, (std::io::Error, Next)> {
        let socket = match front::connect(address) {
            Ok(socket) => socket,
            Err(error) => return Err((error, next)),
        };
        let mut engine = Self {
            socket,
            member: caller.member,
            told: caller.told.clone(),
            next,
            is_logged_on: false,
            input: vec![0; READ_BYTES],
            filled: 0,
            output: Vec::with_capacity(READ_BYTES),
            cancels: VecDeque::new(),
        };
        messages::log_in(&mut engine.output, caller.member, "", next.0);
        Ok(engine)
    }

    fn into_numbers(self) -> Next {
        self.next
    }

    fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn is_logged_on(&self) -> bool {
        self.is_logged_on
    }

    fn send(&mut self, request: &ClientRequest, _: bool) {
        let Some(message) = messages::message(request) else { return };
        if let ClientRequest::Cancel { client_order_id, target } = request {
            self.cancels.push_back((client_order_id.0, messages::number(*target).unwrap_or_default()));
        }
        messages::packet(&mut self.output, b'U', &message);
    }

    fn flush(&mut self) -> Result<(), FrontEnd> {
        let mut sent = 0;
        while sent < self.output.len() {
            match self.socket.write(&self.output[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(FrontEnd::Lost(error.to_string())),
            }
        }
        self.output.drain(..sent);
        Ok(())
    }

    fn poll(&mut self, on: &mut dyn FnMut(Heard)) -> Result<usize, FrontEnd> {
        let is_gone = self.read()?;
        let input = std::mem::take(&mut self.input);
        let (mut at, mut count) = (0, 0);
        while let Some((kind, payload)) = packet(&input[at..self.filled]) {
            at += 3 + payload.len();
            count += 1;
            self.take(kind, payload, on)?;
        }
        self.input = input;
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        if is_gone { Err(FrontEnd::Lost("the gateway closed the connection".into())) } else { Ok(count) }
    }
}

/// The first packet, if it is whole: its type and its payload.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let length = usize::from(u16::from_be_bytes(*bytes.first_chunk()?));
    bytes.get(2..2 + length)?.split_first().map(|(kind, payload)| (*kind, payload))
}

impl OuchEngine {
    /// Reads what is there; whether the connection is at its end.
    fn read(&mut self) -> Result<bool, FrontEnd> {
        let read = self.socket.read(&mut self.input[self.filled..]);
        self.filled += read.as_ref().copied().unwrap_or(0);
        match read {
            Ok(count) => Ok(count == 0),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(FrontEnd::Lost(error.to_string())),
        }
    }

    fn take(&mut self, kind: u8, payload: &[u8], on: &mut dyn FnMut(Heard)) -> Result<(), FrontEnd> {
        match kind {
            b'A' => self.is_logged_on = true,
            b'S' => self.on_sequenced(payload, on)?,
            b'+' => self.on_said(&String::from_utf8_lossy(payload), on),
            b'H' => messages::packet(&mut self.output, b'R', &[]),
            b'J' => return Err(FrontEnd::Lost("the login is rejected".into())),
            b'Z' => return Err(FrontEnd::Lost("the gateway ends the session".into())),
            _ => return Err(FrontEnd::Broken(format!("a packet of type {}", char::from(kind)))),
        }
        Ok(())
    }

    fn on_sequenced(&mut self, message: &[u8], on: &mut dyn FnMut(Heard)) -> Result<(), FrontEnd> {
        let number = self.next.0;
        self.next.0 += 1;
        let told = Told::read(message);
        let told = told.ok_or_else(|| FrontEnd::Broken(format!("no message: {}", message.escape_ascii())))?;
        if let Some(tally) = &self.told {
            // What has no place of its own has its packet's number, which is that of the stream.
            let place = told.place(SHARD).unwrap_or_else(|| format!("{SHARD}-N{number}"));
            tally.note(self.member, place, false);
        }
        match told.kind {
            b'A' | b'U' | b'J' if told.number > 0 => on(Heard::Answered(told.number.into())),
            b'E' if told.is_incoming => on(Heard::Traded),
            b'S' | b'I' => self.on_cancel_answered(0, on),
            _ => {}
        }
        Ok(())
    }

    /// The oldest cancel is answered, or the oldest of an order.
    fn on_cancel_answered(&mut self, order: usize, on: &mut dyn FnMut(Heard)) {
        if let Some((name, _)) = self.cancels.remove(order) {
            if let Some(told) = &self.told {
                told.note_refused(name);
            }
            on(Heard::Answered(name));
        }
    }

    /// Beside the stream.
    fn on_said(&mut self, text: &str, on: &mut dyn FnMut(Heard)) {
        let mut words = text.split(' ');
        let (letter, number) = (words.next(), words.next().and_then(|number| number.parse::<u32>().ok()));
        match (letter, number) {
            (Some("J"), Some(number)) => on(Heard::Rejected(ClientOrderId(number.into()).0)),
            (Some("I"), Some(number)) => {
                if let Some(at) = self.cancels.iter().position(|(_, order)| *order == number) {
                    self.on_cancel_answered(at, on);
                }
            }
            _ => {}
        }
    }
}
