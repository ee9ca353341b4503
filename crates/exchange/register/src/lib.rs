//! The register's rules: who participates, by which keys, with which rights and limits.
//!
//! The obvious register is a file that every gateway reads, or a service that every gateway asks. Then two gateways differ for as long
//! as a change is on its way, and nobody can say later who was let in at which moment. Here the register is state of the lowest shard,
//! like its books: changed by requests that have a place in the total order, part of the state hash and of the checkpoint. A
//! gateway applies the same requests to the same type as it follows the committed stream.
//!
//! ```text
//!  operator --Register--> gateway --> lowest shard: apply --> record --> every gateway: apply, disconnect who is revoked
//! ```
//!
//! - *Members and sessions.* A member has sessions, numbered from 1, each with one key. Session 0 in a request is the member as a whole.
//! - *Rights and limits* are set for the member and for each session; what counts is what both allow ([`Register::permit`]). So are
//!   lists of instruments, for who may not trade every one ([`Register::may_trade`]).
//! - *Copies.* A session receives one member's streams: its own member's, or those that the register says ([`Register::told_of`]). One that receives
//!   another's may ask for nothing, and ends with that member: it does not receive one added later under that number.
//! - *Operators* are the sessions of member 0. One of them can always change the register: what would leave none is refused.
//! - *Four eyes.* A proposal says what an operator wants done; another one's request then finds it ([`Register::is_seconded`]). It
//!   holds for ten minutes; one about the register until it is done. A gateway's death takes none with it.
//! - *Nothing secret* is in it, and nothing here computes a digest or a signature: keys are bytes to it.

mod copies;
mod register_codec;
mod sessions;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use pares_types::{
    Command, Entry, InstrumentId, Key, Limits, MemberId, Proposal, Reason, Registration, Rights, Timestamp,
    stricter,
};

use sessions::{Account, Session};

/// The exchange, whose sessions are the operators.
pub const EXCHANGE: MemberId = MemberId(0);
/// The session of the operator that a system begins with.
pub const FIRST_OPERATOR: u16 = 1;
/// Members, sessions and listed instruments together.
pub const ENTRIES_MAX: usize = 4_096;
/// The highest session: the upper bit of a series of names is the gateways' own.
pub const SESSION_MAX: u16 = 0x7fff;
/// Proposals that wait; the oldest makes room.
pub const PROPOSALS_MAX: usize = 64;
/// How long a proposal holds.
pub const PROPOSAL_NS: u64 = 600_000_000_000;

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// What it may ask.
    pub rights: Rights,
    /// How much.
    pub limits: Limits,
    /// See [`Entry::SetPositionMax`]; 0 is no limit.
    pub position_max: u64,
}

impl Permit {
    /// Everything, without limit.
    pub const FREE: Self = Self::of(Rights::ALL);

    /// Those rights, without limit.
    const fn of(rights: Rights) -> Self {
        Self { rights, limits: Limits::NONE, position_max: 0 }
    }

    /// What both allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            rights: self.rights.and(other.rights),
            limits: self.limits.and(other.limits),
            position_max: stricter(self.position_max, other.position_max),
        }
    }
}

/// The register. Equal on all who applied the same requests to the same beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    members: BTreeMap<MemberId, Account>,
    four_eyes: bool,
    /// Who proposed what, and when; the oldest first.
    proposals: Vec<(u16, Proposal, Timestamp)>,
    /// What each may trade without the right to trade everything; session 0 is the member as a whole.
    listed: BTreeSet<(MemberId, u16, InstrumentId)>,
    /// Members, sessions and listed instruments.
    entries: usize,
    digest: u64,
}

impl Register {
    /// The register that a system begins with: one operator, if a key is given.
    #[must_use]
    pub fn new(operator: Option<Key>) -> Self {
        let members = BTreeMap::from([(EXCHANGE, Account::new(Rights::ALL))]);
        let mut register = Self {
            members,
            four_eyes: false,
            proposals: Vec::new(),
            listed: BTreeSet::new(),
            entries: 1,
            digest: 0,
        };
        if let Some(key) = operator {
            let account = register.members.get_mut(&EXCHANGE).expect("just added");
            account.sessions.insert(FIRST_OPERATOR, Session::new(key, Rights::ALL));
            register.entries += 1;
        }
        register.digest = register.computed_digest();
        register
    }

    /// Changes one entry. The request was made at `stamp`; time need not rise.
    ///
    /// # Errors
    /// Why nothing changed.
    pub fn apply(&mut self, stamp: Timestamp, change: &Registration) -> Result<(), Reason> {
        self.check_place(change)?;
        self.enter(stamp, change)?;
        self.forget_proposals(change);
        self.digest = self.computed_digest();
        Ok(())
    }

    fn enter(&mut self, stamp: Timestamp, change: &Registration) -> Result<(), Reason> {
        let Registration { member, session, entry } = *change;
        match entry {
            Entry::AddMember => self.add_member(member)?,
            Entry::RemoveMember => self.remove_member(member)?,
            Entry::SetKey(key) => self.set_key(member, session, key)?,
            Entry::RevokeKey => self.revoke(member, session)?,
            Entry::SetRights(rights) => self.set_rights(member, session, rights)?,
            Entry::SetLimits(limits) => self.permit_mut(member, session)?.limits = limits,
            Entry::SetPositionMax(shares) => self.permit_mut(member, session)?.position_max = shares,
            Entry::SetFourEyes(is_on) => self.set_four_eyes(is_on)?,
            Entry::Propose(proposal) => self.propose(session, proposal, stamp)?,
            Entry::ListInstrument(instrument) => self.list(member, session, instrument)?,
            Entry::UnlistInstrument(instrument) => self.unlist(member, session, instrument)?,
            Entry::SetCopied(copied) => self.set_copied(member, session, copied)?,
        }
        Ok(())
    }

    /// What was proposed is done, once.
    fn forget_proposals(&mut self, change: &Registration) {
        let done = Proposal::of(InstrumentId(0), &Command::Register(*change));
        self.proposals.retain(|(_, what, _)| Some(*what) != done);
    }

    /// Whether such an entry can be for such a session at all, and the member is there.
    fn check_place(&self, change: &Registration) -> Result<(), Reason> {
        let is_possible = match change.entry {
            Entry::AddMember | Entry::RemoveMember => change.session == 0,
            Entry::SetKey(_) | Entry::RevokeKey => change.session != 0,
            Entry::SetRights(_) | Entry::SetLimits(_) | Entry::SetPositionMax(_) => true,
            Entry::ListInstrument(instrument) | Entry::UnlistInstrument(instrument) => instrument.0 != 0,
            Entry::SetFourEyes(_) => change.member == EXCHANGE && change.session == 0,
            Entry::Propose(_) => change.member == EXCHANGE && change.session != 0,
            Entry::SetCopied(copied) => ![change.member, copied].contains(&EXCHANGE) && change.session != 0,
        };
        if !is_possible || change.session > SESSION_MAX {
            return Err(Reason::MalformedRequest);
        }
        let is_there = self.members.contains_key(&change.member);
        if is_there || change.entry == Entry::AddMember { Ok(()) } else { Err(Reason::UnknownMember) }
    }

    fn add_member(&mut self, member: MemberId) -> Result<(), Reason> {
        if self.members.contains_key(&member) {
            return Err(Reason::MemberExists);
        }
        self.check_room()?;
        self.members.insert(member, Account::new(Rights::TRADING));
        self.entries += 1;
        Ok(())
    }

    fn remove_member(&mut self, member: MemberId) -> Result<(), Reason> {
        if member == EXCHANGE {
            return Err(Reason::LastOperator);
        }
        let gone = self.members.remove(&member).ok_or(Reason::UnknownMember)?;
        self.entries -= 1 + gone.sessions.len();
        let copies = self.remove_copies(member);
        self.forget_listed(|of, number| of == member || copies.contains(&(of, number)));
        Ok(())
    }

    fn set_key(&mut self, member: MemberId, session: u16, key: Key) -> Result<(), Reason> {
        let rights = if member == EXCHANGE { Rights::ALL } else { Rights::TRADING };
        match self.key(member, session) {
            // Nobody is disconnected by a key that stays.
            Some(before) if before == key => return Err(Reason::NothingChanged),
            Some(_) => {}
            None => {
                self.check_room()?;
                self.entries += 1;
            }
        }
        let account = self.members.get_mut(&member).ok_or(Reason::UnknownMember)?;
        account.sessions.entry(session).or_insert(Session::new(key, rights)).key = key;
        self.forget_proposer(member, session);
        Ok(())
    }

    fn revoke(&mut self, member: MemberId, session: u16) -> Result<(), Reason> {
        let account = self.members.get_mut(&member).ok_or(Reason::UnknownMember)?;
        let gone = account.sessions.remove(&session).ok_or(Reason::UnknownSession)?;
        if member == EXCHANGE && !account.has_operators(self.four_eyes) {
            account.sessions.insert(session, gone);
            return Err(Reason::LastOperator);
        }
        self.entries -= 1;
        self.forget_listed(|of, number| (of, number) == (member, session));
        self.forget_proposer(member, session);
        // And what others proposed about it.
        if member == EXCHANGE {
            self.proposals.retain(|(_, what, _)| !what.is_about_operator(session));
        }
        Ok(())
    }

    /// What an operator proposed goes with its key.
    fn forget_proposer(&mut self, member: MemberId, session: u16) {
        if member == EXCHANGE {
            self.proposals.retain(|(proposer, ..)| *proposer != session);
        }
    }

    fn set_rights(&mut self, member: MemberId, session: u16, rights: Rights) -> Result<(), Reason> {
        let permit = self.permit_mut(member, session)?;
        let before = std::mem::replace(&mut permit.rights, rights);
        let is_lost = member == EXCHANGE && !self.members[&EXCHANGE].has_operators(self.four_eyes);
        if is_lost {
            self.permit_mut(member, session)?.rights = before;
            return Err(Reason::LastOperator);
        }
        Ok(())
    }

    /// One operator alone could never switch it off again.
    fn set_four_eyes(&mut self, is_on: bool) -> Result<(), Reason> {
        if is_on && !self.members[&EXCHANGE].has_operators(true) {
            return Err(Reason::LastOperator);
        }
        self.four_eyes = is_on;
        Ok(())
    }

    fn propose(&mut self, session: u16, proposal: Proposal, stamp: Timestamp) -> Result<(), Reason> {
        self.key(EXCHANGE, session).ok_or(Reason::UnknownSession)?;
        self.proposals.retain(|(proposer, what, _)| (*proposer, *what) != (session, proposal));
        let mut own = (0..).zip(&self.proposals).filter(|(_, (proposer, ..))| *proposer == session);
        let (oldest, rest) = (own.next().map(|(at, _)| at), own.count());
        // The oldest makes room: the operator's own, so that one does not push out what others propose.
        if let Some(oldest) = oldest.filter(|_| rest + 1 >= Proposal::OF_ONE_MAX) {
            self.proposals.remove(oldest);
        } else if self.proposals.len() == PROPOSALS_MAX {
            self.proposals.remove(0);
        }
        self.proposals.push((session, proposal, stamp));
        Ok(())
    }

    fn list(&mut self, member: MemberId, session: u16, instrument: InstrumentId) -> Result<(), Reason> {
        self.permit_mut(member, session)?;
        if self.listed.contains(&(member, session, instrument)) {
            return Err(Reason::NothingChanged);
        }
        self.check_room()?;
        self.listed.insert((member, session, instrument));
        self.entries += 1;
        Ok(())
    }

    fn unlist(&mut self, member: MemberId, session: u16, instrument: InstrumentId) -> Result<(), Reason> {
        self.permit_mut(member, session)?;
        if !self.listed.remove(&(member, session, instrument)) {
            return Err(Reason::NothingChanged);
        }
        self.entries -= 1;
        Ok(())
    }

    /// Nothing is listed any more for those that are gone.
    fn forget_listed(&mut self, is_gone: impl Fn(MemberId, u16) -> bool) {
        let before = self.listed.len();
        self.listed.retain(|&(member, session, _)| !is_gone(member, session));
        self.entries -= before - self.listed.len();
    }

    fn permit_mut(&mut self, member: MemberId, session: u16) -> Result<&mut Permit, Reason> {
        match session {
            0 => {
                self.members.get_mut(&member).map(|account| &mut account.permit).ok_or(Reason::UnknownMember)
            }
            _ => self.session_mut(member, session).map(|session| &mut session.permit),
        }
    }

    fn session_mut(&mut self, member: MemberId, session: u16) -> Result<&mut Session, Reason> {
        let account = self.members.get_mut(&member).ok_or(Reason::UnknownMember)?;
        account.sessions.get_mut(&session).ok_or(Reason::UnknownSession)
    }

    fn check_room(&self) -> Result<(), Reason> {
        if self.entries < ENTRIES_MAX { Ok(()) } else { Err(Reason::RegisterFull) }
    }

    /// The key that the session signs on with.
    #[must_use]
    pub fn key(&self, member: MemberId, session: u16) -> Option<Key> {
        self.members.get(&member)?.sessions.get(&session).map(|session| session.key)
    }

    /// What the session may do; `None` if there is no such session.
    #[must_use]
    pub fn permit(&self, member: MemberId, session: u16) -> Option<Permit> {
        let account = self.members.get(&member)?;
        account.sessions.get(&session).map(|session| account.permit.and(session.permit))
    }

    /// Whether the session may trade the instrument: it and its member each have the right to trade all, or a list with it.
    #[must_use]
    pub fn may_trade(&self, member: MemberId, session: u16, instrument: InstrumentId) -> bool {
        let Some(account) = self.members.get(&member) else { return false };
        let Some(of_session) = account.sessions.get(&session) else { return false };
        [(0, account.permit), (session, of_session.permit)].into_iter().all(|(session, permit)| {
            permit.rights.has(Rights::EVERY_INSTRUMENT)
                || self.listed.contains(&(member, session, instrument))
        })
    }

    /// The instruments listed for a session, or with session 0 for the member as a whole, in ascending order.
    pub fn listed(&self, member: MemberId, session: u16) -> impl Iterator<Item = InstrumentId> {
        let all = (member, session, InstrumentId(0))..=(member, session, InstrumentId(u32::MAX));
        self.listed.range(all).map(|(.., instrument)| *instrument)
    }

    /// Whether a request that can halt a market needs a second operator.
    #[must_use]
    pub fn needs_four_eyes(&self) -> bool {
        self.four_eyes
    }

    /// Whether another operator, which may still propose, has proposed the same within ten minutes before `now`.
    #[must_use]
    pub fn is_seconded(&self, session: u16, proposal: Proposal, now: Timestamp) -> bool {
        let holds = |stamp: Timestamp| now.0.saturating_sub(stamp.0) <= PROPOSAL_NS;
        let may = |proposer| {
            self.permit(EXCHANGE, proposer).is_some_and(|permit| permit.rights.has(Rights::CONTROL))
        };
        self.proposals.iter().any(|&(proposer, what, stamp)| {
            proposer != session && what == proposal && holds(stamp) && may(proposer)
        })
    }

    /// The members in ascending order, and what each may do as a whole.
    pub fn members(&self) -> impl Iterator<Item = (MemberId, Permit)> {
        self.members.iter().map(|(member, account)| (*member, account.permit))
    }

    /// A member's sessions in ascending order, their keys, and what is set for each.
    pub fn sessions(&self, member: MemberId) -> impl Iterator<Item = (u16, Key, Permit)> {
        let sessions = self.members.get(&member).into_iter().flat_map(|account| &account.sessions);
        sessions.map(|(number, session)| (*number, session.key, session.permit))
    }

    /// The proposals that wait: who, what, when.
    #[must_use]
    pub fn proposals(&self) -> &[(u16, Proposal, Timestamp)] {
        &self.proposals
    }

    /// A digest of all of it.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }
}
