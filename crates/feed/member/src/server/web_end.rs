//! The reading half of a WebSocket, without a socket: bytes go in, texts and bytes to answer come out.
//!
//! The library reads and writes a stream of its own. Here that is two buffers, so that a web trader's connection is like any other's: read
//! when something has come, written by the server in its turn, with batches between answers.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tungstenite::handshake::MidHandshake;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response, ServerHandshake};
use tungstenite::http::StatusCode;
use tungstenite::http::header::ORIGIN;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{HandshakeError, Message, WebSocket};

/// The longest text taken of a trader.
const TEXT_BYTES_MAX: usize = 32 << 10;
/// What the library reads at once. It clears a buffer of that size at each look, and traders say a few words at a time: with its default, 128 KiB,
/// two thirds of a server's time went into clearing.
const READ_BYTES: usize = 1 << 10;

#[derive(Default)]
struct Bytes {
    input: VecDeque<u8>,
    output: Vec<u8>,
}

/// What the library takes for a socket.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Bytes>>);

impl Pipe {
    fn held(&self) -> MutexGuard<'_, Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.held().input.read(into)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            read => Ok(read),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held().output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets pages in that are known, and programs, which have no origin. Any page that a trader looks at can open a connection to this host, and
/// would speak as any trader.
#[derive(Clone)]
struct Doorkeeper(Arc<[String]>);

impl Callback for Doorkeeper {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        let Some(origin) = request.headers().get(ORIGIN) else { return Ok(response) };
        if self.0.iter().any(|known| known.as_bytes() == origin.as_bytes()) {
            return Ok(response);
        }
        let mut refused = ErrorResponse::new(Some("this page's origin is not in `web_origins`".into()));
        *refused.status_mut() = StatusCode::FORBIDDEN;
        Err(refused)
    }
}

enum State {
    Shaking(Box<MidHandshake<ServerHandshake<Pipe, Doorkeeper>>>),
    Open(Box<WebSocket<Pipe>>),
    Over,
}

/// A web trader's end.
pub(super) struct WebEnd {
    pipe: Pipe,
    state: State,
}

impl WebEnd {
    /// A connection whose first bytes are an HTTP request; of pages, only those of these origins are let in.
    pub(super) fn new(origins: &Arc<[String]>) -> Self {
        let pipe = Pipe::default();
        let config = WebSocketConfig::default()
            .max_message_size(Some(TEXT_BYTES_MAX))
            .max_frame_size(Some(TEXT_BYTES_MAX))
            .read_buffer_size(READ_BYTES);
        let shaking =
            tungstenite::accept_hdr_with_config(pipe.clone(), Doorkeeper(Arc::clone(origins)), Some(config));
        Self { pipe, state: State::after(shaking) }
    }

    pub(super) fn on_input(&self, bytes: &[u8]) {
        self.pipe.held().input.extend(bytes);
    }

    /// What the library wants to be answered: the handshake, pongs, a close.
    pub(super) fn take_output(&self) -> Vec<u8> {
        std::mem::take(&mut self.pipe.held().output)
    }

    /// The next text that came.
    pub(super) fn next_text(&mut self) -> Option<String> {
        if let State::Shaking(_) = self.state
            && let State::Shaking(shaking) = std::mem::replace(&mut self.state, State::Over)
        {
            self.state = State::after(shaking.handshake());
        }
        let State::Open(socket) = &mut self.state else { return None };
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => return Some(text.to_string()),
                Ok(Message::Binary(_)) => break,
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => break,
            }
        }
        self.state = State::Over;
        None
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }
}

impl State {
    fn after(shaken: Result<WebSocket<Pipe>, HandshakeError<ServerHandshake<Pipe, Doorkeeper>>>) -> Self {
        match shaken {
            Ok(socket) => Self::Open(Box::new(socket)),
            Err(HandshakeError::Interrupted(shaking)) => Self::Shaking(Box::new(shaking)),
            Err(HandshakeError::Failure(_)) => Self::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line of the answer to a client that shows this key.
    fn answer(key: &str) -> String {
        let head = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
        );
        let mut end = WebEnd::new(&Arc::default());
        end.on_input(head.as_bytes());
        assert_eq!(end.next_text(), None);
        String::from_utf8_lossy(&end.take_output()).lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn only_a_key_of_sixteen_bytes_opens_a_socket() {
        assert_eq!(answer("dGhlIHNhbXBsZSBub25jZQ=="), "HTTP/1.1 101 Switching Protocols");
        for wrong in
            ["x", "", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25j-Q==", "dGhlIHNhbXBsZSBub25jZQA="]
        {
            assert_eq!(answer(wrong), "", "{wrong}: the connection is closed");
        }
    }
}
