//! The broker's accounts as what the sites execute, and what must hold of them.
//!
//! The rules are the shipped ones, over a ledger that writes down what they read and write; so all that is checked of transfers is checked of them. What is theirs alone is
//! checked by the log: it is replayed while versions come, and held against the accounts.

use std::collections::BTreeMap;

use pares_broker::{
    AccountSummary, AuditEntry, AuditNote, AuditReplay, BrokerError, BrokerRequest, LOG_BEGIN, LOG_END,
    Ledger, UserName, audit_page, summary,
};
use pares_site::{ApplicationError, View};
use pares_store::{Work, WorkError};
use pares_wice::codec::Coded;
use pares_wice::{Change, Key, TransactionId, Value, Version, Write};

use super::bank::{Executed, Execution};
use super::check::Changed;
use super::{Broken, Defect, Verdict, must};

/// The accounts are held against the log once in so many versions, and in the end.
const EVERY: u64 = 32;

/// A request as sites get it: under its name.
pub(super) fn named(id: TransactionId, request: &BrokerRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    id.encode(&mut bytes);
    bytes.extend_from_slice(&request.to_bytes());
    bytes
}

/// Executes a request. Behind the number comes a blank, and the broker's reply.
pub(super) fn execute(
    mut request: &[u8],
    work: &mut Work<View<'_>>,
    defect: Option<Defect>,
) -> Result<Executed, ApplicationError> {
    let odd = |error: pares_wice::codec::DecodeError| ApplicationError::Refused(error.to_string());
    let id = TransactionId::decode(&mut request).map_err(odd)?;
    let request = BrokerRequest::from_bytes(request).map_err(odd)?;
    let execution = Execution { id, snapshot: work.base().version(), ..Execution::default() };
    let mut ledger = Noted { work, execution, defect };
    let reply = pares_broker::execute(&request, &mut ledger);
    let Noted { execution, .. } = ledger;
    match reply {
        Ok(reply) => Ok((execution, Some([b" ", reply.to_bytes().as_slice()].concat()))),
        Err(BrokerError::Items(error)) => Err(error.into()),
        Err(_) => Ok((Execution { writes: Vec::new(), ..execution }, None)),
    }
}

/// A ledger that writes down what is done with it.
struct Noted<'a, 'b> {
    work: &'a mut Work<View<'b>>,
    execution: Execution,
    defect: Option<Defect>,
}

impl Noted<'_, '_> {
    fn change(&mut self, write: Write) {
        let writes = &mut self.execution.writes;
        match writes.iter_mut().find(|earlier| earlier.key == write.key) {
            Some(earlier) => *earlier = write,
            None => writes.push(write),
        }
    }
}

impl Ledger for Noted<'_, '_> {
    type Error = WorkError;

    fn get(&mut self, key: &Key) -> Result<Option<Value>, WorkError> {
        if let Some(own) = self.execution.writes.iter().find(|write| write.key == *key) {
            return Ok(match &own.change {
                Change::Put(value) => Some(value.clone()),
                _ => None,
            });
        }
        if key.as_bytes() == b"bf" && self.defect == Some(Defect::ForgetsFronts) {
            return Ok(None);
        }
        let value = self.work.get(key)?;
        self.execution.reads.push((key.clone(), value.clone()));
        Ok(value)
    }

    fn put(&mut self, key: &Key, value: Value) {
        self.change(Write::put(key.clone(), value));
    }

    fn delete(&mut self, key: &Key) {
        let is_trigger = key.as_bytes().starts_with(b"bb");
        if !(is_trigger && self.defect == Some(Defect::KeepsTriggers)) {
            self.change(Write::delete(key.clone()));
        }
    }
}

/// The log as versions bring it, and the accounts that it says.
#[derive(Debug, Default)]
pub(super) struct Books {
    replay: AuditReplay,
    lines: u64,
    entries: BTreeMap<Key, Value>,
}

impl Books {
    /// What a version brings to the log, and what the accounts are behind it.
    pub(super) fn on_version(
        &mut self,
        version: Version,
        changed: &Changed,
        items: &BTreeMap<Key, Value>,
    ) -> Verdict {
        let is_entry = |(key, _): &&(Key, Option<Value>)| key.as_bytes().starts_with(b"bl");
        let mut brought = BTreeMap::new();
        for (key, value) in changed.iter().filter(is_entry) {
            let value = value.clone().filter(|_| !self.entries.contains_key(key));
            let Some(value) = value else {
                return Err((Broken::Twice, format!("version {version} changes what was logged: {key:?}")));
            };
            self.entries.insert(key.clone(), value.clone());
            brought.insert(key.clone(), value);
        }
        self.replays(&brought).map_err(|what| (Broken::Money, format!("version {version}: {what}")))?;
        match version.0.is_multiple_of(EVERY) {
            true => self.finish(items),
            false => Ok(()),
        }
    }

    fn replays(&mut self, brought: &BTreeMap<Key, Value>) -> Result<(), String> {
        let page = audit_page(brought, None, None).map_err(|error| error.to_string())?;
        let mut text = if self.lines == 0 { LOG_BEGIN.to_owned() } else { String::new() };
        page.entries.iter().for_each(|entry| entry.xml(&mut text));
        for line in text.lines() {
            self.lines += 1;
            self.replay.line(line).map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }

    /// All entries, by user and place.
    pub(super) fn log(&self) -> Vec<AuditEntry> {
        let (mut log, mut from) = (Vec::new(), None);
        loop {
            let page = audit_page(&self.entries, None, from.as_ref()).expect("entries are whole");
            log.extend(page.entries);
            from = page.next;
            if from.is_none() {
                return log;
            }
        }
    }

    /// Triggers that have fired, and buys and sells that have lapsed.
    pub(super) fn moments(&self) -> u64 {
        let log = self.log();
        let notes = log.iter().flat_map(|entry| &entry.record.notes);
        notes.filter(|note| matches!(note, AuditNote::Done { .. })).count() as u64
    }

    /// Some minutes after the last command: nothing is pending any more, however many fronts have died that knew of it.
    pub(super) fn end(&self, items: &BTreeMap<Key, Value>) -> Verdict {
        let is_pending = |key: &&Key| [&b"bp"[..], b"be"].iter().any(|kind| key.as_bytes().starts_with(kind));
        match items.keys().find(is_pending) {
            None => self.finish(items),
            Some(key) => Err((Broken::Unsettled, format!("{key:?} is pending long after its minute"))),
        }
    }

    /// The log as it is so far adds up, and says of every user what he has.
    pub(super) fn finish(&self, items: &BTreeMap<Key, Value>) -> Verdict {
        if self.lines == 0 {
            return Ok(());
        }
        let mut replay = self.replay.clone();
        let ended = replay.text(LOG_END).and_then(|()| replay.finish());
        let report = ended.map_err(|fault| (Broken::Money, fault.to_string()))?;
        for (user, told) in &report.accounts {
            let name = UserName::new(user).expect("users have names");
            let found = summary(items, &name).expect("items are whole here");
            let found: AccountSummary = found.unwrap_or_default();
            must(told.is(&found), Broken::Money, || {
                format!("{user} has {found:?}, and by the log {told:?}")
            })?;
        }
        match report.quoted_twice() {
            Some(quote) => Err((Broken::Twice, format!("a hit is noted twice: {quote:?}"))),
            None => Ok(()),
        }
    }
}
