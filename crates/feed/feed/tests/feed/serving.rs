//! What a publisher serves over TCP: replays, snapshots, and the end of those who misbehave.

use std::sync::Arc;

use pares_feed::books::ReceivedBooks;
use pares_feed::kept::Kept;
use pares_feed::publication::{FeedSink, Session};
use pares_feed::serving::{Serving, ServingEnded, SessionAsked, TURN_BYTES_MAX};
use pares_feed::snapshot::{FeedSnapshot, SnapshotSource};
use pares_feed::soup::{self, FromServer, Pieces, SERVER_BYTES_MAX};
use pares_feed::store::SessionStore;
use pares_random::Random;
use pares_types::{ShardId, Side};

use crate::{Published, tape};

const S: u64 = 1_000_000_000;
const OLD: Session = Session(*b"0003000001");
const NEW: Session = Session(*b"0003000002");

/// A day that is over, with 10 messages, and one that is on, with 5.
fn kept() -> Kept {
    let mut kept = Kept::default();
    kept.begin(OLD);
    (0..10_u8).for_each(|at| kept.message(&[b'x', at]));
    kept.end();
    kept.begin(NEW);
    (0..5_u8).for_each(|at| kept.message(&[b'y', at]));
    kept
}

/// What a client reads, in short: `A0003000002 3`, `S` with the message's last byte, `H`, `Z`, `J`.
fn read(bytes: &[u8]) -> Vec<String> {
    let (mut pieces, mut read) = (Pieces::new(SERVER_BYTES_MAX), Vec::new());
    pieces.push(bytes);
    while let Some(packet) = pieces.take().unwrap() {
        read.push(match FromServer::read(packet).unwrap() {
            FromServer::Accepted(session, next) => format!("A{session} {next}"),
            FromServer::Rejected(reason) => format!("J{}", reason as char),
            FromServer::Sequenced(message) => format!("S{}", message[message.len() - 1]),
            FromServer::Heartbeat => "H".into(),
            FromServer::EndOfSession => "Z".into(),
            FromServer::Debug(_) => "+".into(),
        });
    }
    read
}

/// Logs in, and what is answered at once.
fn served(bytes: &[u8], kept: &mut Kept) -> (Serving, Vec<String>) {
    let mut serving = Serving::new(0);
    serving.on_bytes(bytes, 0);
    if serving.asked().is_some() {
        serving.answer(kept.standing());
    }
    let first = out(&mut serving, kept, 0);
    (serving, first)
}

/// What it writes now, all of which goes.
fn out(serving: &mut Serving, kept: &mut Kept, now_ns: u64) -> Vec<String> {
    let mut out = Vec::new();
    serving.fill(&mut out, TURN_BYTES_MAX, now_ns, Some(kept));
    serving.on_written(out.len(), 0, now_ns);
    read(&out)
}

#[test]
fn a_replay_goes_on_live_and_ends_with_the_session() {
    let mut kept = kept();
    let (mut serving, first) = served(&soup::login(*b"REPLAY", NEW.0, 4), &mut kept);
    assert_eq!(first, ["A0003000002 4", "S3", "S4"]);
    assert_eq!(serving.reads(), Some(ShardId(3)));
    kept.message(&[9]);
    assert_eq!(out(&mut serving, &mut kept, 1), ["S9"]);
    kept.end();
    assert_eq!(out(&mut serving, &mut kept, 2), ["Z"]);
    assert_eq!(out(&mut serving, &mut kept, 3).len(), 0);
    serving.on_bytes(&[0, 1, b'O'], 4);
    assert_eq!(serving.ended(), Some(ServingEnded::Finished));
}

#[test]
fn login_names_session_shard_or_nothing_and_number() {
    for (session, sequence, first) in [
        (&OLD.0, 9, "A0003000001 9"),
        (b"0003      ", 1, "A0003000002 1"),
        (b"      0003", 1, "A0003000002 1"),
        (b"          ", 0, "A0003000002 6"),
        (&NEW.0, 6, "A0003000002 6"),
        (&NEW.0, 7, "JS"),
        (&NEW.0, u64::MAX, "JS"),
        (b"0003000003", 1, "JS"),
        (b"nonsense!!", 1, "JS"),
        (b"000g      ", 1, "JS"),
    ] {
        let (serving, read) = served(&soup::login(*b"anyone", *session, sequence), &mut kept());
        assert_eq!(read[0], first);
        assert_eq!(serving.ended(), first.starts_with('J').then_some(ServingEnded::Rejected));
    }
    let mut serving = Serving::new(0);
    serving.on_bytes(&soup::login(*b"snap  ", *b"00ab      ", 1), 0);
    let asked = serving.asked().unwrap();
    assert_eq!((asked.snapshot, asked.session), (true, SessionAsked::Current(ShardId(0xab))));
    serving.reject();
    assert_eq!(out(&mut serving, &mut kept(), 0), ["JS"]);
}

#[test]
fn a_quiet_connection_beats_and_a_silent_client_is_sent_away() {
    let mut kept = kept();
    let (mut serving, _) = served(&soup::login(*b"REPLAY", NEW.0, 6), &mut kept);
    assert_eq!(serving.deadline_ns(), S);
    assert_eq!(out(&mut serving, &mut kept, S - 1).len(), 0);
    assert_eq!(out(&mut serving, &mut kept, S), ["H"]);
    serving.on_bytes(&[0, 1, b'R'], 10 * S);
    serving.on_time(25 * S - 1);
    assert_eq!(serving.ended(), None);
    serving.on_time(25 * S);
    assert_eq!(serving.ended(), Some(ServingEnded::Silent));
    let mut serving = Serving::new(0);
    serving.on_time(serving.deadline_ns());
    assert_eq!((serving.deadline_ns(), serving.ended()), (10 * S, Some(ServingEnded::NoLogin)));
}

#[test]
fn one_who_never_reads_costs_a_buffer_and_is_sent_away() {
    let mut kept = kept();
    (0..200_000).for_each(|_| kept.message(&[7; 36]));
    let mut serving = Serving::new(0);
    serving.on_bytes(&soup::login(*b"REPLAY", NEW.0, 1), 0);
    serving.answer(kept.standing());
    let mut buffer = Vec::new();
    for second in 0..40 {
        serving.on_bytes(&[0, 1, b'R'], second * S);
        let room = 100_000 - buffer.len();
        serving.fill(&mut buffer, room, second * S, Some(&mut kept));
        serving.on_written(0, buffer.len(), second * S);
        serving.on_time(second * S);
        assert_eq!(serving.ended().is_some(), second >= 30);
    }
    assert!(buffer.len() <= 100_000);
    assert_eq!(serving.ended(), Some(ServingEnded::TakesNothing));
}

#[test]
fn whatever_a_client_sends_it_is_answered_or_ended() {
    let (mut random, mut kept) = (Random::new(5), kept());
    let mut ended = 0;
    for round in 0..20_000 {
        let mut bytes = soup::login(*b"REPLAY", NEW.0, 3).to_vec();
        let [at, with, cut, _] = random.bytes(4)[..] else { unreachable!("four bytes") };
        let place = usize::from(at) % bytes.len();
        bytes[place] = with;
        bytes.truncate(usize::from(cut));
        bytes.extend(random.bytes(round % 40));
        let mut serving = Serving::new(0);
        for piece in bytes.chunks(1 + round % 7) {
            serving.on_bytes(piece, 0);
            serving.answer(kept.standing());
            let mut out = Vec::new();
            serving.fill(&mut out, 200, 0, Some(&mut kept));
            assert!(out.len() <= 200);
            serving.on_written(out.len(), 0, 0);
        }
        ended += u64::from(serving.ended().is_some());
    }
    assert!(ended > 5_000, "{ended} ended");
}

/// The source over the first messages of a session, and a snapshot made in small pieces.
fn snapshot(published: &Published, messages: usize) -> FeedSnapshot {
    let mut kept = Kept::default();
    kept.begin(published.session);
    published.messages[..messages].iter().for_each(|message| kept.message(message));
    let mut source = SnapshotSource::new(4_242);
    assert!(!source.begin(), "there is no session");
    while !source.follow(&mut kept, 7).unwrap() {}
    assert!(format!("{source:?}").contains("orders_max: 67108864, seed: 4242"), "its books have its seed");
    assert!(source.begin());
    loop {
        if let Some(snapshot) = source.piece(3) {
            return snapshot;
        }
    }
}

/// What a client gets as a snapshot, when the server has little room; the number to continue at.
fn taken(snapshot: FeedSnapshot, books: &mut ReceivedBooks) -> u64 {
    let mut serving = Serving::new(0);
    serving.on_bytes(&soup::login(*b"SNAP  ", *b"0003      ", 1), 0);
    serving.answer_snapshot(Arc::new(snapshot));
    let (mut pieces, mut next) = (Pieces::new(SERVER_BYTES_MAX), None);
    while next.is_none() {
        let mut out = Vec::new();
        serving.fill(&mut out, 90, 0, None);
        assert!((1..=90).contains(&out.len()), "it goes on");
        serving.on_written(out.len(), 0, 0);
        pieces.push(&out);
        while let Some(packet) = pieces.take().unwrap() {
            if let FromServer::Sequenced(message) = FromServer::read(packet).unwrap() {
                next = soup::end_of_snapshot(message);
                if next.is_none() {
                    books.on_message(message);
                }
            }
        }
    }
    serving.on_time(10 * S);
    assert_eq!(serving.ended(), Some(ServingEnded::Finished));
    next.unwrap()
}

/// What two books show, but for their last trades, which no snapshot has.
pub(crate) fn assert_same_books(one: &ReceivedBooks, other: &ReceivedBooks, what: &str) {
    assert_eq!(one.all().count(), other.all().count(), "{what}");
    for ((locate, one), (same, other)) in one.all().zip(other.all()) {
        assert_eq!((locate, &one.symbol, one.state), (same, &other.symbol, other.state), "{what}");
        assert_eq!((one.reason, one.indicative), (other.reason, other.indicative), "{what}");
        for side in [Side::Buy, Side::Sell] {
            let orders = |book: &pares_feed::books::ReceivedBook| book.orders(side).collect::<Vec<_>>();
            assert_eq!(orders(&one), orders(&other), "{what}");
        }
    }
}

#[test]
fn snapshot_plus_rest_equals_full_session() {
    let mut random = Random::new(3);
    for seed in 0..300 {
        for published in tape(seed).0 {
            let length = published.messages.len();
            let [high, low] = random.bytes(2)[..] else { unreachable!("two bytes") };
            let before = usize::from(u16::from_be_bytes([high, low])) % (length + 1);
            let (mut whole, mut late) = (ReceivedBooks::with_seed(0), ReceivedBooks::with_seed(0));
            published.messages[..before].iter().for_each(|message| whole.on_message(message));
            let next = taken(snapshot(&published, before), &mut late);
            assert_eq!(next, before as u64 + 1);
            assert_same_books(&whole, &late, &format!("seed {seed} at {before}"));
            for message in &published.messages[before..] {
                whole.on_message(message);
                late.on_message(message);
            }
            assert_same_books(&whole, &late, &format!("seed {seed} in the end"));
            assert_eq!(late.misfits, 0);
        }
    }
}
