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

use pares_types::{InstrumentId, Key, Limits, MemberId, Proposal, Rights, Timestamp};

use crate::sessions::{Account, Session};
use crate::{ENTRIES_MAX, EXCHANGE, PROPOSALS_MAX, Permit, Register, SESSION_MAX};

const ED25519: u64 = 1;
const SHARED: u64 = 2;

impl Register {
    /// Hands the state out, word by word.
    pub fn write(&self, put: &mut impl FnMut(u64)) {
        put(self.four_eyes.into());
        put(self.proposals.len() as u64);
        for (session, proposal, stamp) in &self.proposals {
            put((*session).into());
            put(proposal.kind.into());
            put(proposal.instrument.0.into());
            put(proposal.operand.into());
            put(proposal.detail as u64);
            put((proposal.detail >> 64) as u64);
            put(stamp.0);
        }
        put(self.members.len() as u64);
        for (member, account) in &self.members {
            put(member.0.into());
            write_permit(account.permit, put);
            put(account.sessions.len() as u64);
            for (number, session) in &account.sessions {
                let copied = session.copied.map_or(0, |member| u64::from(member.0));
                put(copied << 16 | u64::from(*number));
                write_key(session.key, put);
                write_permit(session.permit, put);
            }
        }
        put(self.listed.len() as u64);
        for (member, session, instrument) in &self.listed {
            put(member.0.into());
            put((*session).into());
            put(instrument.0.into());
        }
    }

    /// The state that [`Register::write`] handed out; `None` if `next` ends before, or no register is like that.
    #[must_use]
    pub fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        let four_eyes = flag(next()?)?;
        let proposals = (0..count(next()?, PROPOSALS_MAX)?).map(|_| proposal(next)).collect::<Option<_>>()?;
        let mut members = BTreeMap::new();
        let mut entries = 0;
        for _ in 0..count(next()?, ENTRIES_MAX)? {
            let member = MemberId(next()?.try_into().ok()?);
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

fn flag(word: u64) -> Option<bool> {
    (word <= 1).then_some(word == 1)
}

fn count(word: u64, max: usize) -> Option<usize> {
    usize::try_from(word).ok().filter(|&count| count <= max)
}

fn session_number(word: u64) -> Option<u16> {
    u16::try_from(word).ok().filter(|number| (1..=SESSION_MAX).contains(number))
}

fn proposal(next: &mut impl FnMut() -> Option<u64>) -> Option<(u16, Proposal, Timestamp)> {
    let session = session_number(next()?)?;
    let kind = u8::try_from(next()?).ok().filter(|kind| (1..=Proposal::KIND_MAX).contains(kind))?;
    let instrument = InstrumentId(next()?.try_into().ok()?);
    let operand = next()?.try_into().ok()?;
    let detail = u128::from(next()?) | u128::from(next()?) << 64;
    Some((session, Proposal { instrument, kind, operand, detail }, Timestamp(next()?)))
}

fn read_account(next: &mut impl FnMut() -> Option<u64>) -> Option<Account> {
    let permit = read_permit(next)?;
    let mut sessions = BTreeMap::new();
    for _ in 0..count(next()?, ENTRIES_MAX)? {
        let word = next()?;
        let number = session_number(word & 0xffff)?;
        let copied = Some(MemberId((word >> 16).try_into().ok()?)).filter(|member| *member != EXCHANGE);
        if sessions.last_key_value().is_some_and(|(last, _)| *last >= number) {
            return None;
        }
        let (key, permit) = (read_key(next)?, read_permit(next)?);
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

/// At most `room`, ascending, each of somebody who is there.
fn read_listed(
    next: &mut impl FnMut() -> Option<u64>,
    members: &BTreeMap<MemberId, Account>,
    room: usize,
) -> Option<BTreeSet<(MemberId, u16, InstrumentId)>> {
    let mut listed = BTreeSet::new();
    for _ in 0..count(next()?, room)? {
        let member = MemberId(next()?.try_into().ok()?);
        let session = next()?.try_into().ok()?;
        let instrument = InstrumentId(next()?.try_into().ok()?);
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

fn write_permit(permit: Permit, put: &mut impl FnMut(u64)) {
    let Permit { rights, limits, position_max } = permit;
    put(rights.bits().into());
    put(limits.quantity_max);
    put(limits.value_max);
    [limits.collar, limits.orders_max, limits.rate_max, limits.burst_max]
        .into_iter()
        .for_each(|limit| put(limit.into()));
    put(position_max);
}

fn read_permit(next: &mut impl FnMut() -> Option<u64>) -> Option<Permit> {
    let rights = Rights::from_bits(next()?.try_into().ok()?)?;
    let (quantity_max, value_max) = (next()?, next()?);
    let mut small = || u32::try_from(next()?).ok();
    let limits = Limits {
        quantity_max,
        value_max,
        collar: small()?,
        orders_max: small()?,
        rate_max: small()?,
        burst_max: small()?,
    };
    Some(Permit { rights, limits, position_max: next()? })
}

fn write_key(key: Key, put: &mut impl FnMut(u64)) {
    let (kind, bytes) = match key {
        Key::Ed25519(bytes) => (ED25519, bytes),
        Key::Shared(bytes) => (SHARED, bytes),
    };
    put(kind);
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| put(u64::from_le_bytes(*word)));
}

fn read_key(next: &mut impl FnMut() -> Option<u64>) -> Option<Key> {
    let kind = next()?;
    let mut bytes = [0; 32];
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = next()?.to_le_bytes();
    }
    match kind {
        ED25519 => Some(Key::Ed25519(bytes)),
        SHARED => Some(Key::Shared(bytes)),
        _ => None,
    }
}
