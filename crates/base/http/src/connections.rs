//! Connections of clients, by TLS or plain, and how many there may be.
//!
//! The usual one-line server waits for ever for a request that comes a letter at a time, and takes as many connections as the system has. Here a connection has so long to say what it
//! wants, there are so many, and no network has more than half of them.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pares_tls::ServerConfig;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::places::{Places, TakenPlace};
use crate::stall::{Stalling, Through};

/// A connection has so long for a handshake, and for the head of each request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Bytes written and not sent yet: who writes more than this to a connection waits.
const UNSENT_BYTES_MAX: u32 = 16 << 10;
/// After a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(50);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Passwords would go through a network in the open.
    #[error("{0} is reachable from other machines: it needs a certificate, or a TLS proxy in front")]
    Plain(SocketAddr),
    /// The address cannot be listened to.
    #[error("listening on {0}: {1}")]
    Listen(SocketAddr, io::Error),
}

/// How people's connections reach a server.
#[derive(Clone, Debug)]
pub enum WebTransport {
    /// Plain, and from this machine alone.
    Loopback,
    /// By TLS.
    Tls(Arc<ServerConfig>),
    /// Plain, on any address: only a proxy reaches it, which people reach by TLS.
    BehindProxy,
}

/// From which network a request came: an extension of each request, and what connections and calls are counted by. A customer has a whole /64 of IPv6: who counted
/// addresses would count one caller as 2^64. An IPv4 address is a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallerNetwork(IpAddr);

impl From<IpAddr> for CallerNetwork {
    fn from(address: IpAddr) -> Self {
        // A socket for both kinds shows IPv4 as IPv6, and all of that is one /64.
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl CallerNetwork {
    /// Whether it is this machine.
    #[must_use]
    pub fn is_local(self) -> bool {
        // The network of `::1` is `::`.
        self.0.is_loopback() || self.0.is_unspecified()
    }
}

impl Display for CallerNetwork {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A server that listens, and [serves](HttpListener::serve).
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    places: Arc<Places<CallerNetwork>>,
    patience: Duration,
}

impl HttpListener {
    /// Listens on `address`; port 0 is any free one. There are `most` connections at a time, half of them of one [network](CallerNetwork), and none keeps an
    /// answer longer than `patience` without taking a byte. Needs a runtime of tokio with I/O and time.
    ///
    /// # Errors
    /// If it may not be reached so, or cannot be listened to.
    pub async fn bind(
        address: SocketAddr,
        transport: WebTransport,
        most: usize,
        patience: Duration,
    ) -> Result<Self, WebError> {
        if matches!(transport, WebTransport::Loopback) && !address.ip().is_loopback() {
            return Err(WebError::Plain(address));
        }
        let failed = |why| WebError::Listen(address, why);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            tls: match transport {
                WebTransport::Tls(config) => Some(TlsAcceptor::from(config)),
                WebTransport::Loopback | WebTransport::BehindProxy => None,
            },
            places: Places::new(most, most.div_ceil(2)),
            patience,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the future is dropped.
    pub async fn serve(self, router: Router) {
        loop {
            let Ok((stream, from)) = self.listener.accept().await else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let Some(place) = self.places.place(from.ip()) else { continue };
            let (tls, router, patience) = (self.tls.clone(), router.clone(), self.patience);
            tokio::spawn(connection((stream, place), from, tls, router, patience));
        }
    }
}

/// A connection's place is its own as long as its stream is there, also when that has become a WebSocket's.
type Place = TakenPlace<CallerNetwork>;

async fn connection(
    (stream, place): (TcpStream, Place),
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    patience: Duration,
) {
    // Without it each answer would wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    // What waits here for a slow reader grows old: who writes is to notice early, and tell the newest.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
    match tls {
        None => serve((stream, place), from, router, patience).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_LIMIT, tls.accept(stream)).await {
                serve((stream, place), from, router, patience).await;
            }
        }
    }
}

async fn serve<S>((stream, place): (S, Place), from: SocketAddr, router: Router, patience: Duration)
where
    S: Through,
{
    let service = router.map_request(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(CallerNetwork::from(from.ip()));
        request.map(axum::body::Body::new)
    });
    let stream = TokioIo::new(Stalling::new(stream, patience, place));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(32 << 10)
        .serve_connection(stream, TowerToHyperService::new(service))
        .with_upgrades();
    // What a connection dies of is its client's affair.
    let _ = serving.await;
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Answers with another protocol, and keeps the connection.
    async fn switch(request: Request) -> (StatusCode, [(&'static str, &'static str); 2]) {
        tokio::spawn(async move {
            let _kept = hyper::upgrade::on(request).await;
            std::future::pending::<()>().await;
        });
        (StatusCode::SWITCHING_PROTOCOLS, [("connection", "upgrade"), ("upgrade", "other")])
    }

    #[test]
    fn a_caller_is_its_address_or_its_network() {
        let of = |text: &str| CallerNetwork::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("::ffff:192.0.2.1").to_string(), "192.0.2.1");
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }

    #[test]
    fn the_addresses_of_a_network_share_its_connections() {
        let places = Places::<CallerNetwork>::new(4, 2);
        let place = |text: &str| places.place(text.parse::<IpAddr>().unwrap());
        let taken = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"].map(place);
        assert_eq!(taken.map(|place| place.is_some()), [true, true, false, true]);
    }

    #[tokio::test]
    async fn a_connection_that_became_another_protocol_s_keeps_its_place() {
        let (at, patience) = (([127, 0, 0, 1], 0).into(), Duration::from_secs(5));
        let listener = HttpListener::bind(at, WebTransport::Loopback, 4, patience).await.unwrap();
        let address = listener.address();
        tokio::spawn(listener.serve(Router::new().route("/", get(switch))));
        let mut kept = Vec::new();
        for is_taken in [true, true, false] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // Who is let go may be so before it has said anything.
            let _ = stream
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n")
                .await;
            let mut told = [0; 12];
            let is_served = stream.read_exact(&mut told).await.is_ok() && told == *b"HTTP/1.1 101";
            assert_eq!(is_served, is_taken);
            kept.push(stream);
        }
    }

    #[tokio::test]
    async fn an_answer_to_an_unread_body_is_not_lost_in_a_reset() {
        let (any, patience) = (([127, 0, 0, 1], 0).into(), Duration::from_secs(30));
        let listener = HttpListener::bind(any, WebTransport::Loopback, 4, patience).await.unwrap();
        let mut stream = TcpStream::connect(listener.address()).await.unwrap();
        let refuse = async || StatusCode::PAYLOAD_TOO_LARGE;
        tokio::spawn(listener.serve(Router::new().fallback(refuse)));
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n";
        stream.write_all(&[&head[..], &[b'x'; 1 << 20]].concat()).await.expect("the body is read to its end");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("the connection ends, and is not reset");
        assert!(answer.starts_with(b"HTTP/1.1 413"), "{}", answer.escape_ascii());
    }
}
