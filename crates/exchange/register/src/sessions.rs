//! A member's account and its sessions.

use std::collections::BTreeMap;

use pares_types::{Key, MemberId, Rights};

use crate::Permit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) key: Key,
    pub(crate) permit: Permit,
    /// The member whose streams it receives instead of its own's.
    pub(crate) copied: Option<MemberId>,
}

impl Session {
    pub(crate) fn new(key: Key, rights: Rights) -> Self {
        Self { key, permit: Permit::of(rights), copied: None }
    }
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) permit: Permit,
    pub(crate) sessions: BTreeMap<u16, Session>,
}

impl Account {
    pub(crate) fn new(rights: Rights) -> Self {
        Self { permit: Permit::of(rights), sessions: BTreeMap::new() }
    }

    /// Whether sessions are left that may change the register: with four eyes one that asks, and another that proposes.
    pub(crate) fn has_operators(&self, four_eyes: bool) -> bool {
        let able = |needed: Rights| {
            let rights = self.sessions.values().map(|session| self.permit.and(session.permit).rights);
            rights.filter(|rights| rights.has(needed)).count()
        };
        let both = Rights::REGISTER.or(Rights::CONTROL);
        if four_eyes { able(both) >= 2 } else { able(Rights::REGISTER) >= 1 }
    }
}
