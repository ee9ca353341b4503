//! What a client's message on a WebSocket is, and how a socket ends.
//!
//! The library queues its answer to a client's Close, and sends it with whatever is written next. A server that drops the socket as soon as the client has closed it never writes again: every client library then reports 1006, a lost connection.

use axum::Error;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, header};
use axum_tungstenite::Error as Fault;
use futures_util::SinkExt as _;

use crate::headers::only;

/// Read of a client at a time: it says little, and the library clears as much before each read.
const READ_BYTES: usize = 4 << 10;

/// Why a socket ends: a code and words for the client, unless it has closed the socket or is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing(Option<(u16, &'static str)>);

impl Closing {
    /// The client has closed it, or is gone.
    pub const BY_CLIENT: Self = Self(None);

    /// The server closes it, with a code of RFC 6455 (section 7.4).
    #[must_use]
    pub const fn with(code: u16, reason: &'static str) -> Self {
        Self(Some((code, reason)))
    }

    /// Says so to the client; a client that has sent a Close receives its answer.
    pub async fn end(self, socket: &mut WebSocket) {
        // A client that is gone hears nothing.
        let _ = match self.0 {
            Some((code, reason)) => {
                socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await
            }
            None => socket.close().await,
        };
    }
}

/// A socket whose clients send messages of so many bytes at most: more is refused by the head of its frame.
///
/// # Errors
/// If the request's key is wrong; the library takes any.
pub fn limited<F>(
    upgrade: WebSocketUpgrade<F>,
    headers: &HeaderMap,
    message_bytes_max: usize,
) -> Result<WebSocketUpgrade<F>, &'static str> {
    if !only(headers, header::SEC_WEBSOCKET_KEY).is_some_and(is_key) {
        return Err("Sec-WebSocket-Key must be 16 bytes in base64");
    }
    let upgrade = upgrade.max_message_size(message_bytes_max).max_frame_size(message_bytes_max);
    Ok(upgrade.read_buffer_size(READ_BYTES))
}

/// Whether it is base64 of 16 bytes (RFC 6455, section 4.2.1).
fn is_key(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len() == 24 && text.strip_suffix("==").is_some_and(|digits| digits.bytes().all(is_digit))
}

/// The text that a client has sent; `None` of what the library answers by itself.
///
/// # Errors
/// If the socket ends by what was received.
pub fn text(received: Option<Result<Message, Error>>) -> Result<Option<Utf8Bytes>, Closing> {
    match received {
        Some(Ok(Message::Text(text))) => Ok(Some(text)),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(None),
        Some(Ok(Message::Binary(_))) => Err(Closing::with(close_code::UNSUPPORTED, "text only")),
        Some(Ok(Message::Close(_))) | None => Err(Closing::BY_CLIENT),
        Some(Err(why)) => Err(of_fault(why)),
    }
}

fn of_fault(why: Error) -> Closing {
    match why.into_inner().downcast_ref() {
        Some(Fault::Capacity(_)) => Closing::with(close_code::SIZE, "the message is too long"),
        Some(Fault::Utf8(_)) => Closing::with(close_code::INVALID, "the text is not UTF-8"),
        Some(Fault::Protocol(_)) => Closing::with(close_code::PROTOCOL, "the frame is invalid"),
        _ => Closing::BY_CLIENT,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::connections::{HttpListener, WebTransport};

    const BYTES_MAX: usize = 16 << 10;

    async fn listen(mut socket: WebSocket) {
        loop {
            if let Err(closing) = text(socket.recv().await) {
                return closing.end(&mut socket).await;
            }
        }
    }

    /// What a server sends behind its head, until it ends the connection, to a client that has sent these bytes and nothing else.
    async fn answers(sent: &[u8]) -> Vec<u8> {
        let (any, patience) = (([127, 0, 0, 1], 0).into(), Duration::from_secs(30));
        let listener = HttpListener::bind(any, WebTransport::Loopback, 4, patience).await.unwrap();
        let mut stream = TcpStream::connect(listener.address()).await.unwrap();
        let socket = async |headers: HeaderMap, upgrade: WebSocketUpgrade| {
            limited(upgrade, &headers, BYTES_MAX).unwrap().on_upgrade(listen)
        };
        tokio::spawn(listener.serve(Router::new().route("/", get(socket))));
        let head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(sent).await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("the connection ends, and is not reset");
        rest
    }

    /// A frame whose mask is zero.
    fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let length = match u8::try_from(payload.len()) {
            Ok(length @ ..126) => vec![0x80 | length],
            _ => [&[0xff][..], &(payload.len() as u64).to_be_bytes()].concat(),
        };
        [&[0x80 | opcode][..], &length, &[0; 4], payload].concat()
    }

    /// A Close of the server.
    fn close(code: u16, reason: &str) -> Vec<u8> {
        let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
        [&[0x88, u8::try_from(payload.len()).unwrap()][..], &payload].concat()
    }

    #[test]
    fn only_sixteen_bytes_in_base64_are_a_key() {
        assert!(is_key("dGhlIHNhbXBsZSBub25jZQ==") && is_key("++++++++++//////////AA=="));
        for wrong in
            ["", "x", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25j-Q==", "dGhlIHNhbXBsZSBub25jZQA="]
        {
            assert!(!is_key(wrong), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_close_is_answered_before_the_connection_ends() {
        assert_eq!(answers(&frame(8, &[3, 232])).await, close(1000, ""));
        assert_eq!(answers(&frame(8, &[])).await, [0x88, 0]);
    }

    #[tokio::test]
    async fn whatever_is_wrong_of_a_message_has_its_code() {
        let long = vec![b'x'; BYTES_MAX + 1];
        let parts = [&[1, 0xfe, 0x40, 0, 0, 0, 0, 0][..], &long[1..], &frame(0, b"x")].concat();
        for (sent, closed) in [
            (frame(1, &long), close(1009, "the message is too long")),
            (frame(1, &[b'x'; 8 * BYTES_MAX]), close(1009, "the message is too long")),
            (parts, close(1009, "the message is too long")),
            (frame(1, b"\xff"), close(1007, "the text is not UTF-8")),
            (frame(2, b"x"), close(1003, "text only")),
            (frame(3, b"x"), close(1002, "the frame is invalid")),
        ] {
            assert_eq!(answers(&sent).await, closed);
        }
        assert_eq!(answers(&[frame(1, &long[1..]), frame(8, &[])].concat()).await, [0x88, 0]);
    }
}
