//! Programs that are not ours read what a running system publishes: tshark dissects a capture, `itchfeed` (PyPI) reads the tape.
//!
//! Each is left out, and says so, where it is not there and cannot be had.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use etherparse::{SlicedPacket, TransportSlice};
use pares_feed::itch::FeedMessage;
use pares_feed::mold::Packet;
use pares_feed::soup::{Pieces, SERVER_BYTES_MAX};
use pares_testbed::registries::{answers, python_with};
use pares_types::{ShardId, Side};
use pcap_file::pcap::PcapReader;

use crate::common::exchange::{Exchange, small, with_feed};
use crate::common::{eventually, limit};
use crate::web::clients::FOLDER;

/// As it was tried.
const ITCHFEED: &str = "itchfeed==1.6.4";

/// A system whose book of ALFA has seen an order, a trade and a cancel.
fn traded() -> Exchange {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    seller.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 3, 2_238_200)).unwrap();
    buyer.submit_and_wait(&limit(2, 1, Side::Buy, 4, 2_230_000)).unwrap();
    buyer.submit_and_wait(&crate::common::cancel(3, 2)).unwrap();
    exchange.tick();
    exchange
}

/// Of a capture: what came to a port of UDP, packet by packet, and what was said from one port of TCP to another.
#[derive(Default)]
struct Captured {
    datagrams: BTreeMap<u16, Vec<Vec<u8>>>,
    streams: BTreeMap<[u16; 2], Vec<u8>>,
}

fn read(path: &Path) -> Captured {
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut captured = Captured::default();
    while let Some(packet) = reader.next_packet() {
        let data = packet.unwrap().data;
        match SlicedPacket::from_ip(&data).unwrap().transport.unwrap() {
            TransportSlice::Udp(udp) => {
                captured.datagrams.entry(udp.destination_port()).or_default().push(udp.payload().to_vec());
            }
            TransportSlice::Tcp(tcp) => {
                let ports = [tcp.source_port(), tcp.destination_port()];
                captured.streams.entry(ports).or_default().extend(tcp.payload());
            }
            other => panic!("{other:?}"),
        }
    }
    captured
}

/// Captures again and again, until both lines and the replayer were heard.
fn capture(exchange: &Exchange, path: &Path) -> Captured {
    let lines = exchange.config().feed.as_ref().unwrap().lines(ShardId(0)).map(|line| line.port());
    let mut captured = Captured::default();
    eventually("a capture has both lines and the day", || {
        exchange.pares(&format!("feed capture --seconds 2 --replay --pcap {}", path.display())).done();
        captured = read(path);
        let replayed = captured.streams.values().map(Vec::len).max();
        lines.iter().all(|line| captured.datagrams.contains_key(line)) && replayed > Some(200)
    });
    captured
}

pub(crate) fn has_tshark() -> bool {
    let has = Command::new("tshark").arg("--version").output().is_ok_and(|told| told.status.success());
    if !has {
        eprintln!("skipped: there is no tshark");
    }
    has
}

/// The fields of each packet that tshark finds.
pub(crate) fn dissected(
    path: &Path,
    decode_as: &[String],
    filter: &str,
    fields: &[&str],
) -> Vec<Vec<String>> {
    let mut tshark = Command::new("tshark");
    for protocol in ["ip", "udp", "tcp"] {
        tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    tshark.args(["-Y", filter, "-T", "fields", "-E", "occurrence=a"]).arg("-r").arg(path);
    for rule in decode_as {
        tshark.args(["-d", rule]);
    }
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
#[ignore = "all: a program of others, installed from a registry"]
fn tshark_dissects_a_capture_and_finds_the_same_packets() {
    if !has_tshark() {
        return;
    }
    let (exchange, scratch) = (traded(), tempfile::tempdir().unwrap());
    let path = scratch.path().join("lines.pcap");
    let captured = capture(&exchange, &path);
    let mold: Vec<String> =
        captured.datagrams.keys().map(|port| format!("udp.port=={port},moldudp64")).collect();
    let fields =
        ["udp.dstport", "moldudp64.session", "moldudp64.sequence", "moldudp64.count", "udp.checksum.status"];
    let mut theirs: BTreeMap<u16, Vec<(String, u64, u64)>> = BTreeMap::new();
    for row in dissected(&path, &mold, "moldudp64", &fields) {
        let [port, session, sequence, count, checksum] = &row[..] else { panic!("{row:?}") };
        assert_eq!(checksum, "1", "good");
        let packet = (session.clone(), sequence.parse().unwrap(), count.parse().unwrap());
        theirs.entry(port.parse().unwrap()).or_default().push(packet);
    }
    let of = |bytes: &Vec<u8>| {
        let packet = Packet::read(bytes).unwrap();
        (packet.session.to_string(), packet.sequence, packet.next() - packet.sequence)
    };
    let ours =
        captured.datagrams.iter().map(|(port, packets)| (*port, packets.iter().map(of).collect::<Vec<_>>()));
    assert_eq!(theirs, ours.collect::<BTreeMap<_, _>>());

    let replayer = exchange.config().replayer_ids().find_map(|id| {
        let address = std::fs::read_to_string(exchange.layout().replayer_address(id)).ok()?;
        address.trim().rsplit_once(':').map(|(_, port)| port.to_owned())
    });
    let soup = [format!("tcp.port=={},soupbintcp", replayer.unwrap())];
    let types = dissected(&path, &soup, "soupbintcp", &["soupbintcp.packet_type"]);
    let mut theirs: Vec<char> =
        types.iter().flatten().flat_map(|types| types.chars()).filter(char::is_ascii_alphabetic).collect();
    let mut ours: Vec<char> = captured.streams.values().flat_map(|stream| kinds(stream)).collect();
    theirs.sort_unstable();
    ours.sort_unstable();
    assert_eq!(theirs, ours);
    let wrong = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || tcp.analysis.flags";
    let wrong = dissected(&path, &[mold, soup.to_vec()].concat(), wrong, &["frame.number"]);
    assert_eq!(wrong, [[""; 0]; 0], "nothing is malformed, no checksum wrong, no segment missing");
}

/// The kinds of the SoupBinTCP packets of a stream that are whole.
fn kinds(stream: &[u8]) -> Vec<char> {
    let (mut pieces, mut kinds) = (Pieces::new(SERVER_BYTES_MAX), Vec::new());
    pieces.push(stream);
    while let Some(packet) = pieces.take().unwrap() {
        kinds.push(packet.kind.into());
    }
    kinds
}

/// Prints kind, locate and the numbers of each message, as `itchfeed` reads them.
const READ_TAPE: &str = "
import sys
from itch.parser import MessageParser
for message in MessageParser().parse_file(open(sys.argv[1], 'rb')):
    names = ('order_reference_number', 'new_order_reference_number', 'shares', 'executed_shares', 'cancelled_shares', 'price')
    print(message.message_type.decode(), message.stock_locate, *(getattr(message, name) for name in names if hasattr(message, name)))
";

#[test]
#[ignore = "all: a program of others, installed from a registry"]
fn itchfeed_reads_the_tape_and_finds_the_same_numbers() {
    let imports = |bin: &Path| answers(Command::new(bin.join("python")).args(["-c", "import itch.parser"]));
    let Some(programs) = python_with(Path::new(FOLDER), ITCHFEED, imports) else { return };
    let (exchange, scratch) = (traded(), tempfile::tempdir().unwrap());
    exchange.pares(&format!("feed tape --to {}", scratch.path().display())).done();
    let mut kinds = String::new();
    for entry in std::fs::read_dir(scratch.path()).unwrap() {
        let path = entry.unwrap().path();
        let output =
            Command::new(programs.join("python")).args(["-c", READ_TAPE]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let theirs: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let bytes = std::fs::read(&path).unwrap();
        let ours: Vec<Vec<String>> = pares_publisher::logged::blocks(&bytes).map(told).collect();
        assert_eq!(theirs, ours);
        kinds.extend(ours.iter().map(|message| message[0].as_str()));
    }
    assert!("SRHAED".chars().all(|kind| kinds.contains(kind)), "{kinds}");
}

/// The same of a message as we read it.
fn told(bytes: &[u8]) -> Vec<String> {
    let message = FeedMessage::read(bytes).unwrap();
    let head = message.head();
    let numbers: Vec<u64> = match message {
        FeedMessage::AddOrder(of) => vec![of.reference.get(), of.shares.get().into(), of.price.get().into()],
        FeedMessage::Executed(of) => vec![of.reference.get(), of.shares.get().into()],
        FeedMessage::Cancelled(of) => vec![of.reference.get(), of.shares.get().into()],
        FeedMessage::Deleted(of) => vec![of.reference.get()],
        _ => vec![],
    };
    let first = [char::from(head.kind).to_string(), head.locate.get().to_string()];
    first.into_iter().chain(numbers.iter().map(u64::to_string)).collect()
}
