//! Two clusters of three sites, and the link between them is gone: with real logs, stores and sockets.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use std::net::SocketAddr;

use common::{PATIENCE, Sites, done};
use pares_link::{ClientStream, Door};
use pares_site::SiteReport;
use pares_site::config::SiteLimits;
use pares_site::protocol::{Ask, Code, Horizon, OPEN_MAX, Reply};
use pares_wice::{SiteId, TransactionId};

const HERE: [SiteId; 3] = [SiteId::new(0, 0), SiteId::new(0, 1), SiteId::new(0, 2)];
const THERE: [SiteId; 3] = [SiteId::new(1, 0), SiteId::new(1, 1), SiteId::new(1, 2)];

/// Who waits is soon told so; nothing depends on how soon.
const IMPATIENT: SiteLimits =
    SiteLimits { patience_ms: 150, open_requests: 1 << 16, readers: 2, read_ms: 10_000 };

/// A connection without a client's patience: it asks on command.
struct Plain {
    stream: ClientStream,
    client: u64,
}

impl Plain {
    fn connect(site: SocketAddr, client: u64) -> Self {
        let stream = ClientStream::connect(&Door::from(site), 1 << 20).unwrap();
        stream.set_timeout(Some(PATIENCE)).unwrap();
        Self { stream, client }
    }

    fn send(&mut self, sequence: u64, request: &str) {
        let id = TransactionId { client: self.client, sequence };
        self.stream.send(&Ask::Execute(id, Horizon::default(), request.into()).to_bytes()).unwrap();
    }

    fn receive(&mut self) -> Reply {
        Reply::from_bytes(&self.stream.receive().unwrap()).unwrap()
    }

    fn ask(&mut self, sequence: u64, request: &str) -> Code {
        self.send(sequence, request);
        self.receive().code
    }

    /// Under the same number, until it is known.
    fn ask_until_known(&mut self, sequence: u64, request: &str) -> Code {
        let mut codes = std::iter::repeat_with(|| self.ask(sequence, request));
        codes.find(|code| !matches!(code, Code::Unknown | Code::Behind | Code::Busy)).unwrap()
    }

    fn report(&mut self) -> SiteReport {
        self.stream.send(&Ask::Report(u64::MAX).to_bytes()).unwrap();
        let reports = std::iter::repeat_with(|| self.receive());
        let report = reports.into_iter().find(|reply| reply.to == u64::MAX).unwrap();
        serde_json::from_slice(&report.body).unwrap()
    }
}

#[test]
fn waiter_learns_unknown_then_outcome_on_retry() {
    let mut sites = Sites::start_within(2, 3, IMPATIENT);
    done(sites.client(1, &HERE).execute(b"add a 1", PATIENCE));
    THERE.into_iter().for_each(|site| sites.stop(site));
    let mut clients: Vec<Plain> =
        HERE.iter().zip(2..).map(|(site, client)| Plain::connect(sites.address(*site), client)).collect();
    for client in &mut clients {
        assert_eq!(client.ask(1, "add a 10"), Code::Unknown, "nothing is stable without the other cluster");
        assert_eq!(client.ask(1, "add a 10"), Code::Unknown, "and the same is still not known");
    }
    let mut elsewhere = Plain::connect(sites.address(HERE[0]), 3);
    assert_eq!(elsewhere.ask(1, "add a 10"), Code::Unknown, "nor at another site");
    THERE.into_iter().for_each(|site| sites.run(site));
    for client in &mut clients {
        assert_eq!(client.ask_until_known(1, "add a 10"), Code::Done);
    }
    assert_eq!(elsewhere.ask_until_known(1, "add a 10"), Code::Done);
    let client = &mut clients[0];
    client.stream.send(&Ask::Read(9, Horizon::default(), b"get a".to_vec()).to_bytes()).unwrap();
    assert_eq!(client.receive().body, b"31", "each was done once");
}

#[test]
fn sites_refuse_before_memory_fills_and_resume() {
    let mut sites = Sites::start_within(2, 3, IMPATIENT);
    done(sites.client(1, &HERE).execute(b"add a 1", PATIENCE));
    THERE.into_iter().for_each(|site| sites.stop(site));
    let long = "x".repeat(400 << 10);
    let mut taken = Vec::new();
    for (site, first) in HERE.into_iter().zip([100, 200, 300]) {
        for number in first.. {
            let mut client = Plain::connect(sites.address(site), number);
            for sequence in 0..OPEN_MAX {
                client.send(sequence, &format!("put long/{number}/{sequence} {long}"));
            }
            let told: Vec<(u64, Code)> =
                (0..OPEN_MAX).map(|_| client.receive()).map(|reply| (reply.to, reply.code)).collect();
            assert!(told.iter().all(|(_, code)| matches!(code, Code::Unknown | Code::Behind)), "{told:?}");
            let unknown = told.iter().filter(|(_, code)| *code == Code::Unknown);
            taken.extend(unknown.map(|(sequence, _)| (number, *sequence)));
            if told.iter().any(|(_, code)| *code == Code::Behind) {
                break;
            }
        }
        let report = Plain::connect(sites.address(site), 9).report();
        let held = report.held;
        // Twice, where other sites' requests come in, too.
        assert!(
            held.requests < 130 << 20 && held.pending < 66 << 20 && held.unstable < 130 << 20,
            "{report:?}"
        );
    }
    assert!(taken.len() > 100);
    let mut other = Plain::connect(sites.address(HERE[1]), 9);
    assert_eq!(other.ask(1, "add a 10"), Code::Behind, "small ones, too: they could not be answered either");
    THERE.into_iter().for_each(|site| sites.run(site));
    assert_eq!(other.ask_until_known(1, "add a 10"), Code::Done);
    for (number, sequence) in taken {
        let mut client = Plain::connect(sites.address(HERE[0]), number);
        let request = format!("put long/{number}/{sequence} {long}");
        assert_eq!(client.ask_until_known(sequence, &request), Code::Done);
    }
}

#[test]
fn one_client_does_not_take_all_places() {
    let mut sites = Sites::start_within(2, 1, IMPATIENT);
    done(sites.client(1, &HERE[..1]).execute(b"add a 1", PATIENCE));
    sites.stop(THERE[0]);
    let mut client = Plain::connect(sites.address(HERE[0]), 2);
    (0..=OPEN_MAX).for_each(|sequence| client.send(sequence, &format!("add b/{sequence} 1")));
    let mut told = std::iter::repeat_with(|| client.receive());
    let refused = told.find(|reply| reply.to == OPEN_MAX).unwrap();
    assert_eq!(refused.code, Code::Busy);
    let mut other = Plain::connect(sites.address(HERE[0]), 3);
    assert_eq!(other.ask(1, "add a 10"), Code::Unknown, "others are taken");
}
