//! Calling to the cache what coming requests will touch.
//!
//! A request that waits for three cache lines one after the other takes a hundred nanoseconds; the same request
//! whose lines were asked for while others were executed takes a third. Under load a venue knows
//! its next requests, so it can ask. A prefetch is a hint: it changes nothing, cannot fault, and may be
//! left out (the safe twin of this module is one that does nothing).

use super::FastBook;
use super::slab::Slot;
use pares_types::OrderId;

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
    #[inline]
    pub fn prefetch_id(&self, order: OrderId) {
        call(self.store.home(order));
    }
    #[inline]
    pub fn prefetch_order(&self, order: OrderId) {
        if let Some(slot) = self.store.find_unread(order) { call(&self.store.nodes[slot]); }
    }
    #[inline]
    pub fn prefetch_neighbours(&self, order: OrderId) {
        if let Some(slot) = self.store.find_unread(order) {
            let node = &self.store.nodes[slot];
            for links in &node.links { 
                for slot in [links.prev, links.next] {
                    if let Some(n) = self.store.nodes.get(slot) { call(n); } } }
            if let Some(level) = self.store.levels.get(node.level) { call(level); }
        }
    }
}
