//! Raft's messages as bytes.
//!
//! raft-rs comes with protobuf for its messages, of a version whose reader recurses as deep as the sender likes
//! (RUSTSEC-2024-0437). A member's messages are few and flat, so they are laid out here, and what members never send to each
//! other (proposals, changes of membership, reads) has no form at all.
//!
//! ```text
//!   0        1      2      3    4        5          6         8          12
//!   +--------+------+------+----+--------+----------+---------+----------+------------------ - - -
//!   | format | kind | from | to | reject | 0        | context | entries  | seven numbers (u64)
//!   +--------+------+------+----+--------+----------+---------+----------+------------------ - - -
//!   then context bytes; then per entry: term u64, length u32, payload; then, of a snapshot: index u64, term u64, and its bytes to
//!   the end. Entries are numbered on from `index`. Little endian.
//! ```

use raft::eraftpb::{ConfState, Entry, EntryType, Message, MessageType, Snapshot};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::MessageError;
use crate::recover::entry;
use crate::store::{member, raft_id};

const FORMAT: u8 = 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    format: u8,
    kind: u8,
    from: u8,
    to: u8,
    reject: u8,
    reserved: u8,
    context_bytes: U16,
    entries: U32,
    term: U64,
    log_term: U64,
    index: U64,
    commit: U64,
    commit_term: U64,
    request_snapshot: U64,
    reject_hint: U64,
}

const _: () = assert!(size_of::<Head>() == 68);

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EntryHead {
    term: U64,
    payload_bytes: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SnapshotHead {
    index: U64,
    term: U64,
}

/// What members send each other, by the byte that names it.
const KINDS: [(u8, MessageType); 10] = [
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
];

/// The bytes of `message`, and for whom they are.
///
/// # Panics
/// If it is of a kind that members do not send: the replica neither forwards proposals nor asks for reads.
pub(crate) fn encode(message: &Message) -> (u8, Vec<u8>) {
    let kind = KINDS.iter().find(|(_, kind)| *kind == message.msg_type).expect("members send only these").0;
    let (from, to) = (member(message.from), member(message.to));
    let (from, to) = (from.expect("we are a member"), to.expect("to a member"));
    let head = Head {
        format: FORMAT,
        kind,
        from,
        to,
        reject: message.reject.into(),
        reserved: 0,
        context_bytes: U16::new(message.context.len().try_into().expect("Raft's own, some bytes")),
        entries: U32::new(message.entries.len() as u32),
        term: message.term.into(),
        log_term: message.log_term.into(),
        index: message.index.into(),
        commit: message.commit.into(),
        commit_term: message.commit_term.into(),
        request_snapshot: message.request_snapshot.into(),
        reject_hint: message.reject_hint.into(),
    };
    let payloads: usize = message.entries.iter().map(|entry| entry.data.len() + size_of::<EntryHead>()).sum();
    let state = message.get_snapshot();
    let len = size_of::<Head>() + message.context.len() + payloads + state.data.len() + 16;
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(&message.context);
    message.entries.iter().for_each(|entry| encode_entry(entry, &mut bytes));
    if message.msg_type == MessageType::MsgSnapshot {
        let (index, term) = (state.get_metadata().index, state.get_metadata().term);
        bytes.extend_from_slice(SnapshotHead { index: index.into(), term: term.into() }.as_bytes());
        bytes.extend_from_slice(&state.data);
    }
    (to, bytes)
}

fn encode_entry(entry: &Entry, bytes: &mut Vec<u8>) {
    assert_eq!(entry.entry_type, EntryType::EntryNormal, "membership never changes");
    let payload_bytes =
        U32::new(entry.data.len().try_into().expect("a record of the journal, 1 MiB at most"));
    bytes.extend_from_slice(EntryHead { term: entry.term.into(), payload_bytes }.as_bytes());
    bytes.extend_from_slice(&entry.data);
}

/// The message in `bytes`, which came from `from` for `to` in a cluster of these voters.
pub(crate) fn decode(from: u8, to: u8, voters: &ConfState, bytes: &[u8]) -> Result<Message, MessageError> {
    let malformed = |what| MessageError::Malformed { what };
    let (head, rest) = Head::ref_from_prefix(bytes).map_err(|_| malformed("it is shorter than a head"))?;
    if head.format != FORMAT {
        return Err(malformed("its format is another version's"));
    }
    if (head.from, head.to) != (from, to) || !voters.voters.contains(&raft_id(from)) || from == to {
        return Err(MessageError::Misdirected { from: head.from, to: head.to });
    }
    let kind = KINDS.iter().find(|(byte, _)| *byte == head.kind).ok_or(malformed("its kind is unknown"))?.1;
    let mut message = Message {
        msg_type: kind,
        from: raft_id(from),
        to: raft_id(to),
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
    if message.term == 0 {
        return Err(malformed("its term is 0"));
    }
    let (context, mut rest) = rest
        .split_at_checked(head.context_bytes.get().into())
        .ok_or(malformed("its context is cut short"))?;
    message.context = context.to_vec().into();
    let mut entries = Vec::new();
    for at in 1..=u64::from(head.entries.get()) {
        let index = message.index.checked_add(at).ok_or(malformed("an index beyond 2^64"))?;
        entries.push(decode_entry(index, &mut rest).ok_or(malformed("an entry is cut short"))?);
    }
    message.entries = entries.into();
    if kind == MessageType::MsgSnapshot {
        let snapshot = decode_snapshot(voters, rest).ok_or(malformed("a snapshot without a place"))?;
        message.set_snapshot(snapshot);
    } else if !rest.is_empty() {
        return Err(malformed("it is longer than it says"));
    }
    Ok(message)
}

fn decode_entry(index: u64, rest: &mut &[u8]) -> Option<Entry> {
    let (head, behind) = EntryHead::ref_from_prefix(rest).ok()?;
    let (payload, behind) = behind.split_at_checked(head.payload_bytes.get() as usize)?;
    *rest = behind;
    Some(entry(head.term.get(), index, payload))
}

fn decode_snapshot(voters: &ConfState, rest: &[u8]) -> Option<Snapshot> {
    let (head, state) = SnapshotHead::ref_from_prefix(rest).ok()?;
    (head.index.get() > 0).then(|| snapshot(head.index.get(), head.term.get(), voters, state))
}

/// The state at place `index`, which is of `term`, as Raft has it.
pub(crate) fn snapshot(index: u64, term: u64, voters: &ConfState, state: &[u8]) -> Snapshot {
    let mut snapshot = Snapshot { data: state.to_vec().into(), ..Snapshot::default() };
    let metadata = snapshot.mut_metadata();
    (metadata.index, metadata.term) = (index, term);
    metadata.set_conf_state(voters.clone());
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voters() -> ConfState {
        ConfState { voters: vec![1, 2, 3], ..ConfState::default() }
    }

    fn message(kind: MessageType) -> Message {
        let mut message = Message {
            msg_type: kind,
            from: raft_id(1),
            to: raft_id(2),
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
            message.set_entries(vec![entry(9, 101, b"first"), entry(10, 102, b"")].into());
        }
        if kind == MessageType::MsgSnapshot {
            message.set_snapshot(snapshot(90, 8, &voters(), b"the state"));
        }
        message
    }

    #[test]
    fn every_kind_comes_back_as_it_was() {
        for (_, kind) in KINDS {
            let sent = message(kind);
            let (to, bytes) = encode(&sent);
            assert_eq!(to, 2);
            assert_eq!(decode(1, 2, &voters(), &bytes), Ok(sent));
        }
    }

    #[test]
    fn the_bytes_of_a_message_are_frozen() {
        let (_, bytes) = encode(&message(MessageType::MsgAppend));
        let numbers: Vec<u8> = [10u64, 9, 100, 99, 8, 7, 6].iter().flat_map(|n| n.to_le_bytes()).collect();
        let expected = [
            &[1, 1, 1, 2, 1, 0, 8, 0, 2, 0, 0, 0][..],
            &numbers,
            b"transfer",
            &[9, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0],
            b"first",
            &[10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
    }
}
