//! All books as they were at one moment, copied one by one while requests keep changing them.
//!
//! Copying a large market at once stops it for as long as that takes: seconds, with ten million orders. Copying it book by book without
//! more ado gives books of different moments, a state that never was. So a book that is about to change, and belongs to a moment
//! that is not copied to its end, is copied first, into memory, and handed out when its turn comes.
//!
//! ```text
//!  begin_copy      books  1 2 3 4 5 6 7      all awaited
//!  copy_book              #                  1 is written from the book
//!  a request for 4              k            4 is kept, then changed
//!  copy_book x 4            # # # #          4 is written from what was kept
//! ```
//! A book that comes after the moment is not awaited, one that goes was kept when its orders were cancelled. What this costs a request
//! is bounded by the one book it meets, once; a request for all instruments that would have many books kept ends the copy instead
//! ([`KEPT_ORDERS_MAX`]). Memory is bounded by the books of the moment. Without a copy under way it costs a branch.
//!
//! Books are kept before the request is applied to any of them ([`Market::prepare`]), and for what it may change: writing a
//! million orders takes 0.1 s, which is no time of the matching engine's, and who watches that for loops must not count it.

use std::collections::BTreeMap;

use pares_types::{Command, InstrumentId, Request, Timestamp};

use super::{Market, Stage, Statistics, permit};
use crate::Book;
use crate::doomed::Doomed;

/// Called every now and then in what takes as long as a book is large.
pub type Pause<'a> = &'a mut dyn FnMut();

/// Writes a book and what is beside it behind what is there.
pub type WriteBook<B> = fn(&mut Vec<u8>, &B, Beside, Pause<'_>);

/// What a market keeps beside each book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// See [`Market::deadlines`].
    pub deadline: Timestamp,
    /// What was traded today.
    pub statistics: Statistics,
}

/// Orders of the books that one request may have kept, unless they are all in one book: a millisecond or two. A request that would
/// need more ends the copy; its caller begins another one.
pub const KEPT_ORDERS_MAX: usize = 16_384;

/// About what a book and an order take, so that memory is asked for once.
const BOOK_BYTES: usize = 512;
const ORDER_BYTES: usize = 64;

/// What [`Market::copy_book`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// It has written a book.
    Book,
    /// It has written nothing: all books are written, and the copy is over.
    All,
    /// It has written nothing: no copy is under way.
    NoCopy,
}

/// What is left of a copy under way.
#[derive(Debug)]
pub(super) struct Copying<B> {
    write: WriteBook<B>,
    /// Beside the books: whether it is of the moment, not written, and unchanged since.
    awaited: Vec<bool>,
    /// No book before this place is awaited.
    next: usize,
    /// Books of the moment that have changed or gone since, as they were then.
    kept: BTreeMap<InstrumentId, Vec<u8>>,
}

impl<B: Book> Copying<B> {
    /// The book at that place may change.
    fn keep(&mut self, at: usize, book: &B, beside: Beside, pause: Pause<'_>) {
        let mut bytes = Vec::with_capacity(BOOK_BYTES + ORDER_BYTES * book.orders_len());
        (self.write)(&mut bytes, book, beside, pause);
        self.kept.insert(book.instrument().id, bytes);
        self.awaited[at] = false;
    }

    /// Whether the book at that place must not change yet.
    pub(super) fn awaits(&self, at: usize) -> bool {
        self.awaited[at]
    }

    /// A book has come to that place among the others.
    pub(super) fn insert(&mut self, at: usize) {
        self.awaited.insert(at, false);
    }

    /// The book at that place has gone; it was kept if it was awaited.
    pub(super) fn remove(&mut self, at: usize) {
        assert!(!self.awaited.remove(at), "a book learns of its removal first");
        self.next -= usize::from(at < self.next);
    }

    /// The place of the first awaited book.
    fn awaited_first(&mut self) -> Option<usize> {
        let found = self.awaited[self.next..].iter().position(|&awaited| awaited);
        self.next = found.map_or(self.awaited.len(), |ahead| self.next + ahead);
        found.map(|_| self.next)
    }
}

impl<B: Book> Market<B> {
    /// Begins a copy of all books as they are now; [`copy_book`](Self::copy_book) hands them out, written by `write`. A copy under way is
    /// given up.
    pub fn begin_copy(&mut self, write: WriteBook<B>) {
        let awaited = vec![true; self.books.len()];
        self.copying = Some(Box::new(Copying { write, awaited, next: 0, kept: BTreeMap::new() }));
    }

    /// Writes the next book of the moment of [`begin_copy`](Self::begin_copy) behind what is in `out`, in ascending order of instrument
    /// id.
    pub fn copy_book(&mut self, out: &mut Vec<u8>, pause: Pause<'_>) -> Copied {
        let Some(copying) = &mut self.copying else { return Copied::NoCopy };
        let awaited = copying.awaited_first();
        let id = |at: usize| self.books[at].instrument().id;
        let kept_first = copying.kept.first_entry();
        match (kept_first, awaited) {
            (Some(kept), at) if at.is_none_or(|at| *kept.key() < id(at)) => out.append(&mut kept.remove()),
            (_, Some(at)) => {
                let (deadline, statistics) = (self.deadlines[at], self.statistics[at]);
                (copying.write)(out, &self.books[at], Beside { deadline, statistics }, pause);
                copying.awaited[at] = false;
            }
            (_, None) => {
                self.copying = None;
                return Copied::All;
            }
        }
        Copied::Book
    }

    /// Gives up a copy under way, and the memory it takes.
    pub fn end_copy(&mut self) {
        self.copying = None;
    }

    /// Has the books kept that this request may change.
    #[inline]
    pub(super) fn keep_before(&mut self, request: &Request, pause: Pause<'_>) {
        if self.copying.is_some() {
            self.keep_visited(request, pause);
        }
    }

    fn keep_visited(&mut self, request: &Request, pause: Pause<'_>) {
        let Some(mut copying) = self.copying.take() else { return };
        let one = self.directory.find(request.instrument);
        let places = one.map_or(0..self.books.len(), |at| at..at + 1);
        let mut kept_orders = 0;
        for at in places {
            let book = &self.books[at];
            if !copying.awaited[at] || one.is_none() && !self.visits(request, at) {
                continue;
            }
            if kept_orders > 0 && kept_orders + book.orders_len() > KEPT_ORDERS_MAX {
                return;
            }
            kept_orders += book.orders_len();
            copying.keep(at, book, self.beside_at(at), pause);
        }
        self.copying = Some(copying);
    }

    /// Whether a request that is not for one of the books may change the one at that place.
    fn visits(&self, request: &Request, at: usize) -> bool {
        let permitted = request.instrument.0 == 0 && permit(request).is_ok();
        if let Some(doomed) = Doomed::by(request) {
            let own = matches!(request.command, Command::MassCancel { .. }) && request.instrument.0 == 0;
            return (own || permitted) && self.concerns(&doomed, at);
        }
        match request.command {
            Command::Time { .. } if self.day.stage == Stage::Over => false,
            Command::Time { .. } if self.day.stage == Stage::On => {
                permitted && self.is_due(at, request.stamp)
            }
            Command::Time { .. } | Command::BeginDay { .. } | Command::EndDay { .. } => permitted,
            _ => false,
        }
    }
}
