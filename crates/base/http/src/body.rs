//! A request's body: in time, of bounded length, of a kind that is named.
//!
//! A body that is not called by its kind is refused by who reads it: a page of another site can send forms and texts without being asked, JSON it cannot.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};

use crate::headers::only;
use crate::problem::Problem;

/// The body, if it comes in time and is not too long.
///
/// # Errors
/// Otherwise.
pub async fn read(request: Request, bytes_max: usize, patience: Duration) -> Result<Vec<u8>, Problem> {
    let (parts, body) = request.into_parts();
    let length =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > bytes_max as u64) {
        return Err(too_large(bytes_max));
    }
    in_time(body, bytes_max, patience).await
}

async fn in_time(body: Body, bytes_max: usize, patience: Duration) -> Result<Vec<u8>, Problem> {
    match tokio::time::timeout(patience, to_bytes(body, bytes_max)).await {
        Err(_) => {
            Err(Problem::of(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
                .reason("too-slow"))
        }
        Ok(Err(why)) if is_of_the_client(&why) => {
            Err(Problem::of(StatusCode::BAD_REQUEST, "the chunks of the body are wrong").reason("bad-form"))
        }
        Ok(Err(_)) => Err(too_large(bytes_max)),
        Ok(Ok(bytes)) => Ok(bytes.into()),
    }
}

/// Whether what a client sent cannot be read; else it is too long.
fn is_of_the_client(why: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(why), |&why| why.source()).any(|why| why.is::<hyper::Error>())
}

fn too_large(bytes_max: usize) -> Problem {
    let detail = format!("a body may have at most {} KiB", bytes_max >> 10);
    Problem::of(StatusCode::PAYLOAD_TOO_LARGE, detail).reason("too-large")
}

/// Whether the body is called `kind`, in UTF-8, and not compressed.
#[must_use]
pub fn is_kind(headers: &HeaderMap, kind: &str) -> bool {
    let is_plain = headers.get_all(header::CONTENT_ENCODING).iter().all(|encoding| encoding == "identity");
    is_plain && only(headers, header::CONTENT_TYPE).is_some_and(|named| names(named, kind))
}

fn names(named: &str, kind: &str) -> bool {
    let mut parts = named.split(';').map(str::trim);
    let is_named = parts.next().is_some_and(|named| named.eq_ignore_ascii_case(kind));
    is_named
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::response::IntoResponse as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::connections::{HttpListener, WebTransport};

    /// The first line of the answer to a request with these chunks, of a server that reads eight bytes.
    async fn answer(chunks: &str) -> String {
        let (any, patience) = (([127, 0, 0, 1], 0).into(), Duration::from_secs(30));
        let listener = HttpListener::bind(any, WebTransport::Loopback, 4, patience).await.unwrap();
        let mut stream = TcpStream::connect(listener.address()).await.unwrap();
        let count = move |request: Request| async move {
            match read(request, 8, patience).await {
                Ok(body) => body.len().to_string().into_response(),
                Err(problem) => problem.into_response(),
            }
        };
        tokio::spawn(listener.serve(Router::new().fallback(count)));
        let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}{chunks}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn chunks_that_are_wrong_are_not_called_too_long() {
        assert_eq!(answer("5\r\nhello\r\n0\r\n\r\n").await, "HTTP/1.1 200 OK");
        assert_eq!(answer("9\r\nlonger\r\n\r\n\r\n0\r\n\r\n").await, "HTTP/1.1 413 Payload Too Large");
        for wrong in [
            "-5\r\nhello\r\n0\r\n\r\n",
            "5x\r\nhello\r\n",
            "5\r\nhelloo\r\n0\r\n\r\n",
            "11111111111111111\r\n",
        ] {
            assert_eq!(answer(wrong).await, "HTTP/1.1 400 Bad Request", "{wrong}");
        }
    }
}
