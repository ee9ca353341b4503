//! HTTP as a load speaks it: requests that go out one behind the other on a connection that is kept, and answers that come back in that order.
//!
//! A whole client of HTTP would be what is measured. This one knows as much as the exchange's servers say.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Longest answer, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Its status.
    pub status: u16,
    /// What it says.
    pub body: String,
}

/// A connection.
pub struct HttpConnection {
    stream: TcpStream,
    /// Of its session, as a header.
    bearer: String,
    out: Vec<u8>,
    input: Vec<u8>,
}

fn broken(why: &str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, why)
}

impl HttpConnection {
    /// Connects. Reads block until the caller makes them non-blocking.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, bearer: String::new(), out: Vec::new(), input: Vec::new() })
    }

    /// The connection itself.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends that token with each request from now on.
    pub fn set_token(&mut self, token: &str) {
        self.bearer = format!("Authorization: Bearer {token}\r\n");
    }

    /// Buffers a request; `more` are header lines, each with its end.
    pub fn put(&mut self, method: &str, path: &str, more: &str, body: &str) {
        let (bearer, length) = (&self.bearer, body.len());
        let of_body = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n")
        };
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}{more}{of_body}\r\n{body}");
        self.out.extend_from_slice(head.as_bytes());
    }

    /// Buffers a member's sign-on.
    pub fn put_sign_on(&mut self, member: u32, session: u16) {
        self.put("POST", "/v1/sign-on", "", &format!("{{\"member\":{member},\"session\":{session}}}"));
    }

    /// Signs a member on, and waits for it.
    ///
    /// # Errors
    /// If the connection is lost, or the server does not let the member in.
    pub fn sign_on(&mut self, member: u32, session: u16) -> std::io::Result<String> {
        self.put_sign_on(member, session);
        let answer = self.wait()?;
        let token = answer.text("token").ok_or_else(|| broken(&answer.body))?.to_owned();
        self.set_token(&token);
        Ok(token)
    }

    /// Opens a WebSocket at that path: the connection, and what has come on it already.
    ///
    /// # Errors
    /// If the connection is lost, or the server opens none.
    pub fn open_socket(mut self, path: &str) -> std::io::Result<(TcpStream, Vec<u8>)> {
        const MORE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        self.put("GET", path, MORE, "");
        match self.wait()? {
            HttpAnswer { status: 101, .. } => Ok((self.stream, self.input)),
            answer => Err(broken(&format!("no socket: {} {}", answer.status, answer.body))),
        }
    }

    /// Sends what is buffered, and waits for the next answer.
    ///
    /// # Errors
    /// If the connection is lost, or nothing comes for as long as [its stream](HttpConnection::stream) is set to wait.
    pub fn wait(&mut self) -> std::io::Result<HttpAnswer> {
        loop {
            self.flush()?;
            if let Some(answer) = self.next_answer()? {
                return Ok(answer);
            }
            let had = self.input.len();
            self.read()?;
            if self.input.len() == had {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }

    /// Sends what is buffered, as much of it as the connection takes.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn flush(&mut self) -> std::io::Result<()> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(count) => _ = self.out.drain(..count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes in what has come.
    ///
    /// # Errors
    /// If the connection is lost, or an answer has no end.
    pub fn read(&mut self) -> std::io::Result<()> {
        let mut bytes = [0; 16 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if self.input.len() > ANSWER_BYTES_MAX => Err(broken("an answer without end")),
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next answer, once it is whole.
    ///
    /// # Errors
    /// If what came is no answer.
    pub fn next_answer(&mut self) -> std::io::Result<Option<HttpAnswer>> {
        let Some(head) = self.input.windows(4).position(|end| end == b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&self.input[..head]).map_err(|_| broken("a head that is no text"))?;
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(Some(0), |length| length.parse::<usize>().ok());
        let (Some(status), Some(length)) = (status, length) else { return Err(broken(text)) };
        let whole = head + 4 + length;
        if self.input.len() < whole {
            return Ok(None);
        }
        let body = String::from_utf8_lossy(&self.input[head + 4..whole]).into_owned();
        self.input.drain(..whole);
        Ok(Some(HttpAnswer { status, body }))
    }
}

impl HttpAnswer {
    /// The text of a field, the first of that name.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        text_of(&self.body, field)
    }
}

/// The text of a field in JSON, the first of that name.
#[must_use]
pub fn text_of<'a>(json: &'a str, field: &str) -> Option<&'a str> {
    json.split_once(&format!("\"{field}\":\""))?.1.split('"').next()
}

/// The number of a field in JSON, the first of that name.
pub(super) fn number_of(json: &str, field: &str) -> Option<u64> {
    let (_, rest) = json.split_once(&format!("\"{field}\":"))?;
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    rest.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// A client's text frame. Its mask is zeros.
///
/// # Panics
/// If the text is longer than 125 bytes.
#[must_use]
pub fn text_frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length < 126).expect("a short text");
    [&[0x81, 0x80 | length, 0, 0, 0, 0], text.as_bytes()].concat()
}

/// A server's first frame, if it is whole: its kind, its payload, and how long it is altogether.
#[must_use]
pub fn first_frame(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (head, length): (usize, usize) = match *bytes.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)).ok()?),
        length => (2, usize::from(length)),
    };
    let whole = head.checked_add(length)?;
    Some((bytes[0] & 0x0f, bytes.get(head..whole)?, whole))
}
