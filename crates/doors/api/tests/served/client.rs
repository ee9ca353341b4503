//! A server, and a member who asks it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use pares_api::{ApiServer, ApiSettings, ReceivedMarket, WebTransport};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use crate::gateway::Gateway;

/// Longer than any answer takes that comes.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

/// The server, and the token of a session of member 7.
pub(crate) struct Served {
    _runtime: Runtime,
    pub(crate) address: SocketAddr,
    token: String,
}

impl Served {
    pub(crate) fn by(gateways: &[&Gateway], patience: Duration) -> Self {
        Self::with(gateways, patience, None)
    }

    /// The same, where market data are received.
    pub(crate) fn with_market(gateway: &Gateway, market: Arc<ReceivedMarket>) -> Self {
        Self::with(&[gateway], PATIENT, Some(market))
    }

    fn with(gateways: &[&Gateway], patience: Duration, market: Option<Arc<ReceivedMarket>>) -> Self {
        let addresses: Vec<SocketAddr> = gateways.iter().map(|gateway| gateway.address).collect();
        let mut settings = ApiSettings::new(Arc::new(move || addresses.clone()));
        (settings.patience, settings.market) = (patience, market);
        settings.origins = vec!["https://desk.example".to_owned()];
        let runtime = Runtime::new().unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let server = runtime.block_on(ApiServer::bind(any, WebTransport::Loopback, settings)).unwrap();
        let mut served = Self { address: server.address(), token: String::new(), _runtime: runtime };
        served._runtime.spawn(server.run());
        let (status, signed_on) = served.ask("POST", "/v1/sign-on", &json!({ "member": 7 }));
        assert_eq!(status, 201, "{signed_on}");
        served.token = signed_on["token"].as_str().unwrap().to_owned();
        served
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, answer) = self.ask_headed(method, path, body);
        (status, answer)
    }

    /// The same, with the answer's head.
    pub(crate) fn ask_headed(&self, method: &str, path: &str, body: &Value) -> (u16, String, Value) {
        self.ask_from("https://desk.example", method, path, body)
    }

    /// The same by a page of that origin.
    pub(crate) fn ask_from(
        &self,
        origin: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, String, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (token, length) = (&self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, &Value::Null)
    }

    /// A socket on which that is asked for.
    pub(crate) fn subscribed(&self, wish: &Value) -> WebSocket<MaybeTlsStream<TcpStream>> {
        let mut socket = self.socket();
        socket.send(Message::text(wish.to_string())).unwrap();
        socket
    }

    pub(crate) fn socket(&self) -> WebSocket<MaybeTlsStream<TcpStream>> {
        self.socket_with(&[]).unwrap()
    }

    /// Asks for one with these headers too. The status, if it is refused.
    pub(crate) fn socket_with(
        &self,
        headers: &[(&'static str, &str)],
    ) -> Result<WebSocket<MaybeTlsStream<TcpStream>>, u16> {
        let mut request = format!("ws://{}/v1/socket", self.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", self.token).parse().unwrap());
        for (name, value) in headers {
            let value = value.parse().unwrap();
            match *name {
                // There may be two.
                "origin" => _ = request.headers_mut().append(*name, value),
                _ => _ = request.headers_mut().insert(*name, value),
            }
        }
        match tungstenite::connect(request) {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Looks until it is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut looks = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(2));
        is_so()
    });
    assert!(looks.by_ref().take(10_000).any(|is_so| is_so), "{what}");
}

/// An order to buy one share.
pub(crate) fn order(name: u64, symbol: &str) -> Value {
    json!({ "client_order_id": name.to_string(), "symbol": symbol, "side": "buy", "price": "5", "quantity": "1" })
}

/// The wish for the member's stream from that number on.
pub(crate) fn orders_from(number: u64) -> Value {
    json!({ "op": "subscribe", "channel": "orders", "from": { "0": number.to_string() } })
}

/// The next message that is no heartbeat.
pub(crate) fn next(socket: &mut WebSocket<MaybeTlsStream<TcpStream>>) -> Value {
    loop {
        let Message::Text(text) = socket.read().unwrap() else { continue };
        let told: Value = serde_json::from_str(&text).unwrap();
        if told["channel"] != "heartbeat" {
            return told;
        }
    }
}
