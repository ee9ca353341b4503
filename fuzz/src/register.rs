//! The register as words: who takes part, in a checkpoint.

use pares_register::Register;
use pares_types::{Entry, InstrumentId, Key, MemberId, Proposal, Registration, Rights, Timestamp};

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

/// A new one, and one with an entry of each kind.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut register = Register::new(Some(Key::Shared([1; 32])));
    let bytes = |register: &Register| {
        let mut bytes = Vec::new();
        register.write(&mut |word: u64| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
    };
    let fresh = bytes(&register);
    let proposal = Proposal { instrument: InstrumentId(0), kind: 1, operand: 1, detail: 0 };
    let entries = [
        (7, 0, Entry::AddMember),
        (7, 1, Entry::SetKey(Key::Ed25519([2; 32]))),
        (7, 2, Entry::SetKey(Key::Shared([3; 32]))),
        (7, 2, Entry::SetRights(Rights::ENTER)),
        (7, 1, Entry::ListInstrument(InstrumentId(2))),
        (7, 0, Entry::SetPositionMax(900)),
        (0, 2, Entry::SetKey(Key::Shared([4; 32]))),
        (0, 1, Entry::Propose(proposal)),
    ];
    for (member, session, entry) in entries {
        let change = Registration { member: MemberId(member), session, entry };
        register.apply(Timestamp(5), &change).expect("it may be");
    }
    vec![fresh, bytes(&register)]
}
