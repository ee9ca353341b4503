//! A member's account and its sessions.

use std::collections::BTreeMap;

use pares_types::{Key, Limits, Rights};

use crate::Permit;

/// One session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) key: Key,
    pub(crate) permit: Permit,
}

impl Session {
    pub(crate) fn new(key: Key, rights: Rights) -> Self {
        Self { key, permit: Permit { rights, limits: Limits::NONE } }
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
        Self { permit: Permit { rights, limits: Limits::NONE }, sessions: BTreeMap::new() }
    }

    /// Whether any session may change the register.
    pub(crate) fn has_operator(&self) -> bool {
        let mut sessions = self.sessions.values();
        sessions.any(|session| self.permit.and(session.permit).rights.has(Rights::REGISTER))
    }
}
