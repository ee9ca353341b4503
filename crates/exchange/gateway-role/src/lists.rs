//! Lists that members asked for, told a portion in each turn of the duty cycle, as fast as each client reads.
//!
//! A session has one at a time, and a turn looks at a bounded number of names for all of them together: however long the lists and however
//! many ask, those that trade wait for one portion.

use std::collections::{BTreeSet, VecDeque};

use pares_gateway::{Gateway, Listed, SessionId};
use pares_roles::world::{Sockets, World};
use pares_types::{ListEnd, ListRequest, OrderKey, Reason};
use pares_wire::frame;

use crate::edge::GatewayIo;
use crate::frames::write_rejection;

/// Lists looked at in one turn for one to continue with.
const LOOKS_MAX: usize = 64;
/// Unread output beyond which a client is sent nothing more for now.
const UNREAD_MAX: usize = 64 << 10;

/// All lists that are being told.
#[derive(Default)]
pub(crate) struct Lists {
    /// The next first.
    queue: VecDeque<Listing>,
    /// Whose they are.
    sessions: BTreeSet<SessionId>,
}

/// One of them, and how far it has come.
struct Listing {
    session: SessionId,
    request: ListRequest,
    from: usize,
    count: u32,
}

impl Lists {
    pub(crate) fn ask<W: World, S: Sockets>(
        &mut self,
        session: SessionId,
        request: ListRequest,
        edge: &mut GatewayIo<W, S>,
    ) {
        if self.sessions.insert(session) {
            self.queue.push_back(Listing { session, request, from: 0, count: 0 });
        } else {
            end(edge, session, ListEnd { request, count: 0, reason: Reason::AlreadyAsked });
        }
    }

    /// Tells a portion of the first list whose client reads. Says whether there was one.
    pub(crate) fn tell<W: World, S: Sockets>(&mut self, rules: &Gateway, edge: &mut GatewayIo<W, S>) -> bool {
        assert_eq!(self.queue.len(), self.sessions.len(), "a session has one list at a time in the queue");
        for _ in 0..self.queue.len().min(LOOKS_MAX) {
            let Some(listing) = self.queue.pop_front() else { break };
            let session = listing.session;
            if edge.connections.unread(session).is_some_and(|unread| unread > UNREAD_MAX) {
                self.queue.push_back(listing);
                continue;
            }
            // One that received why it goes is sent nothing more.
            let is_heard = edge.connections.is_heard(session);
            match Some(listing).filter(|_| is_heard).and_then(|listing| listing.tell(rules, edge)) {
                Some(listing) => self.queue.push_back(listing),
                None => _ = self.sessions.remove(&session),
            }
            return true;
        }
        false
    }
}

impl Listing {
    /// Tells a portion; `None` with the last one.
    fn tell<W: World, S: Sockets>(mut self, rules: &Gateway, edge: &mut GatewayIo<W, S>) -> Option<Self> {
        let Self { session, request, from, .. } = self;
        let output = edge.connections.output(session)?;
        let told = rules.tell_list(session, &request, from, &mut |listed| {
            self.count += 1;
            write(output, &listed);
        });
        match told {
            Ok(Some(next)) => {
                assert!(next > from, "a list continues behind the entries that were looked at");
                return Some(Self { from: next, ..self });
            }
            Ok(None) => end(edge, session, ListEnd { request, count: self.count, reason: Reason::None }),
            Err(reason) => write_rejection(output, reason),
        }
        None
    }
}

fn write(output: &mut Vec<u8>, listed: &Listed<'_>) {
    match *listed {
        Listed::Order(ref status) => {
            frame::write_order_status(output, OrderKey::Name(status.client_order_id), Some(*status));
        }
        Listed::Instrument(ref status, rows) => {
            frame::write_instrument_status(output, status);
            rows.iter().for_each(|row| frame::write_tick_row(output, status.instrument, row.from, row.tick));
        }
    }
}

fn end<W: World, S: Sockets>(edge: &mut GatewayIo<W, S>, session: SessionId, end: ListEnd) {
    edge.connections.write(session, |output| frame::write_list_end(output, &end));
}
