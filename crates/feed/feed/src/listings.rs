//! The instruments of a publication, by locate: each message asks for one, so each is one step away.

use pares_book::Instrument;
use pares_types::{Phase, Price};

use crate::itch;

/// An instrument.
pub(crate) struct Listing {
    /// Its name in messages; `None` of one that cannot be published.
    pub(crate) stock: Option<[u8; 8]>,
    pub(crate) phase: Phase,
    pub(crate) rules: Instrument,
}

impl Listing {
    pub(crate) fn new(rules: Instrument, phase: Phase) -> Self {
        Self { stock: stock(&rules), phase, rules }
    }

    /// It goes by other rules from now on. Whether it was published before.
    pub(crate) fn change(&mut self, rules: Instrument) -> bool {
        let was = std::mem::replace(&mut self.stock, stock(&rules)).is_some();
        self.rules = rules;
        was
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Listings(Vec<Option<Box<Listing>>>);

impl Listings {
    #[inline]
    pub(crate) fn get(&self, locate: u16) -> Option<&Listing> {
        self.0.get(usize::from(locate))?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, locate: u16) -> Option<&mut Listing> {
        self.0.get_mut(usize::from(locate))?.as_deref_mut()
    }

    /// The name of an instrument in messages, if it can be published.
    #[inline]
    pub(crate) fn stock(&self, locate: u16) -> Option<[u8; 8]> {
        self.get(locate)?.stock
    }

    pub(crate) fn insert(&mut self, locate: u16, listing: Listing) {
        let at = usize::from(locate);
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(Box::new(listing));
    }

    pub(crate) fn remove(&mut self, locate: u16) {
        if let Some(listing) = self.0.get_mut(usize::from(locate)) {
            *listing = None;
        }
    }

    /// By locate.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &Listing)> {
        (0..=u16::MAX).zip(&self.0).filter_map(|(locate, listing)| Some((locate, listing.as_deref()?)))
    }
}

/// The name of an instrument in messages; `None` if it cannot be published (docs/protocols/market-data.md, *Invariant*).
pub(crate) fn stock(rules: &Instrument) -> Option<[u8; 8]> {
    let prices = rules.price_min >= Price(0) && u32::try_from(rules.price_max.0).is_ok();
    let fits = prices && u32::try_from(rules.quantity_max.0).is_ok();
    itch::stock(rules.symbol).filter(|_| fits)
}
