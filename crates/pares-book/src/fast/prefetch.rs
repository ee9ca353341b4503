//! Calling to the cache what coming requests will touch.
//!
//! A request that waits for three cache lines one after the other takes a hundred nanoseconds; the same request
//! whose lines were asked for while others were executed takes a third. Under load a venue knows
//! its next requests, so it can ask. A prefetch is a hint: it changes nothing, cannot fault, and may be
//! left out (the safe twin of this module is one that does nothing).

use super::FastBook;
use pares_types::{Command, OrderId, OrderKind, Request};

/// Asks for the cache line of a value.
#[inline(always)]
#[allow(unsafe_code)]
fn call<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing into the program and faults on no address; this one is valid anyway.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(core::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

impl FastBook {
    /// Calls what a request will touch.
    #[inline]
    pub(super) fn call_to_cache(&self, request: &Request) {
        match &request.command {
            Command::Cancel { target } => self.call_order(*target),
            Command::Amend(amendment) => self.call_order(amendment.target),
            Command::Enter(order) => {
                call(self.store.home(OrderId(request.id)));
                if let Some(node) = self.store.nodes.next_free() {
                    call(node);
                }
                if let OrderKind::Limit { price } = order.kind
                    && let Some(level) = self.store.ladder(order.side).near(price)
                {
                    call(&self.store.levels[level]);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn call_order(&self, target: OrderId) {
        let Some(slot) = self.store.find_unread(target) else { return };
        call(&self.store.nodes[slot]);
    }
}
