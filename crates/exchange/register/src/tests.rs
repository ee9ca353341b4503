//! Entries one by one, and any of them in any order.

use pares_types::{
    Command, Entry, InstrumentId, Key, Limits, MemberId, Proposal, Reason, Registration, Rights, Timestamp,
};
use proptest::prelude::*;

use crate::{ENTRIES_MAX, EXCHANGE, PROPOSAL_NS, Permit, Register};

const NOW: Timestamp = Timestamp(1_000_000_000_000);

fn key(number: u8) -> Key {
    Key::Ed25519([number; 32])
}

fn register() -> Register {
    Register::new(Some(key(1)))
}

fn apply(register: &mut Register, member: u32, session: u16, entry: Entry) -> Result<(), Reason> {
    register.apply(NOW, &Registration { member: MemberId(member), session, entry })
}

#[test]
fn what_was_proposed_is_done_once() {
    let mut register = register();
    apply(&mut register, 7, 0, Entry::AddMember).unwrap();
    apply(&mut register, 0, 2, Entry::SetKey(key(2))).unwrap();
    let proposal = |member| Proposal { instrument: InstrumentId(0), kind: 7, operand: member, detail: 0 };
    for member in [7, 8] {
        apply(&mut register, 0, 1, Entry::Propose(proposal(member))).unwrap();
    }
    assert!(register.is_seconded(2, proposal(7), NOW));
    apply(&mut register, 7, 0, Entry::RemoveMember).unwrap();
    assert!(!register.is_seconded(2, proposal(7), NOW) && register.is_seconded(2, proposal(8), NOW));
}

#[test]
fn what_an_operator_proposed_goes_with_its_key_and_its_rights() {
    let proposal = Proposal { instrument: InstrumentId(0), kind: 7, operand: 7, detail: 0 };
    let mut register = register();
    let late = apply(&mut register, 0, 2, Entry::Propose(proposal));
    assert_eq!(late, Err(Reason::UnknownSession), "carried out late, behind its revocation");
    apply(&mut register, 0, 2, Entry::SetKey(key(2))).unwrap();
    apply(&mut register, 0, 2, Entry::Propose(proposal)).unwrap();
    assert!(register.is_seconded(1, proposal, NOW));
    apply(&mut register, 0, 2, Entry::SetRights(Rights::REGISTER)).unwrap();
    assert!(!register.is_seconded(1, proposal, NOW), "it might not propose it now");
    apply(&mut register, 0, 2, Entry::SetRights(Rights::ALL)).unwrap();
    apply(&mut register, 0, 2, Entry::SetKey(key(3))).unwrap();
    assert!(!register.is_seconded(1, proposal, NOW), "somebody else has the session");
}

#[test]
fn what_was_proposed_of_an_operator_goes_as_it_is_revoked() {
    let mut register = register();
    apply(&mut register, 0, 2, Entry::SetKey(key(2))).unwrap();
    apply(&mut register, 0, 3, Entry::SetKey(key(3))).unwrap();
    let [own, other] = [2, 3].map(|session| {
        let change = Registration { member: EXCHANGE, session, entry: Entry::SetKey(key(9)) };
        Proposal::of(InstrumentId(0), &Command::Register(change)).unwrap()
    });
    for proposal in [own, other] {
        apply(&mut register, 0, 1, Entry::Propose(proposal)).unwrap();
    }
    apply(&mut register, 0, 2, Entry::SetKey(key(8))).unwrap();
    assert!(register.is_seconded(3, own, NOW), "its rights may be proposed beside its key");
    apply(&mut register, 0, 2, Entry::RevokeKey).unwrap();
    assert!(!register.is_seconded(3, own, NOW), "a key of it was under way");
    assert!(register.is_seconded(3, other, NOW));
}

#[test]
fn member_added_keyed_and_removed_with_sessions() {
    let mut register = register();
    assert_eq!(apply(&mut register, 7, 1, Entry::SetKey(key(7))), Err(Reason::UnknownMember));
    assert_eq!(apply(&mut register, 7, 0, Entry::AddMember), Ok(()));
    assert_eq!(apply(&mut register, 7, 0, Entry::AddMember), Err(Reason::MemberExists));
    assert_eq!(apply(&mut register, 7, 1, Entry::SetKey(key(7))), Ok(()));
    assert_eq!(apply(&mut register, 7, 1, Entry::SetKey(key(7))), Err(Reason::NothingChanged));
    assert_eq!(register.key(MemberId(7), 1), Some(key(7)));
    assert_eq!(register.permit(MemberId(7), 1).unwrap().rights, Rights::TRADING);
    assert_eq!(apply(&mut register, 7, 2, Entry::RevokeKey), Err(Reason::UnknownSession));
    assert_eq!(apply(&mut register, 7, 0, Entry::RemoveMember), Ok(()));
    assert_eq!((register.key(MemberId(7), 1), register.permit(MemberId(7), 1)), (None, None));
    assert_eq!(register, self::register());
}

#[test]
fn what_counts_is_what_member_and_session_both_allow() {
    let mut register = register();
    let limits =
        |quantity_max, value_max| Entry::SetLimits(Limits { quantity_max, value_max, ..Limits::NONE });
    apply(&mut register, 7, 0, Entry::AddMember).unwrap();
    apply(&mut register, 7, 1, Entry::SetKey(key(7))).unwrap();
    apply(&mut register, 7, 0, Entry::SetRights(Rights::ENTER)).unwrap();
    apply(&mut register, 7, 0, limits(100, 0)).unwrap();
    apply(&mut register, 7, 1, limits(200, 50)).unwrap();
    apply(&mut register, 7, 0, Entry::SetPositionMax(9)).unwrap();
    apply(&mut register, 7, 1, Entry::SetPositionMax(30)).unwrap();
    let limits = Limits { quantity_max: 100, value_max: 50, ..Limits::NONE };
    assert_eq!(
        register.permit(MemberId(7), 1),
        Some(Permit { limits, position_max: 9, ..Permit::of(Rights::ENTER) })
    );
}

#[test]
fn restricted_member_and_session_trade_common_list() {
    let mut register = register();
    let may = |register: &Register| [1, 2, 3].map(|id| register.may_trade(MemberId(7), 1, InstrumentId(id)));
    apply(&mut register, 7, 0, Entry::AddMember).unwrap();
    apply(&mut register, 7, 1, Entry::SetKey(key(7))).unwrap();
    assert_eq!(may(&register), [true; 3], "a new session trades everything");
    let listed = Rights::BUY.or(Rights::SELL);
    apply(&mut register, 7, 1, Entry::SetRights(listed)).unwrap();
    assert_eq!(may(&register), [false; 3]);
    for id in [1, 2] {
        apply(&mut register, 7, 1, Entry::ListInstrument(InstrumentId(id))).unwrap();
    }
    assert_eq!(may(&register), [true, true, false]);
    apply(&mut register, 7, 0, Entry::SetRights(listed)).unwrap();
    assert_eq!(may(&register), [false; 3], "the member has no list yet");
    for id in [2, 3] {
        apply(&mut register, 7, 0, Entry::ListInstrument(InstrumentId(id))).unwrap();
    }
    assert_eq!(may(&register), [false, true, false]);
    assert!(!register.may_trade(MemberId(7), 2, InstrumentId(2)), "there is no such session");
    assert_eq!(register.listed(MemberId(7), 1).collect::<Vec<_>>(), [InstrumentId(1), InstrumentId(2)]);
    apply(&mut register, 7, 1, Entry::UnlistInstrument(InstrumentId(2))).unwrap();
    assert_eq!(may(&register), [false; 3]);
}

#[test]
fn a_list_goes_with_who_has_it_and_takes_room() {
    let mut register = register();
    let listed = |id| Entry::ListInstrument(InstrumentId(id));
    apply(&mut register, 7, 0, Entry::AddMember).unwrap();
    assert_eq!(apply(&mut register, 7, 1, listed(1)), Err(Reason::UnknownSession));
    assert_eq!(apply(&mut register, 8, 0, listed(1)), Err(Reason::UnknownMember));
    assert_eq!(apply(&mut register, 7, 0, listed(0)), Err(Reason::MalformedRequest));
    apply(&mut register, 7, 1, Entry::SetKey(key(7))).unwrap();
    apply(&mut register, 7, 1, listed(1)).unwrap();
    assert_eq!(apply(&mut register, 7, 1, listed(1)), Err(Reason::NothingChanged));
    let absent = Entry::UnlistInstrument(InstrumentId(2));
    assert_eq!(apply(&mut register, 7, 1, absent), Err(Reason::NothingChanged));
    apply(&mut register, 7, 1, Entry::RevokeKey).unwrap();
    apply(&mut register, 7, 1, Entry::SetKey(key(7))).unwrap();
    assert_eq!(register.listed(MemberId(7), 1).count(), 0, "a new session begins with none");
    // The exchange, its operator, the member and its session are there.
    for id in 1..=ENTRIES_MAX as u32 - 4 {
        apply(&mut register, 7, u16::from(id % 2 == 0), listed(id)).unwrap();
    }
    assert_eq!(apply(&mut register, 7, 0, listed(9_999)), Err(Reason::RegisterFull));
    apply(&mut register, 7, 0, Entry::RemoveMember).unwrap();
    assert_eq!(register, self::register());
}

#[test]
fn somebody_can_always_change_the_register() {
    let mut register = register();
    for (session, entry) in [
        (1, Entry::RevokeKey),
        (1, Entry::SetRights(Rights::CONTROL)),
        (0, Entry::SetRights(Rights::NONE)),
        (0, Entry::RemoveMember),
    ] {
        assert_eq!(apply(&mut register, 0, session, entry), Err(Reason::LastOperator), "{entry:?}");
    }
    assert_eq!(register, self::register());
    apply(&mut register, 0, 2, Entry::SetKey(key(2))).unwrap();
    apply(&mut register, 0, 1, Entry::RevokeKey).unwrap();
}

#[test]
fn a_system_without_an_operator_takes_one() {
    let mut register = Register::new(None);
    assert_eq!(apply(&mut register, 0, 1, Entry::SetKey(key(1))), Ok(()));
    assert_eq!(register, self::register());
}

#[test]
fn with_four_eyes_two_operators_stay() {
    let mut register = register();
    assert_eq!(apply(&mut register, 0, 0, Entry::SetFourEyes(true)), Err(Reason::LastOperator));
    apply(&mut register, 0, 2, Entry::SetKey(key(2))).unwrap();
    apply(&mut register, 0, 0, Entry::SetFourEyes(true)).unwrap();
    for (session, entry) in [
        (2, Entry::RevokeKey),
        (2, Entry::SetRights(Rights::REGISTER)),
        (1, Entry::SetRights(Rights::CONTROL)),
        (0, Entry::SetRights(Rights::REGISTER)),
    ] {
        assert_eq!(apply(&mut register, 0, session, entry), Err(Reason::LastOperator), "{entry:?}");
    }
    apply(&mut register, 0, 0, Entry::SetFourEyes(false)).unwrap();
    assert_eq!(apply(&mut register, 0, 2, Entry::RevokeKey), Ok(()));
}

#[test]
fn proposal_needs_other_operator_within_ten_minutes() {
    let mut register = register();
    let halt = Proposal { instrument: InstrumentId(3), kind: 1, operand: 7, detail: 0 };
    apply(&mut register, 0, 2, Entry::SetKey(key(2))).unwrap();
    apply(&mut register, 0, 2, Entry::Propose(halt)).unwrap();
    let late = Timestamp(NOW.0 + PROPOSAL_NS);
    assert!(register.is_seconded(1, halt, NOW) && register.is_seconded(1, halt, late));
    assert!(!register.is_seconded(2, halt, NOW), "the proposer is no second operator");
    assert!(!register.is_seconded(1, Proposal { operand: 1, ..halt }, NOW));
    assert!(!register.is_seconded(1, halt, Timestamp(late.0 + 1)));
    apply(&mut register, 0, 2, Entry::RevokeKey).unwrap();
    assert!(!register.is_seconded(1, halt, NOW), "whose key is revoked proposes nothing");
}

#[test]
fn what_others_propose_is_not_pushed_out() {
    let mut register = register();
    let halt = |instrument| Proposal { instrument: InstrumentId(instrument), kind: 1, operand: 7, detail: 0 };
    apply(&mut register, 0, 2, Entry::SetKey(key(2))).unwrap();
    apply(&mut register, 0, 2, Entry::Propose(halt(1_000))).unwrap();
    for instrument in 1..=100 {
        apply(&mut register, 0, 1, Entry::Propose(halt(instrument))).unwrap();
    }
    assert!(register.is_seconded(1, halt(1_000), NOW));
    assert!(register.is_seconded(2, halt(100), NOW) && !register.is_seconded(2, halt(1), NOW));
    assert_eq!(register.proposals().len(), 1 + Proposal::OF_ONE_MAX);
}

#[test]
fn an_entry_where_it_cannot_be_is_refused() {
    let mut register = register();
    for (member, session, entry) in [
        (7, 1, Entry::AddMember),
        (0, 0, Entry::SetKey(key(2))),
        (0, 0x8000, Entry::SetKey(key(2))),
        (0, 1, Entry::SetFourEyes(true)),
        (0, 0, Entry::Propose(Proposal { instrument: InstrumentId(1), kind: 2, operand: 0, detail: 9 })),
        (7, 0, Entry::SetCopied(MemberId(8))),
        (7, 1, Entry::SetCopied(EXCHANGE)),
        (0, 1, Entry::SetCopied(MemberId(8))),
    ] {
        assert_eq!(apply(&mut register, member, session, entry), Err(Reason::MalformedRequest), "{entry:?}");
    }
}

#[test]
fn a_full_register_takes_no_more_until_something_goes() {
    let mut register = register();
    for member in 1..=ENTRIES_MAX as u32 - 2 {
        apply(&mut register, member, 0, Entry::AddMember).unwrap();
    }
    assert_eq!(apply(&mut register, 9_999, 0, Entry::AddMember), Err(Reason::RegisterFull));
    assert_eq!(apply(&mut register, 5, 1, Entry::SetKey(key(1))), Err(Reason::RegisterFull));
    assert_eq!(apply(&mut register, 0, 1, Entry::SetKey(key(2))), Ok(()), "a new key takes no room");
    apply(&mut register, 6, 0, Entry::RemoveMember).unwrap();
    apply(&mut register, 5, 1, Entry::SetKey(key(1))).unwrap();
}

fn all_sessions(register: &Register) -> Vec<(MemberId, u16)> {
    let of = |(member, _)| register.sessions(member).map(move |(session, ..)| (member, session));
    register.members().flat_map(of).collect()
}

/// Two members with a session each, of which member 7's copies member 9.
fn copying() -> Register {
    let mut register = register();
    for member in [7, 9] {
        apply(&mut register, member, 0, Entry::AddMember).unwrap();
        apply(&mut register, member, 1, Entry::SetKey(key(7))).unwrap();
    }
    apply(&mut register, 7, 1, Entry::ListInstrument(InstrumentId(3))).unwrap();
    apply(&mut register, 7, 1, Entry::SetCopied(MemberId(9))).unwrap();
    register
}

#[test]
fn a_session_is_told_of_another_member_until_its_own_is_named() {
    let mut register = copying();
    let told_of = |register: &Register| register.told_of(MemberId(7), 1);
    assert_eq!((told_of(&register), register.told_of(MemberId(9), 1)), (MemberId(9), MemberId(9)));
    for (session, copied, reason) in
        [(1, 9, Reason::NothingChanged), (1, 8, Reason::UnknownMember), (2, 9, Reason::UnknownSession)]
    {
        assert_eq!(apply(&mut register, 7, session, Entry::SetCopied(MemberId(copied))), Err(reason));
    }
    apply(&mut register, 7, 1, Entry::SetKey(key(8))).unwrap();
    assert_eq!(told_of(&register), MemberId(9), "whatever its key is");
    apply(&mut register, 7, 1, Entry::SetCopied(MemberId(7))).unwrap();
    assert_eq!(told_of(&register), MemberId(7));
}

#[test]
fn a_copy_goes_with_the_member_that_it_copies() {
    let (mut register, mut alone) = (copying(), self::register());
    apply(&mut register, 9, 0, Entry::RemoveMember).unwrap();
    apply(&mut alone, 7, 0, Entry::AddMember).unwrap();
    assert_eq!(register, alone, "with what was listed for it, and its room");
}

#[test]
fn words_that_say_what_no_register_says_of_copies_are_refused() {
    let mut words = Vec::new();
    copying().write(&mut |word| words.push(word));
    let read = |words: &[u64]| {
        let mut words = words.iter().copied();
        Register::read(&mut || words.next())
    };
    let at = words.iter().position(|word| *word == 9 << 16 | 1).expect("the copy");
    assert_eq!(read(&words), Some(copying()));
    for (wrong, what) in [(8 << 16 | 1, "nobody's"), (7 << 16 | 1, "its own"), (1 << 48 | 1, "too high")] {
        words[at] = wrong;
        assert_eq!(read(&words), None, "{what}");
    }
    words[at] = 1;
    let told_of = read(&words).map(|register| register.told_of(MemberId(7), 1));
    assert_eq!(told_of, Some(MemberId(7)), "as all words from before there were copies");
}

fn entry() -> impl Strategy<Value = Entry> {
    let rights = (0u32..256).prop_map(|bits| Entry::SetRights(Rights::from_bits(bits).unwrap()));
    let limits = (0u64..3, 0u32..3)
        .prop_map(|(quantity_max, collar)| Entry::SetLimits(Limits { quantity_max, collar, ..Limits::NONE }));
    let proposal = (1u8..=3, 0u32..3).prop_map(|(kind, operand)| {
        Entry::Propose(Proposal { instrument: InstrumentId(1), kind, operand, detail: 1 << 64 | 2 })
    });
    prop_oneof![
        Just(Entry::AddMember),
        Just(Entry::RemoveMember),
        (0u8..4).prop_map(|number| Entry::SetKey(key(number))),
        (0u8..4).prop_map(|number| Entry::SetKey(Key::Shared([number; 32]))),
        Just(Entry::RevokeKey),
        rights,
        limits,
        (0u64..3).prop_map(Entry::SetPositionMax),
        any::<bool>().prop_map(Entry::SetFourEyes),
        proposal,
        (0u32..3).prop_map(|id| Entry::ListInstrument(InstrumentId(id))),
        (0u32..3).prop_map(|id| Entry::UnlistInstrument(InstrumentId(id))),
        (0u32..4).prop_map(|member| Entry::SetCopied(MemberId(member))),
    ]
}

proptest! {
    #[test]
    fn whatever_is_asked_an_operator_stays_and_the_words_say_it_all(
        asked in prop::collection::vec((0u32..4, 0u16..4, entry()), 0..60),
    ) {
        let mut register = register();
        for (member, session, entry) in asked {
            let before = register.clone();
            if apply(&mut register, member, session, entry).is_err() {
                prop_assert_eq!(&register, &before);
            }
            let may_change = |(session, ..): (u16, Key, Permit)| {
                register.permit(EXCHANGE, session).unwrap().rights.has(Rights::REGISTER)
            };
            prop_assert!(register.sessions(EXCHANGE).any(may_change));
        }
        let mut words = Vec::new();
        register.write(&mut |word| words.push(word));
        let mut rest = words.iter().copied();
        for (member, session) in all_sessions(&register) {
            let told_of = register.told_of(member, session);
            prop_assert!(told_of != EXCHANGE || member == EXCHANGE);
            prop_assert!(register.members().any(|(one, _)| one == told_of));
        }
        prop_assert_eq!(Register::read(&mut || rest.next()), Some(register));
        prop_assert_eq!(rest.next(), None);
        for cut in 0..words.len() {
            let mut some = words[..cut].iter().copied();
            prop_assert_eq!(Register::read(&mut || some.next()), None);
        }
    }

    #[test]
    fn no_words_bring_it_down(words in prop::collection::vec(0u64..5, 0..80)) {
        let mut words = words.into_iter();
        let _ = Register::read(&mut || words.next());
    }
}
