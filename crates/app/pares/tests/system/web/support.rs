//! A server, and one who asks it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use pares_node::SystemConfig;

use crate::common::PATIENCE;
use crate::common::exchange::{Exchange, PROGRAM};
use crate::common::process::Running;

/// `pares web`, which ends with the test.
pub(super) struct Web {
    _process: Running,
    pub(super) address: String,
}

impl Web {
    pub(super) fn start(dir: &Path) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["web", "--listen", "127.0.0.1:0", "--exchange"]).arg(dir);
        let mut process = Running::start(&mut command);
        let line = process.lines().next().unwrap();
        let address = line.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
        Self { _process: process, address }
    }
}

/// An exchange, and a server of it.
pub(super) fn serving(config: &SystemConfig) -> (Exchange, Web) {
    let exchange = Exchange::start(config);
    let web = Web::start(exchange.layout().root());
    (exchange, web)
}

/// One who asks, over a connection that is kept.
pub(super) struct Asker {
    pub(super) stream: BufReader<TcpStream>,
    pub(super) token: Option<String>,
    pub(super) kind: &'static str,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.body))
    }

    pub(super) fn reason(&self) -> String {
        if self.head.contains("application/problem+xml") {
            assert!(self.body.starts_with("<problem xmlns=\"urn:ietf:rfc:7807\">"), "{}", self.body);
            let reason = self.body.split("<reason>").nth(1).unwrap().split('<').next();
            return reason.unwrap().to_owned();
        }
        assert!(self.head.contains("application/problem+json"), "{}", self.head);
        self.json()["reason"].as_str().unwrap().to_owned()
    }
}

impl Asker {
    pub(super) fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream), token: None, kind: "application/json" }
    }

    /// A member's, where sign-on is open.
    pub(super) fn open(address: &str, member: u32) -> Self {
        Self::open_as(address, (member, 0))
    }

    /// The same, as that session of its.
    pub(super) fn open_as(address: &str, (member, session): (u32, u16)) -> Self {
        let mut asker = Self::new(address);
        let who = json!({ "member": member, "session": session });
        let answer = asker.ask("POST", "/v1/sign-on", &who.to_string());
        assert_eq!(answer.status, 201, "{}", answer.body);
        asker.token = Some(answer.json()["token"].as_str().unwrap().to_owned());
        asker
    }

    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: {kind}\r\nAccept: {kind}\r\nContent-Length: {}\r\n\r\n",
            token.unwrap_or_default(),
            body.len(),
            kind = self.kind,
        );
        self.say((head + body).as_bytes())
    }

    pub(super) fn say(&mut self, bytes: &[u8]) -> Answer {
        self.stream.get_mut().write_all(bytes).unwrap();
        self.answer()
    }

    pub(super) fn answer(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "closed after {head:?}");
        }
        let length = head
            .to_lowercase()
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: String::from_utf8(body).unwrap() }
    }

    pub(super) fn limit(&mut self, name: u64, side: &str, quantity: u64, price: &str) -> Answer {
        let (name, quantity) = (name.to_string(), quantity.to_string());
        let order = json!({ "client_order_id": name, "symbol": self.symbol(), "side": side, "price": price, "quantity": quantity });
        self.ask("POST", "/v1/orders", &order.to_string())
    }

    /// The first instrument's.
    pub(super) fn symbol(&mut self) -> String {
        for _ in 0..10_000 {
            let answer = self.ask("GET", "/v1/instruments", "");
            if answer.status == 200 {
                return answer.json()["instruments"][0]["symbol"].as_str().unwrap().to_owned();
            }
            // No gateway is there yet.
            assert!([503, 504].contains(&answer.status), "{}", answer.body);
        }
        panic!("no gateway has come back");
    }
}
