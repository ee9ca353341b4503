//! A server in this process over a broker in memory, and a clock that moves when a test says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use pares_broker::PersonRight;
use pares_web::{Allowance, WebServer, WebSettings, WebTransport, add_person, service};
use serde_json::{Value, json};

use crate::stand_in::MemoryBroker;

pub(crate) const NOON_MS: u64 = 1_700_000_000_000;
pub(crate) const PASSWORD: &str = "correct horse";

/// A server, its broker and its clock.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) router: Router,
    pub(crate) broker: MemoryBroker,
    pub(crate) settings: WebSettings,
    clock: Arc<AtomicU64>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The status, and the reason if it is a problem.
    pub(crate) fn told(&self) -> (u16, String) {
        let json: Value = serde_json::from_str(&self.text).unwrap_or_default();
        (self.status.as_u16(), json["reason"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn retry_s(&self) -> u64 {
        self.headers[header::RETRY_AFTER].to_str().unwrap().parse().unwrap()
    }
}

/// A person who is signed in.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) token: String,
    pub(crate) csrf: String,
}

impl Signed {
    pub(crate) fn bearer(&self) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", self.token))
    }

    pub(crate) fn cookie(&self) -> (&'static str, String) {
        ("cookie", format!("other=1; pares_session={}", self.token))
    }
}

pub(crate) fn settings() -> (WebSettings, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(NOON_MS));
    let of = clock.clone();
    let much = Allowance { burst: 1e6, per_second: 1.0 };
    let settings = WebSettings {
        commands: much,
        reads: much,
        sign_ins: much,
        proofs: much,
        callers: much,
        fresh_quotes: much,
        password_cost: (8, 1),
        patience: Duration::from_secs(60),
        hosts: vec!["here".to_owned()],
        clock: Arc::new(move || of.load(Ordering::SeqCst)),
        ..WebSettings::default()
    };
    (settings, clock)
}

impl Web {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// Needs a runtime.
    pub(crate) fn with(change: impl FnOnce(&mut WebSettings)) -> Self {
        let (mut settings, clock) = settings();
        change(&mut settings);
        let broker = MemoryBroker::new(settings.clock.clone());
        Self { router: service(broker.clone(), settings.clone()), broker, settings, clock }
    }

    /// Another server over the same broker: another front.
    pub(crate) fn other(&self) -> Self {
        Self { router: service(self.broker.clone(), self.settings.clone()), ..self.clone() }
    }

    /// Serves at a port, as long as the runtime runs.
    pub(crate) async fn serve(&self, transport: WebTransport) -> SocketAddr {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (broker, settings) = (self.broker.clone(), self.settings.clone());
        let server = WebServer::bind(any, transport, broker, settings).await.unwrap();
        let address = server.address();
        tokio::spawn(server.run());
        address
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    /// A request that names no host asks for this one.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Answer {
        request.headers_mut().entry(header::HOST).or_insert(HeaderValue::from_static("here"));
        let response = TowerToHyperService::new(self.router.clone()).call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &Value,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header(header::CONTENT_TYPE, "application/json");
            Body::from(body.to_string())
        };
        self.send(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, who: &Signed, path: &str) -> Answer {
        self.ask("GET", path, &[who.bearer()], &Value::Null).await
    }

    /// A list, page by page; `next` is the field that says where the next page begins, and the parameter that asks for it.
    pub(crate) async fn pages(&self, who: &Signed, path: &str, next: &str) -> Vec<Value> {
        let (mut pages, mut at) = (Vec::new(), path.to_owned());
        loop {
            let page = self.get(who, &at).await.json();
            let from = page[next].as_str().map_or_else(|| page[next].to_string(), str::to_owned);
            let is_last = page[next].is_null();
            pages.push(page);
            if is_last {
                return pages;
            }
            at = format!("{path}{}{next}={from}", if path.contains('?') { '&' } else { '?' });
        }
    }

    pub(crate) async fn post(&self, who: &Signed, path: &str, body: Value) -> Answer {
        self.ask("POST", path, &[who.bearer()], &body).await
    }

    pub(crate) async fn put(&self, who: &Signed, path: &str, body: Value) -> Answer {
        self.ask("PUT", path, &[who.bearer()], &body).await
    }

    pub(crate) async fn delete(&self, who: &Signed, path: &str) -> Answer {
        self.ask("DELETE", path, &[who.bearer()], &Value::Null).await
    }

    pub(crate) async fn command(&self, who: &Signed, command: &str, body: Value) -> Answer {
        self.post(who, &format!("/commands/{command}"), body).await
    }

    pub(crate) async fn sign_up(&self, name: &str) -> Answer {
        self.ask("POST", "/people", &[], &json!({"name": name, "password": PASSWORD})).await
    }

    pub(crate) async fn try_in(&self, name: &str, password: &str) -> Answer {
        self.ask("POST", "/session", &[], &json!({"name": name, "password": password})).await
    }

    pub(crate) async fn sign_in(&self, name: &str) -> Signed {
        signed(&self.try_in(name, PASSWORD).await)
    }

    /// A new person, signed in.
    pub(crate) async fn somebody(&self, name: &str) -> Signed {
        assert_eq!(self.sign_up(name).await.status, StatusCode::CREATED);
        self.sign_in(name).await
    }

    /// A supervisor, signed in.
    pub(crate) async fn supervisor(&self, name: &str) -> Signed {
        add_person(&self.broker, &self.settings, name, PASSWORD, &[PersonRight::Supervisor]).await.unwrap();
        self.sign_in(name).await
    }
}

/// Whether an object has these fields, perhaps among others.
#[track_caller]
pub(crate) fn has(found: &Value, expected: Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[name], value, "{name} of {found}");
    }
}

/// The parts of a list, over all of its pages.
pub(crate) fn all_of<'a>(pages: &'a [Value], list: &str) -> impl Iterator<Item = &'a Value> {
    pages.iter().flat_map(move |page| page[list].as_array().unwrap())
}

pub(crate) fn signed(answer: &Answer) -> Signed {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let told = answer.json();
    let text = |name: &str| told[name].as_str().unwrap().to_owned();
    Signed { token: text("token"), csrf: text("csrf") }
}
