//! Two publishers that die and come back, lines and requests that are lost, doubled and late: receivers that cannot call a replayer have it all, once, and never
//! call current what is not. And what a publisher does alone.

use pares_feed::kept::Kept;
use pares_feed::mold::{END_OF_SESSION, Header, Packet};
use pares_feed::publication::{FeedSink, Session};
use pares_feed::publisher::{Line, Publisher};
use pares_feed::resending::Resending;
use pares_feed::store::SessionStanding;
use zerocopy::IntoBytes;

use crate::world::{MS, World};
use crate::{Published, tape};

/// A publisher that keeps in memory what it receives.
pub(crate) struct Keeping<'a, L> {
    pub(crate) publisher: &'a mut Publisher,
    pub(crate) kept: &'a mut Kept,
    pub(crate) line: &'a mut L,
    pub(crate) now_ns: u64,
}

impl<L: Line> FeedSink for Keeping<'_, L> {
    fn begin(&mut self, session: Session) {
        self.kept.begin(session);
        self.publisher.begin(session, self.now_ns, self.line);
    }

    fn message(&mut self, bytes: &[u8]) {
        let at = self.kept.current().expect("a session has begun");
        self.kept.message(bytes);
        self.publisher.message(at.session, at.next, bytes, self.now_ns, self.line);
    }

    fn end(&mut self) {
        self.kept.end();
        self.publisher.end(self.now_ns, self.line);
    }
}

/// One session; how often a gap was seen.
fn runs(published: &Published, seed: u64, lost_percent: u8) -> u64 {
    let mut world = World::new(std::slice::from_ref(published), seed, lost_percent);
    (0..2).for_each(|_| world.listen());
    while !world.is_all_read() {
        let [which, many, lot] = world.network.random.bytes(3)[..] else { unreachable!("three bytes") };
        world.read(usize::from(which % 2), usize::from(many % 5));
        if lot < 8 {
            world.restart(usize::from(which / 2 % 2));
        }
        world.pass(u64::from(many) * 10_000);
    }
    (0..2).for_each(|at| world.catch_up(at));
    world.settle(&format!("seed {seed}"));
    world.states.get("gap").copied().unwrap_or_default()
}

#[test]
fn receivers_have_all_once_despite_dead_publishers() {
    let mut gaps = 0;
    for seed in 0..24 {
        for published in &tape(seed).0 {
            gaps += runs(published, seed, [0, 1, 5, 20][seed as usize % 4]);
        }
    }
    assert!(gaps > 300, "there were gaps: {gaps}");
}

/// What a publisher alone does.
#[derive(Default)]
struct Heard {
    sent: Vec<Vec<u8>>,
}

impl Line for Heard {
    fn send(&mut self, packet: &[u8]) {
        self.sent.push(packet.to_vec());
    }
}

const SESSION: Session = Session(*b"0000000001");
const OTHER: Session = Session(*b"0000000002");

/// The head of a packet, which is a request for messages too.
pub(crate) fn request(session: Session, sequence: u64, count: u16) -> Vec<u8> {
    Header { session: session.0, sequence: sequence.into(), count: count.into() }.as_bytes().to_vec()
}

/// A publisher that has sent so many messages of 30 bytes.
fn sent(messages: usize, heard: &mut Heard) -> (Publisher, Kept) {
    let (mut publisher, mut kept) = (Publisher::default(), Kept::default());
    publisher.go_live(None);
    let mut taking = Keeping { publisher: &mut publisher, kept: &mut kept, line: heard, now_ns: 0 };
    taking.begin(SESSION);
    (0..messages).for_each(|_| taking.message(&[7; 30]));
    publisher.flush(0, heard);
    (publisher, kept)
}

#[test]
fn quiet_publisher_reports_progress_and_end() {
    let mut heard = Heard::default();
    let (mut publisher, mut kept) = sent(3, &mut heard);
    publisher.on_time(999 * MS, &mut heard);
    assert_eq!(heard.sent.len(), 1, "not yet");
    publisher.on_time(1_000 * MS, &mut heard);
    let beat = Packet::read(&heard.sent[1]).unwrap();
    assert_eq!((beat.next(), beat.messages().count(), beat.ends), (4, 0, false));
    let (publisher, kept) = (&mut publisher, &mut kept);
    Keeping { publisher, kept, line: &mut heard, now_ns: 1_500 * MS }.end();
    heard.sent.clear();
    (1..=200).for_each(|second| publisher.on_time((1_500 + second * 1_000) * MS, &mut heard));
    assert_eq!(heard.sent.len(), 200);
    assert!(
        heard
            .sent
            .iter()
            .all(|packet| Packet::read(packet).is_ok_and(|packet| packet.ends && packet.next() == 4))
    );
    let again = Resending::default().on_request((1, 1), &request(SESSION, 1, 3), 0, Some(kept));
    assert!(again.is_some(), "it is sent again all the same");
    heard.sent.clear();
    publisher.begin(OTHER, 300_000 * MS, &mut heard);
    publisher.on_time(301_000 * MS, &mut heard);
    let beat = Packet::read(&heard.sent[0]).unwrap();
    assert_eq!((beat.session, beat.next(), beat.ends, heard.sent.len()), (OTHER, 1, false, 1));
}

#[test]
fn a_publisher_that_starts_after_the_end_tells_it() {
    let (mut publisher, mut heard) = (Publisher::default(), Heard::default());
    let start = 7_200_000;
    publisher.go_live(Some(SessionStanding { session: SESSION, next: 4, over: true }));
    (0..200).for_each(|second| publisher.on_time((start + second * 1_000) * MS, &mut heard));
    assert_eq!(heard.sent.len(), 200);
    assert!(heard.sent.iter().all(|packet| Packet::read(packet).is_ok_and(|packet| packet.ends)));
}

#[test]
fn requests_get_packet_or_counted_silence() {
    let (_, mut kept) = sent(100, &mut Heard::default());
    let mut resending = Resending::default();
    let mut ask = |asker: u32, request: Vec<u8>| {
        let packet = resending.on_request((asker, asker), &request, 0, Some(&mut kept));
        (packet, resending.resent)
    };
    for (sequence, count) in [(1, 1), (1, 100), (40, 500), (100, 2), (1, END_OF_SESSION)] {
        let (packet, _) = ask(1, request(SESSION, sequence, count));
        let packet = packet.unwrap();
        let packet = Packet::read(&packet).unwrap();
        assert_eq!((packet.session, packet.sequence), (SESSION, sequence));
        assert_eq!(packet.messages().count(), usize::from(count).min(101 - sequence as usize).min(45));
    }
    for (sequence, count) in [(0, 1), (1, 0), (101, 1), (u64::MAX, 9)] {
        assert_eq!(ask(1, request(SESSION, sequence, count)).0, None);
    }
    ask(1, request(OTHER, 1, 1));
    ask(1, request(SESSION, 1, 1)[1..].to_vec());
    let (_, resent) = ask(1, [request(SESSION, 1, 1), vec![0]].concat());
    assert_eq!((resent.answered, resent.not_there, resent.strange, resent.malformed), (5, 4, 1, 2));
    (0..1_000).for_each(|_| drop(ask(1, request(SESSION, 1, 1))));
    let (packet, resent) = ask(2, request(SESSION, 1, 1));
    assert!(packet.is_some(), "another is answered all the same");
    assert_eq!((resent.answered, resent.too_many), (201, 805));
}

#[test]
fn a_shard_that_is_not_there_is_strange() {
    let mut resending = Resending::default();
    assert_eq!(resending.on_request((1, 1), &request(SESSION, 1, 1), 0, None), None);
    assert_eq!(resending.resent.strange, 1);
}

#[test]
fn the_session_before_is_sent_again_and_no_older_one() {
    let mut heard = Heard::default();
    let (mut publisher, mut kept) = sent(5, &mut heard);
    let mut resending = Resending::default();
    let ask = |resending: &mut Resending<u32, u32>, kept: &mut Kept| {
        resending.on_request((1, 1), &request(SESSION, 1, 1), 0, Some(kept)).is_some()
    };
    for session in [OTHER, Session(*b"0000000003")] {
        assert!(ask(&mut resending, &mut kept));
        let (publisher, kept) = (&mut publisher, &mut kept);
        Keeping { publisher, kept, line: &mut heard, now_ns: 0 }.begin(session);
    }
    assert!(!ask(&mut resending, &mut kept));
    assert_eq!(resending.resent.strange, 1);
}
