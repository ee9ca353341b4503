//! Letting in: sites, and applications up to a bound, their handshakes a few at a time.

use std::time::{Duration, Instant};

use rustls::ServerConnection;

use super::Links;
use crate::ended::Ended;
use crate::listen::accept;
use crate::table::Role;
use crate::wire::Wire;

/// Connections that have not said who they are; one more, and the oldest of them has to go.
const STRANGERS_MAX: usize = 64;
/// Time for a client's handshake before another may take its place.
const HANDSHAKE_MIN: Duration = Duration::from_secs(1);
/// Clients wait for so long before it is looked again whether there is room for their handshakes.
const ROOM_PAUSE: Duration = Duration::from_millis(5);

impl Links {
    pub(super) fn accept_sites(&mut self) {
        while let Some((stream, address)) = accept(&self.listener, &mut self.accept_at) {
            if self.table.count_unknown(Role::Stranger) >= STRANGERS_MAX {
                let (_, oldest) =
                    self.table.oldest_unknown(Role::Stranger).expect("each stranger has a deadline");
                self.table.end(oldest, Ended::Crowded);
            }
            let tls = self.config.identity.as_ref().map(|identity| identity.callers.clone());
            let deadline = Some(Instant::now() + self.config.hello_max);
            let wire = Wire::undecided(stream, tls);
            // If it cannot be polled it is dropped, which closes it; a site tries again.
            let _ = self.table.insert(self.poll.registry(), wire, Role::Stranger, address, deadline);
        }
    }

    /// Whether another client may begin its handshake. The oldest of those under way goes if it has had its time: a crowd that connects
    /// again waits its turn, and who says nothing does not keep it out.
    fn has_room_for_handshake(&mut self, now: Instant) -> bool {
        if self.table.count_unknown(Role::Client) < STRANGERS_MAX {
            return true;
        }
        let (deadline, oldest) =
            self.table.oldest_unknown(Role::Client).expect("each in a handshake has a deadline");
        let is_late = now + self.config.hello_max >= deadline + HANDSHAKE_MIN;
        if is_late {
            self.table.end(oldest, Ended::Crowded);
        }
        is_late
    }

    pub(super) fn accept_clients(&mut self) {
        let Some((tls, count_max)) =
            self.config.clients.as_ref().map(|limits| (limits.tls, limits.count_max))
        else {
            return;
        };
        loop {
            let now = Instant::now();
            if tls && !self.has_room_for_handshake(now) {
                self.accept_at = Some(now + ROOM_PAUSE);
                return;
            }
            let Some(listener) = &self.client_listener else { return };
            let Some((stream, address)) = accept(listener, &mut self.accept_at) else { return };
            if self.clients >= count_max {
                self.counts.clients_crowded += 1;
                continue; // dropping closes it
            }
            let tls =
                tls.then(|| self.config.identity.as_ref().expect("checked when opened").callers.clone());
            let deadline = tls.is_some().then(|| now + self.config.hello_max);
            let wire = match tls.map(ServerConnection::new) {
                None => Wire::plain(stream),
                Some(Ok(tls)) => Wire::tls(stream, tls),
                Some(Err(_)) => continue, // the operating system gives no randomness; the client tries again
            };
            let inserted = self.table.insert(self.poll.registry(), wire, Role::Client, address, deadline);
            if let Ok(slot) = inserted {
                self.clients += 1;
                self.table.mark_readable(slot); // its first turn makes it known
            }
        }
    }
}
