//! Connections of clients, by TLS or plain, and how many there may be.
//!
//! The usual one-line server waits for ever for a request that comes a letter at a time, and takes as many connections as the system has. Here a connection has so long to say what it
//! wants, and there are so many, which the networks they come from [share](crate::sharing).

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pares_table::{Origin, origin};
use pares_tls::ServerConfig;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::sharing::{ConnectionPlace, SharedConnections};
use crate::socket::Socket;
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

/// A server that listens, and [serves](HttpListener::serve).
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Arc<SharedConnections>,
    patience: Duration,
}

impl HttpListener {
    /// Listens on `address`; port 0 is any free one. There are `most` connections at a time, and none keeps an answer longer than `patience`
    /// without taking a byte. Needs a runtime of tokio with I/O and time.
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
            shared: SharedConnections::new(most),
            patience,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the future is dropped. Each request has its [`Origin`] and its connection's [`ConnectionUse`](crate::sharing::ConnectionUse) among its extensions.
    pub async fn serve(self, router: Router) {
        self.serve_by(origin, router).await;
    }

    async fn serve_by(self, origin: fn(IpAddr, IpAddr) -> Origin, router: Router) {
        loop {
            let Ok((stream, from)) = self.listener.accept().await else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            // A socket that cannot say where it came to has broken meanwhile.
            let Ok(own) = stream.local_addr() else { continue };
            let stream = Arc::new(stream);
            let Some(place) = self.shared.place(origin(from.ip(), own.ip()), &stream) else { continue };
            let (tls, router, patience) = (self.tls.clone(), router.clone(), self.patience);
            tokio::spawn(connection((stream, place), tls, router, patience));
        }
    }
}

async fn connection(
    (stream, place): (Arc<TcpStream>, ConnectionPlace),
    tls: Option<TlsAcceptor>,
    router: Router,
    patience: Duration,
) {
    // Without it each answer would wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    // What waits here for a slow reader grows old: who writes is to notice early, and tell the newest.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
    let socket = Socket { stream, used: place.used.clone() };
    match tls {
        None => serve((socket, place), router, patience).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_LIMIT, tls.accept(socket)).await {
                serve((stream, place), router, patience).await;
            }
        }
    }
}

/// A connection's place is its own as long as its stream is there, also when that has become a WebSocket's.
async fn serve<S: Through>((stream, place): (S, ConnectionPlace), router: Router, patience: Duration) {
    let (origin, used) = (place.origin(), place.used.clone());
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(origin);
        request.extensions_mut().insert(used.clone());
        let under_way = used.request();
        let answer = router.call(request.map(Body::new));
        async { Ok::<_, Infallible>(under_way.until_handed_over(answer.await?)) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(32 << 10)
        .serve_connection(TokioIo::new(Stalling::new(stream, patience, place)), service)
        .with_upgrades();
    // What a connection dies of is its client's affair.
    let _ = serving.await;
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Instant;

    use axum::extract::{Extension, Request};
    use axum::http::StatusCode;
    use axum::routing::get;
    use pares_table::Network;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;

    use super::*;
    use crate::sharing::ConnectionUse;

    const PATIENCE: Duration = Duration::from_secs(30);
    /// More than the system takes for a client that does not read.
    static LARGE: [u8; 16 << 20] = [0; 16 << 20];

    /// Keeps the connection as another protocol's.
    async fn switch(request: Request) -> (StatusCode, [(&'static str, &'static str); 2]) {
        tokio::spawn(async move {
            let _kept = hyper::upgrade::on(request).await;
            std::future::pending::<()>().await;
        });
        (StatusCode::SWITCHING_PROTOCOLS, [("connection", "upgrade"), ("upgrade", "other")])
    }

    /// The same of a client that has signed on.
    async fn sign_on(
        Extension(used): Extension<ConnectionUse>,
        request: Request,
    ) -> (StatusCode, [(&'static str, &'static str); 2]) {
        used.note_signed_on();
        switch(request).await
    }

    /// A server with four places, to which each address of this machine is another network.
    async fn serve_four() -> SocketAddr {
        let any = ([127, 0, 0, 1], 0).into();
        let listener = HttpListener::bind(any, WebTransport::Loopback, 4, PATIENCE).await.unwrap();
        let origin = |address, _| match address {
            IpAddr::V4(address) => Some(Network(address.to_bits().into())),
            IpAddr::V6(_) => None,
        };
        let address = listener.address();
        let paths = Router::new()
            .route("/", get(async || "here"))
            .route("/switch", get(switch))
            .route("/large", get(async || &LARGE[..]));
        tokio::spawn(listener.serve_by(origin, paths.route("/signed-on", get(sign_on))));
        address
    }

    /// The connection of a client of that network that asks for a path, if that is answered. It does not block.
    async fn ask(server: SocketAddr, network: u8, path: &str) -> Option<std::net::TcpStream> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, network], 0).into()).unwrap();
        let mut stream = socket.connect(server).await.unwrap();
        let (wanted, end) = match path {
            "/" => ("keep-alive", &b"here"[..]),
            "/large" => ("keep-alive", &b"\r\n\r\n"[..]),
            _ => ("upgrade\r\nUpgrade: other", &b"\r\n\r\n"[..]),
        };
        let asked = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: {wanted}\r\n\r\n");
        // Who is let go may be so before it has said anything.
        stream.write_all(asked.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(end) {
            answer.push(stream.read_u8().await.ok()?);
        }
        Some(stream.into_std().unwrap())
    }

    /// The server ends a connection before it lets in the one that this makes room for.
    fn is_open(mut connection: &std::net::TcpStream) -> bool {
        match connection.read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Ok(0) => false,
            other => panic!("{other:?}"),
        }
    }

    async fn ask_all(server: SocketAddr, asked: [(u8, &str); 4]) -> Vec<std::net::TcpStream> {
        let mut all = Vec::new();
        for (network, path) in asked {
            all.push(ask(server, network, path).await.expect("there is room"));
        }
        all
    }

    #[tokio::test]
    async fn two_networks_with_all_connections_make_room_for_a_third() {
        let server = serve_four().await;
        let held = ask_all(server, [(1, "/switch"), (2, "/switch"), (1, "/switch"), (2, "/switch")]).await;
        assert!(ask(server, 1, "/").await.is_none(), "none of its own is idle");
        let third = ask(server, 3, "/switch").await.expect("room is made");
        assert!(ask(server, 3, "/").await.is_none(), "no network has two more");
        // Of two with most, one has made room by its older connection, and the others stay.
        assert_eq!(held.iter().map(is_open).collect::<Vec<_>>(), [true, false, true, true]);
        assert!(is_open(&third));
    }

    #[tokio::test]
    async fn idle_connections_of_largest_network_make_room_first() {
        let server = serve_four().await;
        let held = ask_all(server, [(1, "/signed-on"), (1, "/switch"), (1, "/"), (1, "/")]).await;
        let are_open = || held.iter().map(is_open).collect::<Vec<_>>();
        let _second = ask(server, 2, "/switch").await.expect("room is made");
        assert_eq!(are_open(), [true, true, false, true], "the one that is idle longest");
        let _third = ask(server, 3, "/switch").await.expect("room is made");
        assert_eq!(are_open(), [true, true, false, false]);
        let _fourth = ask(server, 4, "/switch").await.expect("the network has two, who asks none");
        assert_eq!(are_open(), [true, false, false, false], "the one on which nobody has signed on");
        assert!(ask(server, 5, "/switch").await.is_none(), "each network has one, and none is idle");
        assert_eq!(are_open(), [true, false, false, false]);
    }

    #[tokio::test]
    async fn connection_whose_answer_is_unread_is_in_use() {
        let server = serve_four().await;
        let mut held = ask_all(server, [(1, "/switch"), (1, "/switch"), (1, "/switch"), (1, "/large")]).await;
        let mut large = TcpStream::from_std(held.pop().unwrap()).unwrap();
        let _second = ask(server, 2, "/switch").await.expect("room is made");
        assert_eq!(held.iter().map(is_open).collect::<Vec<_>>(), [false, true, true]);
        large.read_exact(&mut vec![0; LARGE.len()]).await.expect("all of the answer comes");
        let _third = ask(server, 3, "/switch").await.expect("room is made");
        assert_eq!(large.read(&mut [0]).await.unwrap(), 0, "it is idle, once all has gone");
        assert_eq!(held.iter().map(is_open).collect::<Vec<_>>(), [false, true, true]);
    }

    #[tokio::test]
    async fn what_is_idle_makes_room_for_its_own_network_after_a_while() {
        let (server, began) = (serve_four().await, Instant::now());
        let held = ask_all(server, [(1, "/"), (1, "/"), (1, "/switch"), (2, "/switch")]).await;
        let _own = loop {
            match ask(server, 1, "/switch").await {
                Some(own) => break own,
                None => assert!(began.elapsed() < PATIENCE),
            }
        };
        assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(held.iter().map(is_open).collect::<Vec<_>>(), [false, true, true, true]);
    }

    #[tokio::test]
    async fn an_answer_to_an_unread_body_is_not_lost_in_a_reset() {
        let any = ([127, 0, 0, 1], 0).into();
        let listener = HttpListener::bind(any, WebTransport::Loopback, 4, PATIENCE).await.unwrap();
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
