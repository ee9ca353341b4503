//! Connections from which nothing comes, or not the rest of what began.

use std::io::{Read, Write};

use super::{Close, Connection, Connections, READS_MAX};
use pares_roles::world::Sockets;

/// A sign-on or a frame must be complete within this.
const PATIENCE_NS: u64 = 10_000_000_000;
/// A gateway that read nothing for so long, with a client waiting, stood still.
const STOOD_STILL_NS: u64 = 3_000_000_000;
/// Heartbeats in which something has to come from a session that has one.
const HEARTBEATS_MISSED: u64 = 3;

impl<T: Read + Write> Connection<T> {
    /// It has a heartbeat from now on, if that is not 0. When to look whether it was missed.
    pub(super) fn has_to_beat(&mut self, heartbeat_ms: u32, mono_ns: u64) -> Option<u64> {
        assert_eq!(self.silence_max_ns, 0, "a connection signs on once");
        self.silence_max_ns = u64::from(heartbeat_ms) * 1_000_000 * HEARTBEATS_MISSED;
        self.silent_ns = mono_ns + self.silence_max_ns;
        (heartbeat_ms > 0).then_some(self.silent_ns)
    }
}

impl<S: Sockets> Connections<S> {
    /// Ends connections from which nothing has come for [`HEARTBEATS_MISSED`] heartbeats. One that has something to read is not silent.
    pub(crate) fn end_silent(&mut self, mono_ns: u64) {
        while let Some(&(due_ns, slot)) = self.heartbeats.first().filter(|(due_ns, _)| *due_ns <= mono_ns) {
            self.heartbeats.remove(&(due_ns, slot));
            let connection = self.slots[slot].as_mut().expect("its heartbeat goes with it");
            assert_eq!(connection.silent_ns, due_ns, "a missed heartbeat is looked for when it is due");
            assert!(connection.silence_max_ns > 0, "only a connection with a heartbeat can miss one");
            let heard_ns = if connection.reading { mono_ns } else { connection.heard_ns };
            connection.silent_ns = heard_ns + connection.silence_max_ns;
            if connection.silent_ns > mono_ns {
                self.heartbeats.insert((connection.silent_ns, slot));
            } else {
                self.end(slot, Close::Silent);
            }
        }
    }

    /// Ends operators' connections that have something to read, if the gateway stood still: nobody knows how long that lies there, and
    /// its operator may have asked elsewhere for something else instead.
    pub(super) fn end_unread_operators(&mut self, mono_ns: u64) {
        let read_ns = std::mem::replace(&mut self.read_ns, mono_ns);
        if mono_ns.saturating_sub(read_ns) <= STOOD_STILL_NS {
            return;
        }
        for slot in 0..self.slots.len() {
            let Some(connection) = &mut self.slots[slot] else { continue };
            match connection.has_unread_of_operator(&mut self.tap) {
                Ok(false) => {}
                Ok(true) => self.end(slot, Close::Silent),
                Err(why) => self.end(slot, why),
            }
        }
    }

    /// Ends connections whose sign-on or frame has been incomplete for too long. Says whether it is done: a few are ended at a time.
    pub(crate) fn sweep(&mut self, mono_ns: u64) -> bool {
        let is_silent = |connection: &Connection<S::Stream>| {
            let since_ns = connection.waits_since_ns().filter(|_| connection.broken.is_none());
            since_ns.is_some_and(|since_ns| mono_ns.saturating_sub(since_ns) > PATIENCE_NS)
        };
        let slots = self.slots.iter().enumerate();
        let silent = slots.filter(|(_, one)| one.as_ref().is_some_and(is_silent)).map(|(slot, _)| slot);
        let silent: Vec<usize> = silent.take(READS_MAX).collect();
        let is_done = silent.len() < READS_MAX;
        silent.into_iter().for_each(|slot| self.end(slot, Close::Silent));
        is_done
    }
}
