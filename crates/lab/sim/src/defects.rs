//! Defects for the wiring ([`Bug`](crate::Bug)), kept apart from what works.

use std::collections::BTreeMap;

use pares_fix::SOH;
use pares_fix::framing::{Cut, cut};
use pares_fix::writer::FixWriter;

use pares_feed::mold::{END_OF_SESSION, Header};
use pares_orderer::Ordered;
use pares_orderer::message::{put_state, take_state};
use pares_publisher::logged::Logged;
use pares_types::{
    CancelCause, ClientOrderId, ClientRequest, Command, Entry, Event, Price, Quantity, Registration, Request,
    RequestId, Rights,
};
use pares_wire::frame::{self, ClientFrame};

use zerocopy::FromBytes;

use crate::bug::Bug;

/// Of so many reads one finds something. At one of sixteen nobody starves.
const SELDOM: u32 = 256;

/// [`Bug::ReadSeldom`]: all reads but a few find nothing.
pub(crate) fn is_passed_over(reads: &mut u32) -> bool {
    *reads += 1;
    !reads.is_multiple_of(SELDOM)
}

/// A checkpoint as a list of words; see `pares_venue::checkpoint` for which is which.
struct Words(Vec<u64>);

impl Words {
    fn of(state: &[u8]) -> Self {
        let words =
            state.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        Self(words.collect())
    }

    /// The bytes, with a checksum as good as a careful writer's.
    fn sealed(mut self) -> Vec<u8> {
        self.0.pop();
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let step = |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let sum = step(self.0.iter().fold(0, step), &(bytes.len() as u64));
        [bytes, sum.to_le_bytes().to_vec()].concat()
    }
}

/// The checkpoint of a shard whose last book lost the last of its orders that can be told from what precedes it.
pub(crate) fn without_an_order(state: &[u8]) -> Vec<u8> {
    let mut words = Words::of(state);
    // A plain order is eight words, the last of a book ends where the state hash begins; its book's count is found by
    // going back over plain orders.
    let end = words.0.len() - 2;
    for orders in 1..64 {
        let Some(count) = end.checked_sub(8 * orders + 1).filter(|count| *count > 0) else { break };
        let mut list = words.0[count + 1..end].chunks_exact(8);
        let plain = list.all(|order| is_plain(order, words.0[count - 1]));
        if words.0[count] == orders as u64 && plain {
            words.0[count] -= 1;
            words.0.drain(end - 8..end);
            break;
        }
    }
    words.sealed()
}

/// The checkpoint of a shard that raised no floor as it forgot names.
pub(crate) fn without_floors(state: &[u8]) -> Vec<u8> {
    let mut words = Words::of(state);
    // Behind magic, shard and position come counts and what is counted: gateways, two words each, and series, three.
    let count = |words: &Words, at: usize| words.0[at] as usize;
    let series = 4 + 2 * count(&words, 3);
    let names = series + 1 + 3 * count(&words, series);
    words.0[series + 1..names].chunks_exact_mut(3).for_each(|row| row[2] = 0);
    words.sealed()
}

/// Whether eight words are an order of a simulated client in the short form. Nothing else there has a price of this range in
/// this place; its priority is below the book's next one, which stands before the number of orders.
fn is_plain(order: &[u64], priority_next: u64) -> bool {
    order[3] >> 32 == 0 && (490_000..510_000).contains(&order[4]) && order[7] < priority_next
}

/// Fills a tick away.
pub(crate) fn misprice(_: &mut Request, events: &mut Vec<Event>) {
    for event in events {
        if let Event::Fill { price, .. } = event {
            *price = Price(price.0 + 100);
        }
    }
}

pub(crate) fn leave_a_fill_out(request: &mut Request, events: &mut Vec<Event>) {
    let first = events.iter().position(|event| matches!(event, Event::Fill { .. }));
    if let Some(first) = first.filter(|_| request.id.sequence().is_multiple_of(5)) {
        events.remove(first);
    }
}

/// A revocation as a change that takes nothing from any member.
pub(crate) fn overlook_revocation(request: &mut Request, _: &mut Vec<Event>) {
    if let Command::Register(Registration { entry: entry @ Entry::RevokeKey, .. }) = &mut request.command {
        *entry = Entry::SetRights(Rights::TRADING);
    }
}

/// Up to which request of its gateway venues with that defect cancel what a session left.
pub(crate) fn bound(bug: Bug) -> Option<u64> {
    match bug {
        Bug::CancelWhatComes => Some(RequestId::SEQUENCE_MAX),
        Bug::CancelTooLittle => Some(1),
        _ => None,
    }
}

/// The cancel of what a session left, with another bound.
pub(crate) fn rebound(request: &Request, to: u64) -> Request {
    let mut read = *request;
    if let Command::CancelGuarded(guarded) = &mut read.command {
        guarded.last = RequestId::new(guarded.last.gateway(), to);
    }
    read
}

/// Whole SoupBinTCP packets, each with where it begins; `None` if the bytes are anything else.
fn soup_packets(bytes: &[u8]) -> Option<Vec<(usize, &[u8])>> {
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        let length = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
        packets.push((at, bytes.get(at..at + 2 + usize::from(length))?));
        at += 2 + usize::from(length);
    }
    Some(packets)
}

/// Sequenced Data without the second packet of those that are sent at once.
pub(crate) fn leave_packet_out(bytes: &mut Vec<u8>) {
    let Some(packets) = soup_packets(bytes) else { return };
    let mut sequenced = packets.iter().filter(|(_, packet)| packet.get(2) == Some(&b'S'));
    if let Some((at, packet)) = sequenced.nth(1) {
        let gap = *at..*at + packet.len();
        bytes.drain(gap);
    }
}

/// Orders that bear the time in place of their UserRefNums.
pub(crate) fn name_by_clock(bytes: &mut [u8], now_ns: u64) {
    let Some(packets) = soup_packets(bytes) else { return };
    let orders = packets.iter().filter(|(_, packet)| packet.get(2..4) == Some(b"UO"));
    let places: Vec<usize> = orders.map(|(at, _)| at + 4).collect();
    for (number, at) in (now_ns as u32..).zip(places) {
        bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
    }
}

/// What a FIX client receives, falsified.
pub(crate) fn mistell(bug: Option<Bug>, is_stranger: bool, bytes: &mut Vec<u8>) {
    match bug {
        Some(Bug::UnmarkRejects) => rewrite_fix(bytes, b"9", b"\x0197=Y\x01", b"\x0197=N\x01"),
        Some(Bug::AcceptRefused) => rewrite_fix(bytes, b"8", b"\x0139=8\x01103=", b"\x0139=0\x01103="),
        Some(Bug::NeverLast) => rewrite_fix(bytes, b"AE", b"\x01912=Y\x01", b"\x01912=N\x01"),
        Some(Bug::LeaveTradesOut) => leave_trades_out(bytes),
        Some(Bug::GreetStrangers) if is_stranger => {
            rewrite_fix(bytes, b"5", b"\x0135=5\x01", b"\x0135=A\x01")
        }
        _ => {}
    }
}

/// FIX messages in which a heartbeat is in place of each trade that is not the last of those that were.
fn leave_trades_out(bytes: &mut Vec<u8>) {
    let mut out = Vec::new();
    let mut rest = &bytes[..];
    while let (Cut::Whole(frame), used) = cut(rest) {
        let is_last = frame.body.windows(7).any(|field| field == b"\x01912=Y\x01");
        if frame.body.starts_with(b"35=AE\x01") && !is_last {
            let fields = frame.body.split(|byte| *byte == SOH).skip(1);
            let header = fields.take_while(|field| !field.starts_with(b"571="));
            let mut writer = FixWriter::begin(&mut out, "FIX.4.4", b"0");
            writer.fields(&header.flat_map(|field| [field, &[SOH]].concat()).collect::<Vec<_>>());
            writer.finish();
        } else {
            out.extend_from_slice(&rest[..used]);
        }
        rest = &rest[used..];
    }
    out.extend_from_slice(rest);
    *bytes = out;
}

/// Whole FIX messages of that type, with something else in place of what is as long, and the right sums.
pub(crate) fn rewrite_fix(bytes: &mut [u8], kind: &[u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while let (Cut::Whole(frame), used) = cut(&bytes[at..]) {
        let is_of_kind = frame.body.strip_prefix(b"35=").is_some_and(|rest| rest.starts_with(kind));
        let (start, end) = (at + used - frame.bytes.len(), at + used - 7);
        let found = bytes[start..end].windows(from.len()).position(|window| window == from);
        if let Some(found) = found.filter(|_| is_of_kind) {
            bytes[start + found..start + found + to.len()].copy_from_slice(to);
            let sum = bytes[start..end].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
            bytes[end..end + 7].copy_from_slice(format!("10={sum:03}\x01").as_bytes());
        }
        at += used;
    }
}

/// A result without the end of the business day in it.
pub(crate) fn miss_day_end(_: &mut Request, events: &mut Vec<Event>) {
    events.retain(|event| !matches!(event, Event::DayEnded { .. }));
}

/// The end of a business day without the last of its day orders.
pub(crate) fn forget_a_day_order(_: &mut Request, events: &mut Vec<Event>) {
    let ended = events.iter().any(|event| matches!(event, Event::DayEnded { .. }));
    let is_day_order = |event: &Event| matches!(event, Event::Cancelled { cause: CancelCause::DayEnd, .. });
    if let Some(last) = events.iter().rposition(is_day_order).filter(|_| ended) {
        events.remove(last);
    }
}

/// A packet numbered by what its publisher sent in this life.
pub(crate) fn number_anew(packet: &mut [u8], sent: &mut BTreeMap<[u8; 10], u64>) {
    let Ok((header, _)) = Header::mut_from_prefix(packet) else { return };
    let sent = sent.entry(header.session).or_default();
    header.sequence = (*sent + 1).into();
    let count = header.count.get();
    *sent += if count == END_OF_SESSION { 0 } else { u64::from(count) };
}

/// An answer whose messages have the number of the next one each.
pub(crate) fn answer_with_neighbour(packet: &mut [u8]) {
    let Ok((header, _)) = Header::mut_from_prefix(packet) else { return };
    header.sequence = (header.sequence.get() + 1).into();
}

/// A replayer's bytes in which snapshots say that they hold one message more.
pub(crate) fn skip_after_snapshot(bytes: &mut [u8]) {
    // The end of a snapshot: its length, a sequenced message, `G`, and the number in 20 digits.
    const END: [u8; 4] = [0, 22, b'S', b'G'];
    let Some(at) = bytes.windows(END.len() + 20).position(|window| window.starts_with(&END)) else { return };
    let digits = &mut bytes[at + END.len()..at + END.len() + 20];
    let next = std::str::from_utf8(digits).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(next) = next {
        digits.copy_from_slice(format!("{:>20}", next + 1).as_bytes());
    }
}

/// What a publisher logged with its last message changed, and the checksum over all messages as it was.
pub(crate) fn change_message(payload: &mut [u8]) -> bool {
    let is_order = matches!(Logged::read(payload), Ok(Logged::Published(published))
        if published.messages().last().is_some_and(|message| message.first() == Some(&b'A')));
    // The last digit of its price.
    if is_order && let Some(last) = payload.last_mut() {
        *last ^= 4;
    }
    is_order
}

/// One request of a gateway, read wrongly.
pub(crate) fn misread(request: &Request) -> Request {
    let mut read = *request;
    if let Command::Enter(order) = &mut read.command
        && (200..232).contains(&read.id.sequence())
    {
        order.quantity = Quantity(order.quantity.0 + 1);
    }
    read
}

/// Frames of a client whose orders have other names.
pub(crate) fn rename_orders(frames: &[u8]) -> Vec<u8> {
    let (mut rest, mut out) = (frames, Vec::new());
    while let Ok(Some((kind, body, behind))) = frame::split(rest) {
        match frame::decode_client(kind, body) {
            Ok(ClientFrame::Request(ClientRequest::Enter { client_order_id, instrument, order })) => {
                let client_order_id = ClientOrderId(client_order_id.0 + (1 << 32));
                frame::write_request(&mut out, &ClientRequest::Enter { client_order_id, instrument, order });
            }
            _ => out.extend_from_slice(&rest[..rest.len() - behind.len()]),
        }
        rest = behind;
    }
    out
}
/// A state in an orders log, with what is ordered of no gateway.
pub(crate) fn forget_sequences(record: &mut Vec<u8>) {
    // Behind number, version and whose it is.
    let (head, state) = record.split_at(3);
    let (beginning, ordered) = take_state(state).expect("an orderer writes states that can be read");
    let mut bytes = vec![1, 0];
    bytes.extend((ordered.shards().count() as u16).to_le_bytes());
    for shard in ordered.shards() {
        bytes.extend(shard.0.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(ordered.next(shard).expect("one of its shards").0.to_le_bytes());
    }
    let mut changed = head.to_vec();
    put_state(&mut changed, &beginning, &Ordered::from_bytes(&bytes).expect("of no gateway"));
    *record = changed;
}
