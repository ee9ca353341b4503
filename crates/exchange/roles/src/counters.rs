//! What a node counts, by name.

/// Names a node's counters once: an enum of them, and their names in file order.
#[macro_export]
macro_rules! counters {
    ($($counter:ident $name:literal $what:literal)+) => {
        /// A counter of the node.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Counter {
            $(#[doc = $what] $counter,)+
        }

        impl Counter {
            /// As other processes find it.
            #[allow(dead_code, reason = "not every node reads the others' counters")]
            pub(crate) fn name(self) -> &'static str {
                COUNTERS[self as usize]
            }
        }

        impl From<Counter> for usize {
            #[inline]
            fn from(counter: Counter) -> usize {
                counter as usize
            }
        }

        /// The counters' names, in file order.
        pub(crate) const COUNTERS: &[&str] = &[$($name),+];
    };
}
pub(crate) use counters;
