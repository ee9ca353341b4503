//! Instruments that come and go.

use super::*;

impl<B: Book> Market<B> {
    /// Lists a new instrument. It starts closed: nothing is known yet of when it is to trade.
    pub(super) fn add_instrument(&mut self, request: &Request, symbol: Symbol) -> Outcome {
        if self.books.len() >= Instrument::SHARD_MAX {
            return refused(request, Reason::TooManyInstruments);
        }
        if self.books.iter().any(|book| book.instrument().symbol.reads_as(&symbol)) {
            return refused(request, Reason::SymbolInUse);
        }
        let instrument = Instrument::listed(request.instrument, symbol);
        let mut snapshot = B::new(instrument).snapshot();
        snapshot.trading.phase = Phase::Closed;
        let book = B::restore(instrument, &snapshot).expect("an empty book may be closed");
        let at = self.directory.insert(instrument.id);
        self.digest.insert(at, &self.books, &book);
        self.deadlines.insert(at, due_at(&book));
        self.statistics.insert(at, Statistics::default());
        self.books.insert(at, book);
        if let Some(copying) = &mut self.copying {
            copying.insert(at);
        }
        accepted(request)
    }

    /// Cancels what is there; the book goes with its last order.
    pub(super) fn remove_instrument(
        &mut self,
        at: usize,
        request: &Request,
        sink: &mut impl EventSink,
    ) -> Outcome {
        let outcome = self.apply_at(at, request, sink);
        if outcome.status == Status::Accepted && self.books[at].orders_len() == 0 {
            self.digest.remove(at, &self.books);
            self.directory.remove(at);
            self.deadlines.remove(at);
            self.statistics.remove(at);
            self.books.remove(at);
            if let Some(copying) = &mut self.copying {
                copying.remove(at);
            }
        }
        outcome
    }
}
