//! One record, and the messages that come of it.

use pares_types::{Position, Timestamp};
use zerocopy::{Immutable, IntoBytes};

use crate::itch;
use crate::itch::{AddOrder, Deleted, Head};
use crate::living::{Order, Shown};
use crate::publication::FeedSink;

/// One record, and what comes of it.
pub(crate) struct Step<'a, S> {
    pub(crate) position: Position,
    pub(crate) stamp: Timestamp,
    /// The instrument of the events that are read.
    pub(crate) locate: Option<u16>,
    /// References given out.
    pub(crate) references: u64,
    /// The event that is read.
    pub(crate) index: u64,
    pub(crate) sink: Option<&'a mut S>,
}

impl<S: FeedSink> Step<'_, S> {
    pub(crate) fn send(&mut self, message: &(impl IntoBytes + Immutable)) {
        if let Some(sink) = &mut self.sink {
            sink.message(message.as_bytes());
        }
    }

    pub(crate) fn head(&self, kind: u8, locate: u16) -> Head {
        Head::new(kind, locate, self.stamp)
    }

    pub(crate) fn reference(&mut self) -> u64 {
        self.references += 1;
        self.position.0 << 16 | (self.references - 1)
    }

    pub(crate) fn match_number(&self) -> u64 {
        self.position.0 << 16 | self.index
    }

    /// An order is displayed no more.
    pub(crate) fn delete(&mut self, locate: u16, shown: Option<Shown>) {
        if let Some(Shown { reference, told: true, .. }) = shown {
            let head = self.head(Deleted::KIND, locate);
            self.send(&Deleted { head, reference: reference.into() });
        }
    }

    /// An order is displayed.
    pub(crate) fn add(&mut self, stock: [u8; 8], order: &Order, shown: Shown) {
        let Shown { reference, price, shares, .. } = shown;
        let (head, side) = (self.head(AddOrder::KIND, order.locate), itch::side(order.side));
        let (price, shares) = (itch::price(price), itch::shares(shares));
        self.send(&AddOrder { head, reference: reference.into(), side, shares, stock, price });
    }
}
