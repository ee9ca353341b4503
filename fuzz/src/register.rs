//! The register as words: who participates, in a checkpoint.

use std::iter::successors;

use pares_register::Register;
use pares_types::{Entry, InstrumentId, Key, Limits, MemberId, Proposal, Registration, Rights, Timestamp};

/// Reads a register of words of eight bytes; one that is taken is written as those words.
pub fn words(bytes: &[u8]) {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut rest = words.iter().copied();
    let Some(register) = Register::read(&mut || rest.next()) else { return };
    let mut again = Vec::new();
    register.write(&mut |word| again.push(word));
    assert_eq!(again, words[..again.len()], "as read");
    let mut once_more = again.iter().copied();
    assert_eq!(Register::read(&mut || once_more.next()), Some(register));
}

/// A new one, and what it is after each change of a list in which every kind of entry stands.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut register = Register::new(Some(Key::Shared([1; 32])));
    let others = [
        (8, 0, Entry::AddMember),
        (8, 1, Entry::SetKey(Key::Shared([3; 32]))),
        (0, 2, Entry::SetKey(Key::Shared([4; 32]))),
    ];
    let each = successors(Some((7, 0, Entry::AddMember)), |(_, _, entry)| next(entry));
    let mut seeds = vec![written(&register)];
    for (member, session, entry) in others.into_iter().chain(each) {
        let change = Registration { member: MemberId(member), session, entry };
        register.apply(Timestamp(5), &change).expect("it may be");
        seeds.push(written(&register));
    }
    seeds
}

fn written(register: &Register) -> Vec<u8> {
    let mut bytes = Vec::new();
    register.write(&mut |word: u64| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

/// What is entered behind that, by whom: each kind leads to another, so a new one has to be put among them.
fn next(entry: &Entry) -> Option<(u32, u16, Entry)> {
    let limits =
        Limits { quantity_max: 1, value_max: 2, collar: 3, orders_max: 4, rate_max: 5, burst_max: 6 };
    let proposal = Proposal { instrument: InstrumentId(0), kind: 1, operand: 1, detail: 0 };
    Some(match entry {
        Entry::AddMember => (7, 1, Entry::SetKey(Key::Ed25519([2; 32]))),
        Entry::SetKey(_) => (7, 1, Entry::SetRights(Rights::ENTER)),
        Entry::SetRights(_) => (7, 1, Entry::SetLimits(limits)),
        Entry::SetLimits(_) => (7, 0, Entry::SetPositionMax(900)),
        Entry::SetPositionMax(_) => (7, 1, Entry::ListInstrument(InstrumentId(2))),
        Entry::ListInstrument(_) => (8, 1, Entry::SetCopied(MemberId(7))),
        Entry::SetCopied(_) => (0, 0, Entry::SetFourEyes(true)),
        Entry::SetFourEyes(_) => (0, 1, Entry::Propose(proposal)),
        Entry::Propose(_) => (7, 1, Entry::UnlistInstrument(InstrumentId(2))),
        Entry::UnlistInstrument(_) => (7, 1, Entry::RevokeKey),
        Entry::RevokeKey => (7, 0, Entry::RemoveMember),
        Entry::RemoveMember => return None,
    })
}
