//! Reads of clients: taken here, answered by readers, told here.

use pares_link::ClientId;

use super::Cycle;
use crate::application::Application;
use crate::error::ProcessError;
use crate::protocol::Code;
use crate::requests::Answer;
use crate::world::World;

impl<W: World, A: Application> Cycle<W, A> {
    /// Takes a read, which sees at least what is stable now.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn read(&mut self, client: ClientId, tag: u64, request: Vec<u8>) -> Result<(), Answer> {
        if self.site.is_recalling() || !self.caught_up {
            let body = b"this site has begun, and does not know yet how far the others are".to_vec();
            return Err(Answer { code: Code::Elsewhere, body });
        }
        self.readers.take(client, tag, request, self.site.stable())
    }

    /// Has read what the store has come to, and tells what was read.
    pub(super) fn go_on_with_reads(&mut self) -> Result<(), ProcessError> {
        self.readers.go_on(self.base.version());
        while let Some((ticket, answer)) = self.readers.done()? {
            self.reply(ticket.client, ticket.tag, &answer);
        }
        Ok(())
    }
}
