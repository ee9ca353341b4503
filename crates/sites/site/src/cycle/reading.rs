//! Reads of clients: taken here, answered by readers, told here.
//!
//! A site shows what is stable there, and others may be ahead of it. A lease does not help a read that must see all that any client was answered before it: a cluster may have been
//! declared lost, and not know it. What no cluster can do alone is to make a version stable. So such reads wait for an empty transaction of the site's own, the
//! *barrier*, that is certified like every other after they have come: its version lies behind all that was answered until then, and once it is in this store, so is that.
//!
//! ```text
//!   asked --> waits for the next barrier --sent--> waits for its version in the store --> read
//!                \-- one is under way at a time: all that come meanwhile share the next --/
//! ```

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use pares_link::ClientId;
use pares_sql::{Executed, Ready, Verdict};
use pares_wice::Version;

use super::Cycle;
use super::admission::{is_ahead, of_another_database};
use crate::application::Application;
use crate::error::ProcessError;
use crate::protocol::{Code, Horizon};
use crate::reads::{Awaits, Least};
use crate::requests::Answer;
use crate::world::World;

/// An empty transaction under way.
pub(super) struct Barrier {
    /// The last read that came before it.
    last: u64,
    verdict: Receiver<Verdict>,
}

impl<W: World, A: Application> Cycle<W, A> {
    /// Takes a read, which sees at least what is stable now, and what its client has seen.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn read(
        &mut self,
        of: (ClientId, u64),
        request: Vec<u8>,
        seen: Horizon,
    ) -> Result<(), Answer> {
        self.shows_to(seen)?;
        let stable = self.site.stable();
        let until = (seen.version > stable).then(|| self.world.now() + self.bounds.answer_patience);
        self.readers.take(of, request, Least { awaits: Awaits::Version(stable.max(seen.version)), until })
    }

    /// Takes one that sees all that was answered to any client until now.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn read_latest(
        &mut self,
        of: (ClientId, u64),
        request: Vec<u8>,
        seen: Horizon,
    ) -> Result<(), Answer> {
        self.shows_to(seen)?;
        let until = Some(self.world.now() + self.bounds.answer_patience);
        self.readers.take(of, request, Least { awaits: Awaits::Barrier, until })
    }

    fn shows_to(&self, seen: Horizon) -> Result<(), Answer> {
        if self.site.is_recalling() || !self.shows_all {
            let body = b"this site has just started and does not know the other sites' versions yet".to_vec();
            return Err(Answer { code: Code::Elsewhere, body });
        }
        if seen.is_of(self.database) { Ok(()) } else { Err(of_another_database()) }
    }

    /// Has read what the store has come to, and tells what was read.
    pub(super) fn go_on_with_reads(&mut self) -> Result<(), ProcessError> {
        self.go_on_with_barrier();
        self.readers.go_on(self.base.version());
        for (ticket, awaited) in self.readers.expired(self.world.now()) {
            let answer = match awaited {
                Awaits::Version(_) => is_ahead(),
                Awaits::Barrier => Answer {
                    code: Code::Elsewhere,
                    body: b"a cluster or the certifier does not answer, so the latest version is unknown"
                        .to_vec(),
                },
            };
            self.reply(ticket.client, ticket.tag, &answer, Version(0));
        }
        while let Some((ticket, answer, version)) = self.readers.done()? {
            self.reply(ticket.client, ticket.tag, &answer, version);
        }
        Ok(())
    }

    /// Reads what came before the barrier, once that is in the store, and sends the next, if a read waits for it.
    fn go_on_with_barrier(&mut self) {
        if let Some(barrier) = &self.barrier {
            match barrier.verdict.try_recv() {
                Err(TryRecvError::Empty) => return,
                Ok(Verdict::Committed) => self.readers.passed(barrier.last, self.base.version()),
                // Who waits for it waits for the next.
                Ok(_) | Err(TryRecvError::Disconnected) => {}
            }
            self.barrier = None;
        }
        if let Some(last) = self.readers.last_at_barrier() {
            let (verdict, told) = channel();
            let executed = Executed { snapshot: self.site.snapshot().version, ..Executed::default() };
            self.transact(Ready { executed, verdict });
            self.barrier = Some(Barrier { last, verdict: told });
        }
    }
}
