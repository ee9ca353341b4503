//! Market data of a running system while its publishers and replayers die, lose their logs, and are asked by strangers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use pares_feed::publication::Session;
use pares_feed::soup;
use pares_node::NodeId;
use pares_node::config::feed_authority;
use pares_receiver::{
    FeedEvent, FeedLines, FeedReceiver, Received, ReceiverConfig, SubscriptionState, Trust,
};
use pares_types::{PublisherId, RecorderId, ReplayerId, Side};

use crate::common::exchange::{Exchange, small, with_feed};
use crate::common::process::Ran;
use crate::common::{eventually, limit};
use crate::feed_tls::{SHARD, replayers};

fn publisher(id: u16) -> NodeId {
    NodeId::Publisher(PublisherId(id))
}

fn replayer(id: u16) -> NodeId {
    NodeId::Replayer(ReplayerId(id))
}

/// One who receives the first shard, and every message that came, with its number.
pub(crate) struct Listener {
    receiver: FeedReceiver,
    messages: Vec<(u64, Vec<u8>)>,
    resets: usize,
}

impl Listener {
    pub(crate) fn new(exchange: &Exchange, lines: bool) -> Self {
        let feed = exchange.config().feed.as_ref().unwrap();
        let authority = feed_authority(exchange.layout(), feed);
        let config = ReceiverConfig {
            shards: vec![SHARD],
            lines: if lines { FeedLines::From(feed.line_a, feed.line_b) } else { FeedLines::None },
            // Everything by TLS, or requests by UDP too.
            requests: if authority.is_none() { replayers(exchange) } else { Vec::new() },
            tcp: replayers(exchange),
            tls: authority.map(|authority| Trust::load(&authority).unwrap()),
            ..ReceiverConfig::default()
        };
        let receiver = FeedReceiver::open(&config).unwrap();
        Self { receiver, messages: Vec::new(), resets: 0 }
    }

    fn poll(&mut self) {
        let Self { receiver, messages, resets } = self;
        let each = |from: pares_receiver::ReceivedFrom<'_>| match from.received {
            Received::Event(FeedEvent::Message { number, bytes }) => messages.push((number, bytes.to_vec())),
            Received::Event(FeedEvent::Reset { .. }) => *resets += 1,
            _ => {}
        };
        receiver.poll(Duration::from_millis(5), each).unwrap();
    }

    /// The shares that are bid at a price, while the books are current.
    fn bid(&self, price: i64) -> Option<u64> {
        (self.receiver.state(SHARD) == Some(SubscriptionState::Current)).then_some(())?;
        let book = self.receiver.books(SHARD)?.book(1)?;
        book.levels(Side::Buy).find(|(at, ..)| at.0 == price).map(|(_, shares, _)| shares.0)
    }

    pub(crate) fn await_bid(&mut self, exchange: &mut Exchange, price: i64, shares: u64) {
        eventually(&format!("{shares} bid at {price}"), || {
            exchange.tick();
            self.poll();
            self.bid(price) == Some(shares)
        });
    }

    /// Every message came once, in order, from the first one that did.
    fn check_whole(&self) {
        let numbers: Vec<u64> = self.messages.iter().map(|(number, _)| *number).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    }
}

#[test]
fn publishers_that_die_together_go_on_with_the_next_number() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let mut listeners = [Listener::new(&exchange, true), Listener::new(&exchange, false)];
    let mut buyer = exchange.client(0, 7);
    for round in 1..=4 {
        buyer.submit_and_wait(&limit(round, 1, Side::Buy, 10, 2_230_000)).unwrap();
        listeners.iter_mut().for_each(|one| one.await_bid(&mut exchange, 2_230_000, 10 * round));
        match round {
            1 => exchange.kill(publisher(0)),
            2 => exchange.kill(publisher(0)) | exchange.kill(publisher(1)),
            _ => exchange.kill(replayer(0)),
        };
        exchange.tick();
    }
    listeners.iter().for_each(Listener::check_whole);
    assert!(listeners.iter().all(|one| one.resets <= 1), "none but its own, as it came");
    let complaints = exchange.complaints();
    assert!(!complaints.contains("anew") && !complaints.contains("panicked"), "{complaints}");
}

/// Logs in for the day so far, or a snapshot, and gives all messages.
fn told(address: SocketAddr, username: &[u8; 6]) -> Vec<Vec<u8>> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&soup::login(*username, soup::current_session(SHARD), 1)).unwrap();
    let mut pieces = soup::Pieces::new(soup::SERVER_BYTES_MAX);
    let (mut messages, mut bytes) = (Vec::new(), [0; 4_096]);
    loop {
        let count = stream.read(&mut bytes).unwrap();
        pieces.push(&bytes[..count]);
        while let Some(packet) = pieces.take().unwrap() {
            match soup::FromServer::read(packet).unwrap() {
                soup::FromServer::Sequenced(message) => messages.push(message.to_vec()),
                // It had nothing more to say for a while.
                soup::FromServer::Heartbeat => return messages,
                _ => {}
            }
        }
        if count == 0 {
            return messages;
        }
    }
}

fn day(exchange: &Exchange, id: u16) -> Vec<Vec<u8>> {
    told(replayers(exchange)[usize::from(id)], b"REPLAY")
}

/// The segments of a publisher's log.
fn segments(exchange: &Exchange, id: u16) -> Vec<PathBuf> {
    let log = exchange.layout().log(publisher(id));
    let names = std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).collect()
}

#[test]
fn damaged_publisher_log_is_rebuilt_from_record() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let mut buyer = exchange.client(0, 7);
    for name in 1..=20 {
        buyer.submit_and_wait(&limit(name, 1, Side::Buy, 1, 2_230_000 - name as i64 * 100)).unwrap();
    }
    let mut before = Vec::new();
    eventually("both days are whole", || {
        exchange.tick();
        before = day(&exchange, 0);
        before.len() >= 23 && before == day(&exchange, 1)
    });
    drop(buyer);
    exchange.stop();
    let first = segments(&exchange, 0).into_iter().min().unwrap();
    let mut bytes = std::fs::read(&first).unwrap();
    let at = bytes.windows(4).position(|four| four == b"ALFA").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    std::fs::remove_dir_all(exchange.layout().log(publisher(1))).unwrap();
    exchange.start_again();
    eventually("both days are as they were", || {
        exchange.tick();
        day(&exchange, 0) == before && day(&exchange, 1) == before
    });
    assert!(exchange.layout().log(publisher(0)).join("damaged-1/marks").exists());
    let mut listener = Listener::new(&exchange, true);
    exchange.client(0, 7).submit_and_wait(&limit(21, 1, Side::Buy, 7, 2_230_000)).unwrap();
    listener.await_bid(&mut exchange, 2_230_000, 7);
}

#[test]
fn publisher_rebuilds_log_removed_while_running() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let mut buyer = exchange.client(0, 7);
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_230_000)).unwrap();
    let mut listener = Listener::new(&exchange, true);
    listener.await_bid(&mut exchange, 2_230_000, 10);
    eventually("all is well", || {
        exchange.tick();
        exchange.pares("stat").is_ok()
    });
    std::fs::remove_dir_all(exchange.layout().log(publisher(0))).unwrap();
    buyer.submit_and_wait(&limit(2, 1, Side::Buy, 20, 2_230_000)).unwrap();
    listener.await_bid(&mut exchange, 2_230_000, 30);
    eventually("the log is there again, and replayed by who read the other", || {
        exchange.tick();
        exchange.counter(replayer(0), "log_anew") > 0 && day(&exchange, 0) == day(&exchange, 1)
    });
    assert_eq!(exchange.counter(replayer(1), "log_anew"), 0);
    let messages = day(&exchange, 0);
    assert!(messages.iter().any(|message| message.ends_with(&2_230_000_u32.to_be_bytes())));
    listener.check_whole();
}

#[test]
fn stat_shows_publishers_and_replayers_and_what_it_cannot_read() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    eventually("all nodes are shown", || {
        let shown = exchange.pares("stat").out;
        let nodes = ["publisher-0", "publisher-1", "replayer-0", "replayer-1", "log_anew"];
        nodes.iter().all(|node| shown.contains(node))
    });
    let marks = exchange.layout().log(publisher(1)).join("marks");
    std::fs::write(&marks, vec![7; 4_096]).unwrap();
    let stat = exchange.pares("stat");
    let shown = stat.said();
    assert_eq!(stat.status, Some(4), "{shown}");
    assert!(shown.contains("publisher-1: "), "{shown}");
    assert!(shown.contains("recorder-1"), "the rest is shown: {shown}");
    exchange.stop();
}

/// `feed watch` of a moment.
fn watch(exchange: &Exchange, words: &str) -> Ran {
    exchange.pares(&format!("feed watch --tcp --seconds 2 {words}"))
}

#[test]
fn watcher_shows_levels_and_fails_without_data() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let none = watch(&exchange, "");
    assert!(
        !none.is_ok() && none.complaint.contains("nothing received: check that the system is up"),
        "{none:?}"
    );
    let mut buyer = exchange.client(0, 7);
    for name in 1..=3 {
        buyer.submit_and_wait(&limit(name, 1, Side::Buy, 10, 2_230_000 + 100 * name as i64)).unwrap();
    }
    let level = |price| serde_json::json!({ "price": price, "shares": 10, "orders": 1 });
    eventually("two levels of three", || {
        exchange.tick();
        let told = watch(&exchange, "ALFA --json --levels 2");
        let last = told.out.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let book: serde_json::Value = last.unwrap_or_default();
        let bids = serde_json::json!([level("223.03"), level("223.02")]);
        told.is_ok() && book["bids"] == bids && book["offers"] == serde_json::json!([])
    });
    let replayer = replayers(&exchange)[0];
    let unknown = watch(&exchange, &format!("NOBODY --replayer {replayer}"));
    let why = "nothing received of NOBODY. Received shards: 1 shard (--shards)";
    assert!(!unknown.is_ok() && unknown.complaint.contains(why), "{unknown:?}");
    watch(&exchange, &format!("ALFA --replayer {replayer}")).done();
    // A shard begins to publish with its first record.
    buyer.submit_and_wait(&limit(4, 3, Side::Buy, 1, 2_230_000)).unwrap();
    eventually("the reason is printed once all instruments are known", || {
        exchange.tick();
        let why = "NOBODY is not one of the 3 instruments received: ALFA, BRAVO, CHARLIE";
        watch(&exchange, "NOBODY --plain").complaint.contains(why)
    });
}

#[test]
fn a_log_of_a_past_that_is_no_more_is_made_anew() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let mut buyer = exchange.client(0, 7);
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_230_000)).unwrap();
    let mut listener = Listener::new(&exchange, true);
    listener.await_bid(&mut exchange, 2_230_000, 10);
    drop((buyer, listener));
    exchange.stop();
    // The record is gone, as after a loss of power with `os`, or with an older backup; what was published is not.
    for id in [0, 1].map(RecorderId) {
        std::fs::remove_dir_all(exchange.layout().recorder_log(id)).unwrap();
    }
    for node in exchange.roles().into_iter().filter(|node| !matches!(node, NodeId::Recorder(_))) {
        if !node.only_tells() {
            let _ = std::fs::remove_dir_all(exchange.layout().log(node));
        }
    }
    let _ = std::fs::remove_dir_all(exchange.layout().run());
    exchange.start_again();
    let mut buyer = exchange.client(0, 7);
    buyer.submit_and_wait(&limit(9, 1, Side::Buy, 3, 2_220_000)).unwrap();
    // Who came before would hold what was, as the page says.
    eventually("both logs are made anew, and replayed", || {
        exchange.tick();
        let has = |id| day(&exchange, id).iter().any(|m| m.ends_with(&2_220_000_u32.to_be_bytes()));
        has(0) && has(1)
    });
    let mut listener = Listener::new(&exchange, true);
    listener.await_bid(&mut exchange, 2_220_000, 3);
    assert_eq!(listener.bid(2_230_000), None, "what was, is no more");
    let complaints = exchange.complaints();
    assert!(complaints.contains("were already sent"), "{complaints}");
    assert!(!complaints.contains("panicked"), "{complaints}");
}

#[test]
fn unknown_replayer_clients_are_refused_unnoticed() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let mut listener = Listener::new(&exchange, true);
    let [first, _] = replayers(&exchange)[..] else { panic!("two replayers") };
    let mut strangers: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(first).unwrap()).collect();
    for (at, stranger) in strangers.iter_mut().enumerate() {
        // Rubbish; a login of half a packet; a packet of length 0; nothing at all.
        let _ = match at % 4 {
            0 => stranger.write_all(&[0xff; 5_000]),
            1 => stranger.write_all(&[0, 47, b'L', b'R']),
            2 => stranger.write_all(&[0, 0, 0, 0]),
            _ => Ok(()),
        };
    }
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let forged = |session: &Session, number: u64, count: u16| {
        [&session.0[..], &number.to_be_bytes(), &count.to_be_bytes()].concat()
    };
    let names = [*b"0000000000", *b"ffffffffff", *b"          ", [0xff; 10]].map(Session);
    for number in [0, 1, u64::MAX, 1 << 60] {
        names.iter().for_each(|name| drop(udp.send_to(&forged(name, number, u16::MAX), first)));
        udp.send_to(&[7; 1_400][..usize::try_from(number % 1_400).unwrap()], first).unwrap();
    }
    let mut buyer = exchange.client(0, 7);
    for round in 1..=20 {
        buyer.submit_and_wait(&limit(round, 1, Side::Buy, 1, 2_230_000)).unwrap();
        listener.await_bid(&mut exchange, 2_230_000, round);
    }
    listener.check_whole();
    eventually("those who sent rubbish are gone", || {
        exchange.tick();
        exchange.counter(replayer(0), "ended") >= 20
    });
    assert!(exchange.counter(replayer(0), "strange") > 0 && exchange.counter(replayer(0), "malformed") > 0);
    assert_eq!(told(first, b"SNAP  ").last().unwrap()[0], b'G', "another is served all the same");
}

#[test]
fn while_no_publisher_goes_on_nothing_is_current_by_tcp_either() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let mut listener = Listener::new(&exchange, false);
    let mut buyer = exchange.client(0, 7);
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_230_000)).unwrap();
    listener.await_bid(&mut exchange, 2_230_000, 10);
    [0, 1].map(publisher).into_iter().for_each(|node| exchange.freeze(node));
    buyer.submit_and_wait(&limit(2, 1, Side::Buy, 5, 2_230_000)).unwrap();
    eventually("what is old is not called current", || {
        exchange.tick();
        listener.poll();
        listener.receiver.state(SHARD) == Some(SubscriptionState::Stale)
    });
    [0, 1].map(publisher).into_iter().for_each(|node| exchange.thaw(node));
    listener.await_bid(&mut exchange, 2_230_000, 15);
}
