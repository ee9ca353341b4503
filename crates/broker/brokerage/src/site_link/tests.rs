//! The link against sites that a script plays: which die, are silent, answer late.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use mio::{Events, Poll};
use pares_link::frame;

use super::*;

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);
const SITES: SocketOwner = SocketOwner(0);

/// A site of one front, as the test says.
struct Scripted {
    listener: TcpListener,
    conn: Option<TcpStream>,
    input: Vec<u8>,
    /// The term in which it certifies, if it says so.
    term: Option<u64>,
    is_silent: bool,
    /// How often it has said how it is.
    reported: usize,
    /// What it was asked to execute.
    asked: Vec<(TransactionId, Vec<u8>)>,
}

impl Scripted {
    fn new(term: Option<u64>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (conn, input, asked) = (None, Vec::new(), Vec::new());
        Self { listener, conn, input, term, is_silent: false, reported: 0, asked }
    }

    fn door(&self) -> Door {
        self.listener.local_addr().unwrap().into()
    }

    /// Takes what has come, and says how it is to who asks that.
    fn step(&mut self) {
        if let Ok((conn, _)) = self.listener.accept() {
            conn.set_nonblocking(true).unwrap();
            self.conn = Some(conn);
        }
        if self.is_silent {
            return;
        }
        let mut bytes = [0; 4 << 10];
        match self.conn.as_mut().map(|conn| conn.read(&mut bytes)) {
            Some(Ok(count)) => self.input.extend_from_slice(&bytes[..count]),
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => self.conn = None,
            _ => {}
        }
        while let Some((payload, rest)) = frame::split(&self.input, FRAME_MAX).unwrap() {
            let ask = Ask::from_bytes(payload).unwrap();
            self.input = rest.to_vec();
            match ask {
                Ask::Execute(id, _, request) => self.asked.push((id, request)),
                Ask::Report(tag) => {
                    let report = SiteReport {
                        certifies: self.term.is_some(),
                        term: self.term.unwrap_or_default(),
                        ..SiteReport::default()
                    };
                    self.reported += 1;
                    self.say(tag, Code::Done, serde_json::to_vec(&report).unwrap());
                }
                other => panic!("a front does not ask {other:?}"),
            }
        }
    }

    fn say(&mut self, to: u64, code: Code, body: Vec<u8>) {
        let mut bytes = Vec::new();
        frame::append(&mut bytes, &Reply { to, code, horizon: Horizon::default(), body }.to_bytes());
        // Who gave it up does not hear it.
        let _ = self.conn.as_mut().unwrap().write_all(&bytes);
    }

    /// Answers all that it was asked with this.
    fn answer(&mut self, body: &str) {
        for (id, _) in self.asked.clone() {
            self.say(id.sequence, Code::Done, body.into());
        }
    }

    fn requests(&self) -> Vec<&[u8]> {
        self.asked.iter().map(|(_, request)| &request[..]).collect()
    }
}

struct Stage {
    poll: Poll,
    link: SiteLink,
    sites: Vec<Scripted>,
    answers: Vec<SiteAnswer>,
}

impl Stage {
    /// Sites that certify in these terms, or do not.
    fn new(terms: &[Option<u64>]) -> Self {
        let sites: Vec<_> = terms.iter().map(|term| Scripted::new(*term)).collect();
        let poll = Poll::new().unwrap();
        let doors = sites.iter().map(Scripted::door).collect();
        let link = SiteLink::to(doors, poll.registry(), SITES).unwrap();
        Self { poll, link, sites, answers: Vec::new() }
    }

    /// Three requests of one client.
    fn submit_three(&mut self) {
        for sequence in 1..=3 {
            let id = TransactionId { client: 7, sequence };
            self.link.submit(id, vec![sequence as u8]);
        }
    }

    /// Turns until that is so.
    fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "it does not come to that");
            let mut events = Events::with_capacity(16);
            self.poll.poll(&mut events, Some(Duration::from_millis(1))).unwrap();
            events.iter().for_each(|event| self.link.wake(SocketOwner::of(event.token()).1));
            self.answers.extend(self.link.turn());
            self.link.flush();
            self.sites.iter_mut().for_each(Scripted::step);
        }
    }

    /// Until that site has said so often again how it is: whatever could go wrong meanwhile has.
    fn reports(&mut self, site: usize, count: usize) {
        let before = self.sites[site].reported;
        self.until(|stage| stage.sites[site].reported >= before + count);
    }

    /// Each client's number of what was answered, and with what.
    fn answered(&self) -> Vec<(u64, &[u8])> {
        let answers = self.answers.iter();
        answers.map(|answer| (answer.id.sequence, answer.reply.as_deref().unwrap())).collect()
    }
}

const THREE: [&[u8]; 3] = [&[1], &[2], &[3]];

/// The first site certifies, and has three requests.
fn asked() -> Stage {
    let mut stage = Stage::new(&[Some(1), None]);
    stage.submit_three();
    stage.until(|stage| stage.sites[0].asked.len() == 3 && stage.sites[1].reported > 0);
    stage
}

#[test]
fn a_site_that_is_slow_is_asked_for_each_request_once() {
    let mut stage = asked();
    stage.link.open.values_mut().for_each(|open| open.due -= Duration::from_secs(3_600));
    stage.link.looked -= Duration::from_secs(3_600);
    stage.reports(0, 20);
    assert_eq!(stage.sites[0].requests(), THREE);
    stage.sites[0].answer("late");
    stage.until(|stage| stage.answers.len() == 3);
}

#[test]
fn dead_site_requests_move_in_order_to_next_certifier() {
    let mut stage = asked();
    stage.sites[0] = Scripted::new(None);
    stage.reports(1, 5);
    assert!(stage.sites[1].asked.is_empty(), "it does not certify");
    let names: Vec<_> = (1..=3).map(|count| count * OPEN_MAX + count).collect();
    stage.sites[1].term = Some(2);
    stage.until(|stage| stage.sites[1].asked.len() == 3);
    assert_eq!(stage.sites[1].requests(), THREE);
    let asked: Vec<_> = stage.sites[1].asked.iter().map(|(id, _)| id.sequence).collect();
    assert_eq!(asked, names, "under their names");
    stage.sites[1].answer("b");
    stage.until(|stage| stage.answers.len() == 3);
    stage.reports(1, 3);
    assert_eq!(stage.answered(), [(1, &b"b"[..]), (2, b"b"), (3, b"b")]);
}

#[test]
fn silent_site_loses_requests_only_after_successor() {
    let mut stage = asked();
    stage.sites[0].is_silent = true;
    stage.reports(1, 5);
    assert!(stage.sites[1].asked.is_empty() && stage.answers.is_empty());
    stage.sites[1].term = Some(2);
    stage.until(|stage| stage.sites[1].asked.len() == 3);
    assert_eq!(stage.sites[1].requests(), THREE);
}

#[test]
fn what_two_sites_answer_is_answered_once_in_either_order() {
    for late in [0, 1] {
        let mut stage = asked();
        stage.sites[1].term = Some(2);
        stage.until(|stage| stage.sites[1].asked.len() == 3);
        stage.sites[1 - late].answer("first");
        stage.until(|stage| stage.answers.len() == 3);
        stage.sites[late].answer("late");
        stage.reports(late, 3);
        assert_eq!(stage.answered(), [(1, &b"first"[..]), (2, b"first"), (3, b"first")]);
    }
}

#[test]
fn requests_without_certifier_keep_their_order() {
    let mut stage = asked();
    stage.sites[0] = Scripted::new(None);
    stage.reports(1, 2);
    stage.link.submit(TransactionId { client: 7, sequence: 4 }, vec![4]);
    stage.sites[1].term = Some(2);
    stage.until(|stage| stage.sites[1].asked.len() == 4);
    assert_eq!(stage.sites[1].requests(), [&[1][..], &[2], &[3], &[4]]);
}

#[test]
fn unreachable_certifier_requests_go_to_participant() {
    let mut stage = Stage::new(&[None]);
    stage.submit_three();
    stage.until(|stage| stage.sites[0].asked.len() == 3);
    assert_eq!(stage.sites[0].requests(), THREE);
}

#[test]
fn certifier_of_earlier_term_gets_no_requests() {
    let mut stage = Stage::new(&[Some(1), Some(2)]);
    stage.until(|stage| stage.sites.iter().all(|site| site.reported > 3));
    stage.submit_three();
    stage.until(|stage| stage.sites[1].asked.len() == 3);
    stage.reports(0, 3);
    assert!(stage.sites[0].asked.is_empty());
}
