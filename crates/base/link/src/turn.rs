//! What is done with the bytes of one connection: the hello first, then frames.

use std::collections::BTreeMap;

use crate::clients::ClientId;
use crate::config::LinksConfig;
use crate::ended::Ended;
use crate::hello::{HELLO_MAX, Hello, HelloError};
use crate::remote::Remote;
use crate::sink::{Counts, LinkSink};
use crate::table::{Entry, Role, Table};
use crate::tls::caller;
use pares_tls::names;

/// One connection's turn.
pub(crate) struct Turn<'a> {
    pub(crate) slot: usize,
    pub(crate) table: &'a mut Table,
    pub(crate) remotes: &'a mut BTreeMap<u16, Remote>,
    pub(crate) config: &'a LinksConfig,
    pub(crate) counts: &'a mut Counts,
}

impl Turn<'_> {
    /// Takes all whole frames.
    pub(crate) fn take(&mut self, sink: &mut impl LinkSink) {
        self.greet_client(sink);
        if self.take_hello(sink) {
            self.take_frames(sink);
        }
        if let Some(entry) = self.table.get(self.slot) {
            entry.wire.tidy_input();
        }
    }

    /// An application has no hello; it is known as soon as its TLS is done, by what its certificate calls it.
    fn greet_client(&mut self, sink: &mut impl LinkSink) {
        let Some(entry) = self.table.get(self.slot) else { return };
        if entry.role == Role::Client && !entry.known && !entry.wire.is_handshaking() {
            if entry.wire.is_tls() {
                let system = &self.config.system;
                entry.caller = entry.wire.certificate().and_then(|shown| caller(shown, system));
                if entry.caller.is_none() {
                    return self.table.end(self.slot, Ended::WrongName(format!("any site of {system}")));
                }
            }
            entry.known = true;
            sink.client_connected(ClientId::new(self.slot, entry.generation));
            self.table.settle(self.slot);
        }
    }

    /// Whether frames may follow.
    fn take_hello(&mut self, sink: &mut impl LinkSink) -> bool {
        let Some(entry) = self.table.get(self.slot) else { return false };
        if !matches!(entry.role, Role::Stranger | Role::Dialled(_)) {
            return entry.known;
        }
        match self.next_hello() {
            Ok(None) => false,
            Ok(Some((peer, version))) => {
                self.connect(peer, version, sink);
                true
            }
            Err(why) => {
                self.table.end(self.slot, why);
                false
            }
        }
    }

    /// Whose hello it is, once it is there and proved right, and the version of the connection.
    fn next_hello(&mut self) -> Result<Option<(u16, u16)>, Ended> {
        let Some(entry) = self.table.get(self.slot) else { return Ok(None) };
        let Some(payload) = entry.wire.next_frame(HELLO_MAX)? else { return Ok(None) };
        let hello = Hello::decode(payload)?;
        if hello.system != self.config.system {
            return Err(HelloError::System { theirs: hello.system.to_owned() }.into());
        }
        let (from, to, agrees) = (hello.from, hello.to, hello.check(&self.config.agreed));
        let version = hello.agreed(self.config.speaks);
        let is_named = matches!(entry.role, Role::Dialled(_)) || self.remotes.contains_key(&from);
        if !is_named && to == self.config.number {
            return Err(HelloError::Unnamed { from }.into());
        }
        let expected = match entry.role {
            Role::Dialled(peer) => from == peer,
            // Whom we dial need not dial us.
            _ => self.remotes.get(&from).is_some_and(|remote| !remote.dials),
        };
        if !expected || to != self.config.number {
            return Err(HelloError::Numbers { from, to }.into());
        }
        let remote = self.remotes.get(&from).expect("just found");
        if remote.peer.tls && !entry.wire.is_tls() {
            return Err(Ended::PlainRefused(from));
        }
        if entry.wire.is_tls() && !entry.wire.certificate().is_some_and(|shown| names(shown, &remote.name)) {
            return Err(Ended::WrongName(remote.name.clone()));
        }
        // Last: what is said of a site's settings is said of a site, and not by a stranger in its name.
        agrees?;
        Ok(Some((from, version?)))
    }

    fn connect(&mut self, peer: u16, version: u16, sink: &mut impl LinkSink) {
        let remote = self.remotes.get_mut(&peer).expect("its hello was checked");
        if let Some(old) = remote.slot.take() {
            // It would not connect again if it had not given up the old one.
            self.table.forget(old);
            self.counts.disconnected += 1;
            sink.disconnected(peer, &Ended::Replaced);
        }
        remote.on_connected(self.slot, version, self.config.pause_min);
        let entry = self.table.get(self.slot).expect("its hello was just read");
        if entry.role == Role::Stranger {
            entry.wire.push(&self.config.hello_to(peer));
        }
        (entry.role, entry.known) = (Role::Site(peer), true);
        self.table.mark_dirty(self.slot);
        self.table.settle(self.slot);
        self.counts.connected += 1;
        sink.connected(peer);
    }

    fn take_frames(&mut self, sink: &mut impl LinkSink) {
        let Some(entry) = self.table.get(self.slot) else { return };
        let client = ClientId::new(self.slot, entry.generation);
        let max = match (entry.role, &self.config.clients) {
            (Role::Client, Some(limits)) => limits.frame_max,
            _ => self.config.frame_max,
        };
        let Entry { wire, caller, role, .. } = entry;
        loop {
            match (wire.next_frame(max), *role) {
                (Ok(Some(payload)), Role::Site(peer)) => sink.frame(peer, payload),
                (Ok(Some(payload)), _) => sink.client_frame(client, caller.as_deref(), payload),
                (Ok(None), _) => return,
                (Err(why), _) => return self.table.end(self.slot, why),
            }
        }
    }
}
