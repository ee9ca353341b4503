//! The register as words, for checkpoints and for its digest.
//!
//! ```text
//! four eyes | proposals n | (session, kind, instrument, operand, detail twice, stamp)* | members n | member*
//!           | listed n | (member, session, instrument)*
//! member    id | permit | sessions n | (session, key kind, 4 words of the key, permit)*
//!           the session's word is its number + 2^16 * the member that it copies, 0 if none: a register without copies has the words, and
//!           the digest, that it had before there were any
//! permit    rights | quantity max | value max | collar | orders max | rate max | burst max | position max
//! ```

use std::collections::{BTreeMap, BTreeSet};

use pares_types::{InstrumentId, MemberId, Proposal, Timestamp, Words, words};

use crate::sessions::{Account, Session};
use crate::{ENTRIES_MAX, EXCHANGE, PROPOSALS_MAX, Permit, Register, SESSION_MAX};

words! { Permit { rights limits position_max } }

impl Register {
    /// Hands the state out, word by word.
    pub fn write(&self, put: &mut impl FnMut(u64)) {
        put(self.four_eyes.into());
        put(self.proposals.len() as u64);
        for (session, proposal, stamp) in &self.proposals {
            session.write(put);
            proposal.write(put);
            stamp.write(put);
        }
        put(self.members.len() as u64);
        for (member, account) in &self.members {
            member.write(put);
            account.permit.write(put);
            put(account.sessions.len() as u64);
            for (number, session) in &account.sessions {
                let copied = session.copied.map_or(0, |member| u64::from(member.0));
                put(copied << 16 | u64::from(*number));
                session.key.write(put);
                session.permit.write(put);
            }
        }
        put(self.listed.len() as u64);
        for (member, session, instrument) in &self.listed {
            member.write(put);
            session.write(put);
            instrument.write(put);
        }
    }

    /// The state that [`Register::write`] handed out; `None` if `next` ends before, or no register is like that.
    #[must_use]
    pub fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        let four_eyes = Words::read(next)?;
        let proposals = (0..count(next()?, PROPOSALS_MAX)?).map(|_| proposal(next)).collect::<Option<_>>()?;
        let mut members = BTreeMap::new();
        let mut entries = 0;
        for _ in 0..count(next()?, ENTRIES_MAX)? {
            let member = MemberId::read(next)?;
            let account = read_account(next)?;
            entries += 1 + account.sessions.len();
            let is_ascending = members.last_key_value().is_none_or(|(last, _)| *last < member);
            if !is_ascending || entries > ENTRIES_MAX {
                return None;
            }
            members.insert(member, account);
        }
        members.get(&EXCHANGE)?;
        if !are_copies_right(&members) {
            return None;
        }
        let listed = read_listed(next, &members, ENTRIES_MAX - entries)?;
        entries += listed.len();
        let mut register = Self { members, four_eyes, proposals, listed, entries, digest: 0 };
        register.digest = register.computed_digest();
        Some(register)
    }

    pub(crate) fn computed_digest(&self) -> u64 {
        let mut digest = 0;
        self.write(&mut |word| digest = mix(digest ^ word));
        digest
    }
}

/// The finaliser of `SplitMix64` behind a step that keeps zero from standing still.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

fn count(word: u64, max: usize) -> Option<usize> {
    usize::try_from(word).ok().filter(|&count| count <= max)
}

fn session_number(word: u64) -> Option<u16> {
    u16::try_from(word).ok().filter(|number| (1..=SESSION_MAX).contains(number))
}

fn proposal(next: &mut impl FnMut() -> Option<u64>) -> Option<(u16, Proposal, Timestamp)> {
    let session = session_number(next()?)?;
    let proposal = Proposal::read(next)?;
    let is_known = (1..=Proposal::KIND_MAX).contains(&proposal.kind);
    is_known.then_some((session, proposal, Timestamp::read(next)?))
}

fn read_account(next: &mut impl FnMut() -> Option<u64>) -> Option<Account> {
    let permit = Words::read(next)?;
    let mut sessions = BTreeMap::new();
    for _ in 0..count(next()?, ENTRIES_MAX)? {
        let word = next()?;
        let number = session_number(word & 0xffff)?;
        let copied = Some(MemberId((word >> 16).try_into().ok()?)).filter(|member| *member != EXCHANGE);
        if sessions.last_key_value().is_some_and(|(last, _)| *last >= number) {
            return None;
        }
        let (key, permit) = (Words::read(next)?, Words::read(next)?);
        sessions.insert(number, Session { key, permit, copied });
    }
    Some(Account { permit, sessions })
}

/// Whether each copy is of another member that is there, and no operator's.
fn are_copies_right(members: &BTreeMap<MemberId, Account>) -> bool {
    members.iter().all(|(member, account)| {
        let mut copied = account.sessions.values().filter_map(|session| session.copied);
        copied.all(|copied| *member != EXCHANGE && copied != *member && members.contains_key(&copied))
    })
}

/// At most `room`, ascending, each of a session or a member that is there.
fn read_listed(
    next: &mut impl FnMut() -> Option<u64>,
    members: &BTreeMap<MemberId, Account>,
    room: usize,
) -> Option<BTreeSet<(MemberId, u16, InstrumentId)>> {
    let mut listed = BTreeSet::new();
    for _ in 0..count(next()?, room)? {
        let (member, session, instrument) =
            (MemberId::read(next)?, u16::read(next)?, InstrumentId::read(next)?);
        let account = members.get(&member)?;
        let is_there = session == 0 || account.sessions.contains_key(&session);
        let one = (member, session, instrument);
        let is_ascending = listed.last().is_none_or(|last| *last < one);
        if !is_there || !is_ascending || instrument.0 == 0 {
            return None;
        }
        listed.insert(one);
    }
    Some(listed)
}
