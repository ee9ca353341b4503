//! Raft's messages as bytes.
//!
//! raft-rs comes with protobuf for its messages, of a version whose reader recurses as deep as the sender likes
//! (RUSTSEC-2024-0437). A member's messages are few and flat, so they are laid out here, and what members never send to each
//! other (proposals, reads) has no form at all.
//!
//! ```text
//!   0        1      2        3   4         6   8          12         16
//!   +--------+------+--------+---+---------+---+----------+----------+------------------ - - -
//!   | format | kind | reject | 0 | context | 0 | entries  | 0        | nine numbers (u64): from, to, ...
//!   +--------+------+--------+---+---------+---+----------+----------+------------------ - - -
//!   then context bytes; then per entry: term u64, length u32, kind u32 (0 payload, 1 change of the members), payload; then, where the
//!   delegate says that what the receiver lacks is gone: the place u64 and term u64 where its log begins. Entries are numbered on from `index`.
//!   Little endian.
//! ```

use raft::eraftpb::{Entry, Message, MessageType, Snapshot};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::MessageError;
use crate::members::{Change, MemberId};
use crate::recover::{change_entry, entry};
use crate::store::change_in;

const FORMAT: u8 = 2;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    format: u8,
    kind: u8,
    reject: u8,
    reserved: [u8; 1],
    context_bytes: U16,
    reserved_too: U16,
    entries: U32,
    reserved_last: U32,
    from: U64,
    to: U64,
    term: U64,
    log_term: U64,
    index: U64,
    commit: U64,
    commit_term: U64,
    request_snapshot: U64,
    reject_hint: U64,
}

const _: () = assert!(size_of::<Head>() == 88);

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EntryHead {
    term: U64,
    payload_bytes: U32,
    kind: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SnapshotHead {
    index: U64,
    term: U64,
}

/// What members send each other, by the byte that names it.
const KINDS: [(u8, MessageType); 11] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgSnapshot),
    (6, MessageType::MsgHeartbeat),
    (7, MessageType::MsgHeartbeatResponse),
    (8, MessageType::MsgTimeoutNow),
    (9, MessageType::MsgRequestPreVote),
    (10, MessageType::MsgRequestPreVoteResponse),
    // Ignored by a build that does not know it.
    (11, MessageType::MsgTransferLeader),
];

/// The bytes of `message`, and for whom they are.
///
/// # Panics
/// If it is of a kind that members do not send: the replica neither forwards proposals nor asks for reads.
pub(crate) fn encode(message: &Message) -> (u8, Vec<u8>) {
    let to = MemberId::of_raft(message.to).expect("to a member").number;
    let payloads: usize = message.entries.iter().map(|entry| entry.data.len() + size_of::<EntryHead>()).sum();
    let len = size_of::<Head>() + message.context.len() + payloads + size_of::<SnapshotHead>();
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(head_of(message).as_bytes());
    bytes.extend_from_slice(&message.context);
    message.entries.iter().for_each(|entry| encode_entry(entry, &mut bytes));
    if message.msg_type == MessageType::MsgSnapshot {
        let place = message.get_snapshot().get_metadata();
        let head = SnapshotHead { index: place.index.into(), term: place.term.into() };
        bytes.extend_from_slice(head.as_bytes());
    }
    (to, bytes)
}

fn head_of(message: &Message) -> Head {
    let kind = KINDS.iter().find(|(_, kind)| *kind == message.msg_type).expect("members send only these").0;
    Head {
        format: FORMAT,
        kind,
        reject: message.reject.into(),
        reserved: [0],
        context_bytes: U16::new(message.context.len().try_into().expect("Raft's own, some bytes")),
        reserved_too: U16::new(0),
        entries: U32::new(message.entries.len() as u32),
        reserved_last: U32::new(0),
        from: message.from.into(),
        to: message.to.into(),
        term: message.term.into(),
        log_term: message.log_term.into(),
        index: message.index.into(),
        commit: message.commit.into(),
        commit_term: message.commit_term.into(),
        request_snapshot: message.request_snapshot.into(),
        reject_hint: message.reject_hint.into(),
    }
}

fn encode_entry(entry: &Entry, bytes: &mut Vec<u8>) {
    let change = change_in(entry).map(Change::to_bytes);
    let payload = change.as_ref().map_or(&entry.data[..], |change| change);
    let payload_bytes = U32::new(payload.len().try_into().expect("a record of the journal, 1 MiB at most"));
    let kind = U32::new(change.is_some().into());
    bytes.extend_from_slice(EntryHead { term: entry.term.into(), payload_bytes, kind }.as_bytes());
    bytes.extend_from_slice(payload);
}

fn malformed(what: &'static str) -> MessageError {
    MessageError::Malformed { what }
}

/// The message in `bytes`, which came from the member of number `from` and must be for `to`: for that life of its disk and no other.
pub(crate) fn decode(from: u8, to: MemberId, bytes: &[u8]) -> Result<Message, MessageError> {
    let (head, rest) = Head::ref_from_prefix(bytes).map_err(|_| malformed("it is shorter than a header"))?;
    if head.format != FORMAT {
        return Err(malformed("its format version differs"));
    }
    must_be_between(from, to, head)?;
    let mut message = message_of(head)?;
    let (context, mut rest) = rest
        .split_at_checked(head.context_bytes.get().into())
        .ok_or(malformed("its context is cut short"))?;
    message.context = context.to_vec().into();
    message.entries = decode_entries(message.index, head.entries.get(), &mut rest)?.into();
    if message.msg_type == MessageType::MsgSnapshot {
        let (place, behind) =
            SnapshotHead::ref_from_prefix(rest).map_err(|_| malformed("a log without a beginning"))?;
        message.set_snapshot(beginning_at(place.index.get(), place.term.get()));
        rest = behind;
    }
    match rest {
        [] => Ok(message),
        _ => Err(malformed("it is longer than it says")),
    }
}

/// Whether a message is of the member of number `from`, and for that life of `to`.
fn must_be_between(from: u8, to: MemberId, head: &Head) -> Result<(), MessageError> {
    let sender =
        MemberId::of_raft(head.from.get()).filter(|id| id.number == from && *id != to && id.number <= 8);
    if sender.is_some() && head.to.get() == to.raft_id() {
        return Ok(());
    }
    let number = |id: U64| (id.get() as u8).wrapping_sub(1);
    Err(MessageError::Misdirected { from: number(head.from), to: number(head.to) })
}

/// What a head says of its message.
fn message_of(head: &Head) -> Result<Message, MessageError> {
    let kind = KINDS.iter().find(|(byte, _)| *byte == head.kind).ok_or(malformed("its kind is unknown"))?.1;
    let message = Message {
        msg_type: kind,
        from: head.from.get(),
        to: head.to.get(),
        reject: head.reject != 0,
        term: head.term.get(),
        log_term: head.log_term.get(),
        index: head.index.get(),
        commit: head.commit.get(),
        commit_term: head.commit_term.get(),
        request_snapshot: head.request_snapshot.get(),
        reject_hint: head.reject_hint.get(),
        ..Message::default()
    };
    match message.term {
        0 => Err(malformed("its term is 0")),
        _ => Ok(message),
    }
}

/// So many entries behind the one at `index`.
fn decode_entries(index: u64, count: u32, rest: &mut &[u8]) -> Result<Vec<Entry>, MessageError> {
    let mut entries = Vec::new();
    for at in 1..=u64::from(count) {
        let index = index.checked_add(at).ok_or(malformed("an index beyond 2^64"))?;
        entries.push(decode_entry(index, rest).ok_or(malformed("an entry is cut short"))?);
    }
    Ok(entries)
}

fn decode_entry(index: u64, rest: &mut &[u8]) -> Option<Entry> {
    let (head, behind) = EntryHead::ref_from_prefix(rest).ok()?;
    let (payload, behind) = behind.split_at_checked(head.payload_bytes.get() as usize)?;
    *rest = behind;
    match head.kind.get() {
        0 => Some(entry(head.term.get(), index, payload)),
        1 => Some(change_entry(head.term.get(), index, Change::from_bytes(payload)?)),
        _ => None,
    }
}

/// The place where a delegate's log begins, in Raft's form: a snapshot without a state.
fn beginning_at(index: u64, term: u64) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let metadata = snapshot.mut_metadata();
    (metadata.index, metadata.term) = (index, term);
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::Incarnation;

    fn id(number: u8, incarnation: u64) -> MemberId {
        MemberId { number, incarnation: Incarnation(incarnation) }
    }

    fn message(kind: MessageType) -> Message {
        let mut message = Message {
            msg_type: kind,
            from: id(1, 3).raft_id(),
            to: id(2, 0).raft_id(),
            reject: true,
            term: 10,
            log_term: 9,
            index: 100,
            commit: 99,
            commit_term: 8,
            request_snapshot: 7,
            reject_hint: 6,
            context: b"transfer".to_vec().into(),
            ..Message::default()
        };
        if kind == MessageType::MsgAppend {
            message.set_entries(
                vec![entry(9, 101, b"first"), change_entry(10, 102, Change::Vote(id(1, 3)))].into(),
            );
        }
        if kind == MessageType::MsgSnapshot {
            message.set_snapshot(beginning_at(90, 8));
        }
        message
    }

    #[test]
    fn every_kind_comes_back_as_it_was() {
        for (_, kind) in KINDS {
            let sent = message(kind);
            let (to, bytes) = encode(&sent);
            assert_eq!(to, 2);
            assert_eq!(decode(1, id(2, 0), &bytes), Ok(sent));
        }
    }

    #[test]
    fn the_bytes_of_a_message_are_frozen() {
        let (_, bytes) = encode(&message(MessageType::MsgAppend));
        let numbers: [u64; 9] = [3 << 8 | 2, 3, 10, 9, 100, 99, 8, 7, 6];
        let numbers: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let expected = [
            &[2, 1, 1, 0, 8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0][..],
            &numbers,
            b"transfer",
            &[9, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
            b"first",
            &[10, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0],
            &[1, 2, 3, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn what_was_meant_for_another_life_of_the_disk_is_refused() {
        let (_, bytes) = encode(&message(MessageType::MsgAppend));
        for (from, to) in [(1, id(2, 1)), (1, id(1, 0)), (0, id(2, 0))] {
            assert!(
                matches!(decode(from, to, &bytes), Err(MessageError::Misdirected { .. })),
                "{from} {to:?}"
            );
        }
    }
}
