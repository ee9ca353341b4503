//! Market data: what any process can send to a receiver or a replayer, and what lies in a publisher's log.

use std::cell::RefCell;

use pares_book::{FastBook, Market};
use pares_feed::books::ReceivedBooks;
use pares_feed::itch::FeedMessage;
use pares_feed::kept::Kept;
use pares_feed::mold::{PACKET_BYTES_MAX, Packet, Packing};
use pares_feed::publication::{FeedSink, Publication, Session};
use pares_feed::receiver::Receiver;
use pares_feed::serving::Serving;
use pares_feed::snapshot::SnapshotSource;
use pares_feed::soup::{
    self, CLIENT_BYTES_MAX, FromClient, FromServer, LoginRequest, Pieces, SERVER_BYTES_MAX,
};
use pares_feed::store::SessionStore;
use pares_publisher::logged::{self, Logged, Published, Reached, StatePiece};
use pares_types::{Position, ShardId, Side};
use zerocopy::IntoBytes;

use pares_exercise::requests::Requests;
use pares_random::Random;

const SHARD: ShardId = ShardId(3);
const SESSION: Session = Session(*b"0003000000");
/// Messages of a day that seeds are made of.
const SEED_MESSAGES: usize = 40;

/// Packets, each behind its length, to a receiver: each number is handed out once and in order, and what is a packet is written as it was.
pub fn packets(bytes: &[u8]) {
    let (mut receiver, mut next, mut now_ns) = (Receiver::new(SESSION, 1), 1, 0);
    for bytes in logged::blocks(bytes) {
        if let Ok(packet) = Packet::read(bytes) {
            write_again(&packet, bytes);
        }
        now_ns += 1_000_000;
        let taken = receiver.on_packet(bytes, now_ns, |first, messages| {
            assert_eq!(first, next, "each once, in order");
            next += messages.len() as u64;
        });
        assert_eq!(taken.is_ok(), Packet::read(bytes).is_ok());
        assert_eq!(receiver.next(), next);
        let _state = receiver.state(now_ns);
        if let Some(again) = receiver.ask(now_ns) {
            assert!(Packet::read(&again.packet).is_err(), "a request is no packet");
        }
    }
}

fn write_again(packet: &Packet<'_>, bytes: &[u8]) {
    assert_eq!(packet.messages().count() as u64, packet.next() - packet.sequence);
    if bytes.len() > PACKET_BYTES_MAX {
        return;
    }
    let mut packing = Packing::new(packet.session, packet.sequence);
    for (_, message) in packet.messages() {
        assert!(packing.push(message), "it was in a packet");
    }
    let written = if packet.ends { packing.end() } else { packing.take() };
    assert_eq!(written, bytes, "it is written as it was");
}

/// A stream over TCP in pieces, read from either end, and served. The first byte says how long the pieces are.
pub fn soup(bytes: &[u8]) {
    let Some((&first, stream)) = bytes.split_first() else { return };
    for bytes_max in [CLIENT_BYTES_MAX, SERVER_BYTES_MAX] {
        read_pieces(stream, 1 + usize::from(first), bytes_max);
    }
    serve(stream, 1 + usize::from(first));
}

fn read_pieces(stream: &[u8], piece: usize, bytes_max: usize) {
    let (mut pieces, mut written) = (Pieces::new(bytes_max), Vec::new());
    'all: for bytes in stream.chunks(piece) {
        pieces.push(bytes);
        loop {
            match pieces.take() {
                Ok(Some(packet)) => {
                    let _of_client = FromClient::read(packet);
                    if let Ok(FromServer::Accepted(_, number)) = FromServer::read(packet) {
                        assert_eq!(soup::number(&soup::digits(number)), Some(number));
                    }
                    soup::write(&mut written, packet.kind, packet.payload);
                }
                Ok(None) => break,
                Err(_) => break 'all,
            }
        }
    }
    assert!(stream.starts_with(&written), "packets are written as they were");
}

fn serve(stream: &[u8], piece: usize) {
    let (mut serving, mut kept) = (Serving::new(0), kept(&day(1)[..3]));
    for bytes in stream.chunks(piece) {
        serving.on_bytes(bytes, 0);
        serving.answer(kept.standing());
        let mut out = Vec::new();
        serving.fill(&mut out, 200, 0, Some(&mut kept));
        assert!(out.len() <= 200, "no more than there is room for");
        serving.on_written(out.len(), 0, 0);
    }
}

/// Messages, each behind its length, to books. If all of them fit, a snapshot of the books gives the same books.
pub fn messages(bytes: &[u8]) {
    let (mut books, mut count) = (ReceivedBooks::with_seed(0), 0);
    for message in logged::blocks(bytes) {
        if let Some(read) = FeedMessage::read(message) {
            assert!(read.head().time_ns() < 1 << 48);
        }
        books.on_message(message);
        count += 1;
    }
    assert!(books.misfits <= count);
    for (_, book) in books.all() {
        for side in [Side::Buy, Side::Sell] {
            assert!(book.orders(side).all(|(_, shares, _)| !shares.is_zero()), "orders show something");
            let ranks = book
                .orders(side)
                .map(|(price, _, reference)| (if side == Side::Buy { -price.0 } else { price.0 }, reference));
            assert!(ranks.is_sorted(), "in the order of their queues");
        }
    }
    if books.misfits == 0 && count > 0 {
        assert_same(&books, &snapshot(bytes));
    }
}

/// The books of a snapshot that is made after these messages.
fn snapshot(bytes: &[u8]) -> ReceivedBooks {
    let mut kept = kept(logged::blocks(bytes));
    let mut source = SnapshotSource::new(0);
    while !source.follow(&mut kept, 7).expect("it is in memory") {}
    source.begin();
    let snapshot =
        std::iter::repeat_with(|| source.piece(3)).flatten().next().expect("it is finished in the end");
    let (mut books, mut pieces) = (ReceivedBooks::with_seed(0), Pieces::new(SERVER_BYTES_MAX));
    pieces.push(&snapshot.packets);
    while let Some(packet) = pieces.take().expect("packets") {
        match soup::end_of_snapshot(packet.payload) {
            Some(next) => assert_eq!(next, snapshot.next),
            None => books.on_message(packet.payload),
        }
    }
    assert_eq!(books.misfits, 0);
    books
}

/// But for last trades, which no snapshot has.
fn assert_same(one: &ReceivedBooks, other: &ReceivedBooks) {
    assert_eq!(one.all().count(), other.all().count());
    for ((locate, one), (same, other)) in one.all().zip(other.all()) {
        assert_eq!(
            (locate, &one.symbol, one.state, one.reason),
            (same, &other.symbol, other.state, other.reason)
        );
        assert_eq!(one.indicative, other.indicative);
        for side in [Side::Buy, Side::Sell] {
            assert!(one.orders(side).eq(other.orders(side)), "the same queues");
        }
    }
}

/// A record of a publisher's log.
pub fn publisher_log(bytes: &[u8]) {
    let Ok(read) = Logged::read(bytes) else { return };
    let written = match read {
        Logged::Published(published) => {
            assert_eq!(published.messages().count(), usize::from(published.count));
            [published.head().as_bytes(), published.blocks].concat()
        }
        Logged::Piece(piece) => [piece.head().as_bytes(), piece.bytes].concat(),
    };
    assert_eq!(Logged::read(&written), Ok(read), "it reads back as written");
}

/// A publication as bytes.
pub fn publication(bytes: &[u8]) {
    let Ok(publication) = Publication::restore(SHARD, bytes) else { return };
    let mut stored = Vec::new();
    publication.store(&mut stored);
    assert_eq!(stored, bytes, "it is stored as it was");
}

/// The sessions of one day, in memory.
fn kept<M: AsRef<[u8]>>(messages: impl IntoIterator<Item = M>) -> Kept {
    let mut kept = Kept::default();
    kept.begin(SESSION);
    messages.into_iter().for_each(|message| kept.message(message.as_ref()));
    kept
}

/// The messages of the last session.
#[derive(Default)]
struct Messages(Vec<Vec<u8>>);

impl FeedSink for Messages {
    fn begin(&mut self, _: Session) {
        self.0.clear();
    }

    fn message(&mut self, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }

    fn end(&mut self) {}
}

/// A venue over random requests: its messages, and the publication after them.
fn publish(seed: u64, requests_max: usize) -> (Vec<Vec<u8>>, Publication) {
    let bytes = Random::new(seed).bytes(3_000);
    let requests = Requests::of_a_market(&bytes);
    let mut market = Market::<FastBook>::new(requests.instruments());
    let (mut publication, mut messages) =
        (Publication::new(SHARD, requests.instruments()), Messages::default());
    for (position, request) in (0..).zip(requests.take(requests_max)) {
        let mut events = Vec::new();
        let outcome = market.apply(&request, &mut events);
        publication.on_record(Position(position), &request, &outcome, &events, &mut messages);
    }
    (messages.0, publication)
}

/// Messages of a day. Targets are run often, and every run wants the same ones.
fn day(seed: u64) -> Vec<Vec<u8>> {
    thread_local! { static FIRST: RefCell<Option<(u64, Vec<Vec<u8>>)>> = const { RefCell::new(None) }; }
    FIRST.with_borrow_mut(|known| match known {
        Some((of, messages)) if *of == seed => messages.clone(),
        _ => known.insert((seed, publish(seed, usize::MAX).0)).1.clone(),
    })
}

fn blocks<M: AsRef<[u8]>>(all: impl IntoIterator<Item = M>) -> Vec<u8> {
    let mut bytes = Vec::new();
    all.into_iter().for_each(|one| logged::push_block(&mut bytes, one.as_ref()));
    bytes
}

/// Packets of two lines, with a gap, a heartbeat and the end.
#[must_use]
pub fn packet_seeds() -> Vec<Vec<u8>> {
    (0..6).map(|seed| blocks(day_in_packets(seed))).collect()
}

fn day_in_packets(seed: u64) -> Vec<Vec<u8>> {
    let (mut packing, mut packets) = (Packing::new(SESSION, 1), Vec::new());
    for (index, message) in day(seed).iter().take(SEED_MESSAGES).enumerate() {
        assert!(packing.push(message), "messages are short");
        if (index + 1) % (2 + seed as usize) == 0 {
            packets.push(packing.take().to_vec());
        }
    }
    packets.push(packing.take().to_vec());
    packets.push(packing.take().to_vec());
    packets.push(packing.end().to_vec());
    if seed % 2 == 1 {
        packets.swap(0, 1);
        packets.extend_from_within(..2);
    }
    packets
}

/// What clients and servers send.
#[must_use]
pub fn soup_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (username, session) in
        [(*b"REPLAY", SESSION.0), (*b"SNAP  ", *b"0003      "), (*b"REPLAY", [b' '; 10])]
    {
        let login = LoginRequest { username, password: [b' '; 10], session, sequence: soup::digits(2) };
        let mut bytes = vec![17];
        soup::write(&mut bytes, b'L', login.as_bytes());
        soup::write(&mut bytes, b'R', b"");
        soup::write(&mut bytes, b'+', b"hello");
        soup::write(&mut bytes, b'O', b"");
        seeds.push(bytes);
    }
    let mut bytes = vec![40];
    soup::write(&mut bytes, b'A', &[&SESSION.0[..], &soup::digits(1)].concat());
    day(0).iter().take(SEED_MESSAGES).for_each(|message| soup::write(&mut bytes, b'S', message));
    for (kind, payload) in
        [(b'H', &b""[..]), (b'S', &[b"G", &soup::digits(41)[..]].concat()), (b'Z', b""), (b'J', b"S")]
    {
        soup::write(&mut bytes, kind, payload);
    }
    seeds.push(bytes);
    seeds
}

/// The beginnings of some days.
#[must_use]
pub fn message_seeds() -> Vec<Vec<u8>> {
    (0..8).map(|seed| blocks(day(seed).iter().take(SEED_MESSAGES * (1 + seed as usize)))).collect()
}

/// Messages, and pieces of a state.
#[must_use]
pub fn publisher_log_seeds() -> Vec<Vec<u8>> {
    let (shard, position) = (SHARD, Position(9));
    let mut seeds = Vec::new();
    for (seed, count) in [(0, 1_u16), (1, 7), (2, 40)] {
        let blocks = blocks(day(seed).iter().take(count.into()));
        let reached = Reached { session: SESSION, next: 5 + u64::from(count), chain: 7, over: seed == 1 };
        let published = Published { shard, first: 5, count, reached, position, blocks: &blocks };
        seeds.push([published.head().as_bytes(), &blocks].concat());
        let piece = StatePiece { shard, index: 1, count: 3, reached, position, bytes: &blocks };
        seeds.push([piece.head().as_bytes(), &blocks].concat());
    }
    seeds
}

/// Publications early and late in a day.
#[must_use]
pub fn publication_seeds() -> Vec<Vec<u8>> {
    let stored = |(seed, requests)| {
        let mut bytes = Vec::new();
        publish(seed, requests).1.store(&mut bytes);
        bytes
    };
    [(0, 0), (1, 20), (2, 100), (3, usize::MAX)].map(stored).into()
}
