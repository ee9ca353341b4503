//! Sessions that want the market, which a thread beside the duty cycle follows as long as one does.
//!
//! A turn in which no session has asked for market data looks at one empty set. Where one has, a turn tells each session once what
//! changed since its last message; one that does not read what it was sent is skipped until it does.

use std::collections::BTreeSet;
use std::sync::Arc;

use pares_port::{DoorTime, MarketSubscription};
use pares_roles::world::{MarketFeed, Sockets};

use super::Connections;
use crate::door_end::ProtocolAdapter;

/// With so much unread a session is sent no more of the market.
const UNREAD_MAX: usize = 64 << 10;

pub(super) struct Watchers {
    market: Option<Arc<dyn MarketFeed>>,
    slots: BTreeSet<usize>,
    /// The market that was sent last.
    told: u64,
    /// Who has not been told of it: they have just asked, or did not read. The others are not looked at for them.
    behind: BTreeSet<usize>,
}

impl Watchers {
    pub(super) fn new(market: Option<Arc<dyn MarketFeed>>) -> Self {
        Self { market, slots: BTreeSet::new(), told: 0, behind: BTreeSet::new() }
    }

    /// What the connection's door wants by now.
    pub(super) fn note(&mut self, slot: usize, end: &mut ProtocolAdapter) {
        let wish = end.market_wish();
        if wish == MarketSubscription::Now {
            self.behind.insert(slot);
        }
        if std::mem::replace(&mut end.wish, wish) == wish {
            return;
        }
        if wish == MarketSubscription::Nothing {
            let watched = self.slots.remove(&slot);
            assert!(watched, "who wants no more of the market has watched it");
        } else {
            self.slots.insert(slot);
        }
        self.follow();
    }

    pub(super) fn gone(&mut self, slot: usize) {
        self.behind.remove(&slot);
        if self.slots.remove(&slot) {
            self.follow();
        }
    }

    /// Has the market followed if a session wants it.
    fn follow(&self) {
        if let Some(market) = &self.market {
            market.follow(!self.slots.is_empty());
        }
    }

    /// The market and who is to be told of it: all if it has changed, else those who are behind.
    fn news(&mut self) -> Option<(Arc<dyn MarketFeed>, BTreeSet<usize>)> {
        let market = self.market.as_ref().filter(|_| !self.slots.is_empty())?;
        let version = market.version();
        let is_news = std::mem::replace(&mut self.told, version) != version;
        let behind = std::mem::take(&mut self.behind);
        let whom = if is_news { self.slots.clone() } else { behind };
        (!whom.is_empty()).then(|| (Arc::clone(market), whom))
    }
}

impl<S: Sockets> Connections<S> {
    /// Tells those who watch the market what changed, if anything did.
    pub(super) fn tell_market(&mut self, at: DoorTime) {
        let Some((market, whom)) = self.watchers.news() else { return };
        // Who waits for books that are not there is sent them once they are, which is news.
        for slot in whom {
            assert!(self.slots[slot].is_some(), "who watches the market is connected");
            if self.slots[slot].as_ref().is_some_and(|one| one.unsent() > UNREAD_MAX) {
                self.watchers.behind.insert(slot);
                continue;
            }
            self.step(slot, at, |connection, session, heard| {
                connection.with_door(session, heard, |door, sink| door.on_market(at, &*market, sink));
                false
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use pares_port::{MarketBook, MarketView};

    use super::*;

    #[derive(Debug, Default)]
    struct Market(AtomicU64);

    impl MarketView for Market {
        fn book(&self, _: &str) -> Option<Arc<MarketBook>> {
            None
        }

        fn is_whole(&self) -> bool {
            false
        }
    }

    impl MarketFeed for Market {
        fn follow(&self, _: bool) {}

        fn version(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn doors_view_market_only_on_change_and_when_behind() {
        let market = Arc::new(Market::default());
        let mut watchers = Watchers::new(Some(Arc::clone(&market) as Arc<dyn MarketFeed>));
        watchers.slots.extend([1, 2]);
        let mut whom = || watchers.news().map(|(_, whom)| whom.into_iter().collect::<Vec<_>>());
        assert_eq!(whom(), None);
        market.0.fetch_add(1, Ordering::Relaxed);
        assert_eq!([whom(), whom()], [Some(vec![1, 2]), None]);
        watchers.behind.insert(2);
        let mut whom = || watchers.news().map(|(_, whom)| whom.into_iter().collect::<Vec<_>>());
        assert_eq!([whom(), whom()], [Some(vec![2]), None]);
    }
}
