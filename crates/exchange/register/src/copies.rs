//! Sessions that receive another member's streams.

use std::collections::BTreeSet;

use pares_types::{MemberId, Reason};

use crate::Register;

impl Register {
    pub(crate) fn set_copied(
        &mut self,
        member: MemberId,
        number: u16,
        copied: MemberId,
    ) -> Result<(), Reason> {
        if !self.members.contains_key(&copied) {
            return Err(Reason::UnknownMember);
        }
        let session = self.session_mut(member, number)?;
        let copied = Some(copied).filter(|copied| *copied != member);
        // Nobody is disconnected by what stays.
        match std::mem::replace(&mut session.copied, copied) == copied {
            true => Err(Reason::NothingChanged),
            false => Ok(()),
        }
    }

    /// Removes the sessions that copy the member, which is gone.
    pub(crate) fn remove_copies(&mut self, member: MemberId) -> BTreeSet<(MemberId, u16)> {
        let mut copies = BTreeSet::new();
        for (of, account) in &mut self.members {
            let of_it = account.sessions.extract_if(.., |_, session| session.copied == Some(member));
            copies.extend(of_it.map(|(number, _)| (*of, number)));
        }
        self.entries -= copies.len();
        copies
    }

    /// The member whose streams the session receives, if that is not its own member.
    #[must_use]
    pub fn copied(&self, member: MemberId, session: u16) -> Option<MemberId> {
        self.members.get(&member)?.sessions.get(&session)?.copied
    }

    /// The member whose streams the session receives: its own, or the one that is entered.
    #[must_use]
    pub fn told_of(&self, member: MemberId, session: u16) -> MemberId {
        self.copied(member, session).unwrap_or(member)
    }
}
