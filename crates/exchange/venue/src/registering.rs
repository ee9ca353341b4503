//! A shard's register. That of the lowest shard is the exchange's (docs/decisions/0019-the-register.md).

use pares_book::Book;
use pares_register::{EXCHANGE, Register};
use pares_types::{Outcome, Reason, Registration, Request, Status};

use crate::shard::Shard;

impl<B: Book> Shard<B> {
    /// The same, and it begins with that register.
    #[must_use]
    pub fn with_register(mut self, register: Register) -> Self {
        self.notes.register = register;
        self
    }

    /// Who may do what.
    #[must_use]
    pub fn register(&self) -> &Register {
        &self.notes.register
    }

    pub(crate) fn change_register(&mut self, request: &Request, change: &Registration) -> Outcome {
        if request.member != EXCHANGE {
            return self.market.refuse(request, Reason::NotPermitted);
        }
        match self.notes.register.apply(request.stamp, change) {
            Ok(()) => Outcome { status: Status::Accepted, ..self.market.refuse(request, Reason::None) },
            Err(reason) => self.market.refuse(request, reason),
        }
    }
}
