//! A session on a connection.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use pares_types::{ClientOrderId, ClientRequest, MemberId};

use super::OuchCaller;
use super::messages::{self, SHARD, Told};
use crate::front::{FrontEnd, FrontEngine, FrontTold, Heard, Line, READ_BYTES};

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
    line: Line,
    end: End,
}

/// Our end of the session: everything but what comes in.
#[derive(Debug)]
struct End {
    member: MemberId,
    told: Option<Arc<FrontTold>>,
    next: Next,
    is_logged_on: bool,
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
        let line = match Line::connect(address) {
            Ok(line) => line,
            Err(error) => return Err((error, next)),
        };
        let mut end = End {
            member: caller.member,
            told: caller.told.clone(),
            next,
            is_logged_on: false,
            output: Vec::with_capacity(READ_BYTES),
            cancels: VecDeque::new(),
        };
        messages::log_in(&mut end.output, caller.member, "", next.0);
        Ok(Self { line, end })
    }

    fn into_numbers(self) -> Next {
        self.end.next
    }

    fn socket(&self) -> &TcpStream {
        &self.line.socket
    }

    fn is_logged_on(&self) -> bool {
        self.end.is_logged_on
    }

    fn send(&mut self, request: &ClientRequest, _: bool) {
        let Some(message) = messages::message(request) else { return };
        if let ClientRequest::Cancel { client_order_id, target } = request {
            self.end.cancels.push_back((client_order_id.0, messages::number(*target).unwrap_or_default()));
        }
        messages::packet(&mut self.end.output, b'U', &message);
    }

    fn flush(&mut self) -> Result<(), FrontEnd> {
        self.line.flush(&mut self.end.output)
    }

    fn poll(&mut self, on: &mut dyn FnMut(Heard)) -> Result<usize, FrontEnd> {
        let Self { line, end } = self;
        line.poll(|rest| {
            let Some((kind, payload)) = packet(rest) else { return Ok(None) };
            end.take(kind, payload, on).map(|()| Some(3 + payload.len()))
        })
    }
}

/// The first packet, if it is whole: its type and its payload.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let length = usize::from(u16::from_be_bytes(*bytes.first_chunk()?));
    bytes.get(2..2 + length)?.split_first().map(|(kind, payload)| (*kind, payload))
}

impl End {
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
