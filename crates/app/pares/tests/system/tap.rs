//! The tap of a running system: every byte of every door is there, secrets are not, and what is made of it is right.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use pares_log::{Config, Writer};
use pares_node::SystemConfig;
use pares_port::{TapDoor, TapHead, TapKind, TapLoss};
use pares_text::moment;
use pares_types::{GatewayId, RecorderId, Side};
use serde_json::Value;
use zerocopy::IntoBytes;

use crate::common::exchange::{Exchange, gateway, small};
use crate::common::{eventually, limit};
use crate::decoders::{dissected, has_tshark};

fn taped() -> Exchange {
    let config = small(1);
    let (fix, ouch) = (config.gateways.clone(), config.gateways.clone());
    Exchange::start(&SystemConfig { tap: true, fix, ouch, ..config })
}

/// Runs `pares tap`. Whether it succeeded, and all it said.
pub(crate) fn tap(exchange: &Exchange, arguments: &str) -> (bool, String) {
    let ran = exchange.pares(&format!("tap {arguments}"));
    (ran.is_ok(), ran.said())
}

/// An order of member 7.
fn sells(exchange: &Exchange, name: u64) {
    exchange.client(0, 7).submit_and_wait(&limit(name, 1, Side::Sell, 5, 2_238_200)).unwrap();
}

fn rows(exchange: &Exchange, arguments: &str) -> Vec<Value> {
    let (ok, said) = tap(exchange, arguments);
    assert!(ok, "{said}");
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn dial(path: &Path) -> TcpStream {
    let address: SocketAddr = std::fs::read_to_string(path).unwrap().trim().parse().unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Reads some of what comes, also behind a signal: other tests of this process have some.
pub(crate) fn read_some(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.unwrap(),
        }
    }
}

/// What comes until it contains `end`.
fn hear(stream: &mut TcpStream, end: &str) -> Vec<u8> {
    let (mut heard, mut buffer) = (Vec::new(), [0; 4_096]);
    while !heard.windows(end.len()).any(|window| window == end.as_bytes()) {
        let read = read_some(stream, &mut buffer);
        assert!(read > 0, "{}", heard.escape_ascii());
        heard.extend_from_slice(&buffer[..read]);
    }
    heard
}

pub(crate) fn fix(kind: &str, number: u32, fields: &str) -> Vec<u8> {
    fix_of("M9", kind, number, fields)
}

pub(crate) fn fix_of(sender: &str, kind: &str, number: u32, fields: &str) -> Vec<u8> {
    let now = moment::format(pares_os::clock::now_ns()).replacen('-', "", 2).replace('T', "-");
    let body = format!("35={kind}|34={number}|49={sender}|52={}|56=PARES|{fields}", &now[..21]);
    let message = format!("8=FIX.4.4|9={}|{body}", body.len()).replace('|', "\x01");
    let sum = message.bytes().fold(0_u8, u8::wrapping_add);
    format!("{message}10={sum:03}\x01").into_bytes()
}

/// The same with another sum.
fn garbled(mut message: Vec<u8>) -> Vec<u8> {
    let digit = message.len() - 2;
    message[digit] = if message[digit] == b'0' { b'1' } else { b'0' };
    message
}

/// Member 9 by FIX: what it sent and what it heard. Two of its orders its session does not look at, and the last one follows a gap.
fn by_fix(exchange: &Exchange) -> [Vec<u8>; 2] {
    let mut stream = dial(&exchange.layout().fix_address(GatewayId(0)));
    let logon = fix("A", 1, "98=0|108=30|141=Y|95=6|96=SECRET|");
    let now = "60=20260801-09:30:00";
    let order = |number, name: &str| {
        fix("D", number, &format!("{name}|55=ALFA|54=1|{now}|38=100|40=2|44=1.00|59=0|"))
    };
    let old = order(1, "43=Y|122=20260801-09:30:00|11=7");
    let orders = [garbled(order(2, "11=6")), old, order(2, "11=5")].concat();
    stream.write_all(&logon).unwrap();
    let mut heard = hear(&mut stream, "\x0135=A\x01");
    stream.write_all(&orders).unwrap();
    heard.extend(hear(&mut stream, "\x0137="));
    let unknown = fix("F", 3, &format!("11=4|41=3|55=ALFA|54=1|{now}|"));
    stream.write_all(&unknown).unwrap();
    heard.extend(hear(&mut stream, "\x0135=9\x01"));
    let ahead = order(9, "11=8");
    stream.write_all(&ahead).unwrap();
    heard.extend(hear(&mut stream, "\x0135=2\x01"));
    [[logon, orders, unknown, ahead].concat(), heard]
}

/// Member 8 by OUCH.
fn by_ouch(exchange: &Exchange) {
    let mut stream = dial(&exchange.layout().ouch_address(GatewayId(0)));
    let packet = |kind: u8, payload: &[u8]| {
        [&u16::try_from(payload.len() + 1).unwrap().to_be_bytes(), &[kind][..], payload].concat()
    };
    let login = format!("{:<6}{:<10}{:>10}{:>20}", "8", "PASSWORD", "1-0", 1);
    stream.write_all(&packet(b'L', login.as_bytes())).unwrap();
    hear(&mut stream, "1-0");
    let order = b"O\0\0\0\x05B\0\0\0\x64ALFA    \0\0\0\0\0\0\x27\x100YPNN              \0\0";
    stream.write_all(&packet(b'U', order)).unwrap();
    hear(&mut stream, "#1 ");
}

/// All files of the tap; one that is being made may get its name meanwhile.
fn files(exchange: &Exchange) -> Vec<u8> {
    let entries = std::fs::read_dir(exchange.layout().tap(GatewayId(0))).unwrap();
    entries.flat_map(|entry| std::fs::read(entry.unwrap().path()).unwrap_or_default()).collect()
}

fn contains(bytes: &[u8], wanted: &str) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes())
}

#[test]
fn what_each_door_said_is_in_the_tap_and_no_secret_is() {
    let mut exchange = taped();
    let mut client = exchange.client(0, 7);
    client.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    let [sent, heard] = by_fix(&exchange);
    by_ouch(&exchange);
    eventually("all that was said is in the tap", || {
        let listed = rows(&exchange, "list --json");
        let of = |door: &str| listed.iter().find(|one| one["door"] == door).cloned().unwrap_or_default();
        of("fix")["bytes_in"] == sent.len()
            && of("binary")["messages_in"] == 2
            && of("ouch")["messages_in"] == 2
    });
    let listed = rows(&exchange, "list --json");
    assert_eq!(listed.iter().map(|one| &one["member"]).collect::<Vec<_>>(), [7, 9, 8]);
    assert!(listed.iter().all(|one| one["missing_in"] == 0 && one["missing_out"] == 0));
    let fix = listed.iter().find(|one| one["door"] == "fix").unwrap();
    assert!(fix["bytes_out"].as_u64().unwrap() >= heard.len() as u64);

    let bytes = files(&exchange);
    assert!(!contains(&bytes, "SECRET") && !contains(&bytes, "PASSWORD"));
    assert!(contains(&bytes, "96=******\x01"));
    let (_, shown) = tap(&exchange, "show --member 9 --order 5");
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains("|35=D|34=2|") && shown.contains("|35=8|"), "{shown}");
    let (_, shown) = tap(&exchange, "show --member 8");
    assert!(shown.contains("EnterOrder UserRefNum=5 Side=B Quantity=100 Symbol=ALFA"), "{shown}");
    assert!(shown.contains("Accepted Timestamp=0 UserRefNum=5"), "{shown}");

    let times = rows(&exchange, "latency --json");
    for (member, message) in [(7, "Enter"), (8, "EnterOrder"), (9, "D")] {
        let row = times.iter().find(|row| row["member"] == member).unwrap();
        assert_eq!((&row["message"], &row["answered"]), (&message.into(), &1.into()), "{row}");
        // An answer passes a venue and a recorder, which are other processes.
        assert!(row["p50_ns"].as_u64().unwrap() > 1_000 && row["p50_ns"] == row["max_ns"], "{row}");
    }
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(ok && said.contains("0 bytes of the taps missing"), "{said}");
    assert!(said.contains("2 ignored by their sessions"), "{said}");
    assert!(said.contains("1 requests wait behind gaps"), "{said}");
    assert!(said.contains("4 requests in, 1 of them refused at once"), "{said}");
    dissect(&exchange);

    exchange.kill(gateway(0));
    let mut again = None;
    eventually("the gateway is back", || {
        exchange.tick();
        again = exchange.connect(0, 7, None).ok();
        again.is_some()
    });
    let listed = rows(&exchange, "list --json");
    let ends: Vec<_> = listed.iter().map(|one| one["end"].as_str().unwrap()).collect();
    assert_eq!((ends[0], ends.last()), ("gateway ended", Some(&"open")), "{ends:?}");
    let name = listed[0]["connection"].as_str().unwrap();
    let number = name.split_once('.').unwrap().1;
    let count = |name: &str| rows(&exchange, &format!("list --json --connection {name}")).len();
    assert_eq!((count(name), count(number)), (1, 2), "{name}");
}

#[test]
fn one_damaged_tap_keeps_nobody_from_the_others() {
    let mut exchange = Exchange::start(&SystemConfig { tap: true, ..small(2) });
    for (gateway, member) in [(0, 7), (1, 8)] {
        exchange.client(gateway, member).submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    }
    exchange.stop();
    std::fs::write(exchange.layout().tap(GatewayId(0)).join("marks"), b"no marks").unwrap();
    for (command, wanted) in
        [("list", "8/"), ("show", "Enter"), ("latency", "8/"), ("export --to", "connection")]
    {
        let to = exchange.layout().root().join("some.pcapng");
        let to = if command == "export --to" { to.display().to_string() } else { String::new() };
        let (ok, said) = tap(&exchange, &format!("{command} {to}"));
        assert!(!ok && said.contains(wanted) && said.contains("gateway-0"), "{command}: {said}");
    }
}

/// Changes a bit of the last thing that a log's first segment holds.
fn damage(log: &Path) {
    let segments = std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let segment = segments.filter(|path| path.extension().is_some_and(|kind| kind == "seg")).min().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[at - 8] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
}

/// What lies behind damage is missing, and lines of JSON are nothing else.
#[test]
fn a_tap_with_damage_in_it_is_not_all_there() {
    let mut exchange = taped();
    (1..=2).for_each(|name| sells(&exchange, name));
    exchange.stop();
    damage(&exchange.layout().tap(GatewayId(0)));
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(!ok && said.contains("1 taps that cannot be read to the end"), "{said}");
    assert!(!said.contains("0 bytes of the taps missing"), "{said}");
    let ran = exchange.pares("tap list --json");
    assert!(!ran.is_ok() && ran.complaint.contains("no intact record"), "{ran:?}");
    let listed = ran.out;
    assert!(listed.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{listed}");
    assert!(listed.lines().count() > 0);
}

#[test]
fn reconcile_survives_removed_gateway_and_damaged_recorder() {
    let config = SystemConfig { tap: true, recorders: 2, ..small(2) };
    let mut exchange = Exchange::start(&config);
    exchange.client(1, 7).submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    exchange.stop();
    let layout = exchange.layout().clone();
    let one = SystemConfig { gateways: config.gateways[..1].to_vec(), ..config };
    pares_node::config::save(&one, &layout.config()).unwrap();
    let reconciled = "1 requests in, 0 of them refused at once";
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(ok && said.contains(reconciled), "{said}");
    damage(&layout.recorder_log(RecorderId(0)));
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(ok && said.contains(reconciled) && said.contains("recorder-0"), "{said}");
    damage(&layout.recorder_log(RecorderId(1)));
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(!ok && said.contains("no recorder's log can be read to the end"), "{said}");
}

/// A tap that says it was there, and has nothing.
#[test]
fn what_is_recorded_and_in_no_tap_is_a_difference() {
    let mut exchange = taped();
    (1..=25).for_each(|name| sells(&exchange, name));
    exchange.stop();
    let dir = exchange.layout().tap(GatewayId(0));
    std::fs::remove_dir_all(&dir).unwrap();
    let (mut writer, _) = Writer::open(&dir, Config::default()).unwrap();
    for (kind, wall_ns) in [(TapKind::Began, 1), (TapKind::Opened, pares_os::clock::now_ns())] {
        let head = TapHead { wall_ns: wall_ns.into(), ..TapHead::new(kind, TapDoor::Binary, 1) };
        writer.append(head.as_bytes()).unwrap();
    }
    writer.publish();
    drop(writer);
    let (ok, said) = tap(&exchange, "reconcile");
    let listed = said.lines().filter(|line| line.ends_with("is recorded, but in no tap")).count();
    assert!(!ok && listed == 20 && said.contains("5 more differences of member 7"), "{said}");
    assert!(said.contains("25 differences"), "{said}");
}

/// A tap with an entry that says it lost something is not all there.
#[test]
fn what_a_tap_lost_is_said_by_reconcile() {
    let mut exchange = taped();
    sells(&exchange, 1);
    exchange.stop();
    let (mut writer, _) = Writer::open(&exchange.layout().tap(GatewayId(0)), Config::default()).unwrap();
    let loss = TapLoss { entries: 3.into(), bytes: 77.into() };
    let head = TapHead::new(TapKind::Lost, TapDoor::Binary, 0);
    writer.append(&[head.as_bytes(), loss.as_bytes()].concat()).unwrap();
    writer.publish();
    drop(writer);
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(!ok && said.contains("3 entries that gateways report as lost, 77 bytes"), "{said}");
}

/// What came in while no tap was there is no difference when a tap has a report of it.
#[test]
fn a_tap_that_was_switched_off_for_a_while_makes_no_differences() {
    let mut exchange = taped();
    let config = exchange.config().clone();
    for (name, tap) in [(1, false), (2, true)] {
        sells(&exchange, name);
        exchange.stop();
        let text = SystemConfig { tap, ..config.clone() }.text();
        std::fs::write(exchange.layout().config(), text).unwrap();
        exchange.start_again();
    }
    let mut seller = exchange.client(0, 7);
    exchange.client(0, 8).submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_238_200)).unwrap();
    eventually("both trades are told", || {
        let (_, shown) = tap(&exchange, "show --member 7");
        seller.poll(|_| {}).is_ok() && shown.lines().filter(|line| line.contains("Trade")).count() == 2
    });
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(ok && said.contains("1 recorded requests are in no tap"), "{said}");
    assert!(said.contains("in 2 runs of its gateway"), "{said}");
}

/// tshark finds the messages of FIX and the packets of Soup.
fn dissect(exchange: &Exchange) {
    if !has_tshark() {
        return;
    }
    let path = exchange.layout().root().join("tap.pcapng");
    let (ok, said) = tap(exchange, &format!("export --to {}", path.display()));
    assert!(ok, "{said}");
    let rules = said.split_whitespace().filter(|word| word.starts_with("tcp.port=="));
    let rules: Vec<String> = rules.map(str::to_owned).collect();
    let kinds = ["fix.MsgType", "soupbintcp.packet_type", "tcp.analysis.flags"];
    let fields = [&kinds[..], &["ip.checksum.status", "tcp.checksum.status", "_ws.malformed"]].concat();
    let rows = dissected(&path, &rules, "frame", &fields);
    let column = |at: usize| {
        rows.iter().map(|row| row[at].as_str()).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    };
    let (fix, soup) = (column(0).join(","), column(1).join(","));
    assert!(["A", "D", "8"].iter().all(|kind| fix.split(',').any(|found| found == *kind)), "{fix}");
    assert!(["L", "A", "U", "S"].iter().all(|kind| soup.contains(kind)), "{soup}");
    assert!(column(2).is_empty() && column(5).is_empty(), "{rows:?}");
    assert!(column(3).iter().chain(&column(4)).all(|status| *status == "1"), "{rows:?}");
}
