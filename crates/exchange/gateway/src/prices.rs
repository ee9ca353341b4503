//! The last price of each instrument, as the committed stream tells it: what a price collar and the worth of a market order refer to.

use std::collections::BTreeMap;

use pares_types::{Event, InstrumentId, Price, Request};

/// The price of the last trade, or the reference price before there was one.
#[derive(Default)]
pub(crate) struct Prices(BTreeMap<InstrumentId, Price>);

impl Prices {
    pub(crate) fn last(&self, instrument: InstrumentId) -> Option<Price> {
        self.0.get(&instrument).copied()
    }

    pub(crate) fn set(&mut self, instrument: InstrumentId, price: Price) {
        self.0.insert(instrument, price);
    }

    /// A record of the committed stream: of its trades in an instrument the last one counts.
    pub(crate) fn follow(&mut self, request: &Request, events: &[Event]) {
        let mut instrument = request.instrument;
        let mut last = None;
        for event in events {
            match *event {
                Event::Fill { price, .. } => last = Some(price),
                Event::PhaseEntered { reference: Some(price), .. } => {
                    self.0.entry(instrument).or_insert(price);
                }
                Event::Instrument(next) => {
                    last.take().into_iter().for_each(|price| self.set(instrument, price));
                    instrument = next;
                }
                _ => {}
            }
        }
        if let Some(price) = last {
            self.set(instrument, price);
        }
    }
}
