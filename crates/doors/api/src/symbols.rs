//! Which instrument a symbol is.
//!
//! To ask a gateway for each order which number its symbol has would make two questions of one. To believe for long what a gateway said once would refuse orders for a symbol that was
//! removed and listed again, under another number. Here a number is believed for two seconds, and while requests come one of them asks again each second; a symbol that is not known is looked
//! up before a client receives that there is no such instrument. Numbers are used once: an order under an old one is never another's. But its refusal is in the record and its name is used,
//! so it is not asked again here; no number is believed behind it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pares_resources::InstrumentTold;

/// So old may be an instrument's state when a client receives it.
pub(crate) const FRESH: Duration = Duration::from_secs(1);
/// So long a symbol is believed to have its number.
pub(crate) const BELIEVED: Duration = Duration::from_secs(2);

/// Instruments by symbol, and when they were asked for.
struct Listed {
    asked: Instant,
    by_symbol: BTreeMap<String, Arc<InstrumentTold>>,
}

/// The list that a gateway told last.
#[derive(Default)]
pub(crate) struct Symbols {
    listed: RwLock<Option<Listed>>,
    /// When a request asked on behalf of all.
    renewed: Mutex<Option<Instant>>,
}

impl Symbols {
    /// The instrument of that symbol, if it was asked for when `is_recent` says.
    pub(crate) fn known(
        &self,
        symbol: &str,
        is_recent: impl Fn(Instant) -> bool,
    ) -> Option<Arc<InstrumentTold>> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.as_ref().filter(|listed| is_recent(listed.asked))?.by_symbol.get(symbol).cloned()
    }

    pub(crate) fn is_asked(&self, is_recent: impl Fn(Instant) -> bool) -> bool {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.as_ref().is_some_and(|listed| is_recent(listed.asked))
    }

    pub(crate) fn take(&self, asked: Instant, instruments: &[InstrumentTold]) {
        let of = |one: &InstrumentTold| (one.status.symbol.to_string(), Arc::new(one.clone()));
        let told = Listed { asked, by_symbol: instruments.iter().map(of).collect() };
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if listed.as_ref().is_none_or(|before| before.asked < asked) {
            *listed = Some(told);
        }
    }

    pub(crate) fn forget(&self) {
        *self.listed.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether this is the one who asks for all, so that no later request has to.
    pub(crate) fn is_to_renew(&self) -> bool {
        if self.is_asked(|asked| asked.elapsed() < FRESH) {
            return false;
        }
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_to_renew = renewed.is_none_or(|renewed| renewed.elapsed() >= FRESH);
        if is_to_renew {
            *renewed = Some(Instant::now());
        }
        is_to_renew
    }
}
