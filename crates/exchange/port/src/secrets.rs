//! What keeps secrets out of a tap.

use std::fmt::Debug;
use std::ops::Range;

/// Finds what proves a secret in what a client sends, piece by piece as it comes.
pub trait SecretScan: Debug + Send {
    /// Continues over these bytes, and tells each stretch of them that is to be blanked.
    fn pass(&mut self, bytes: &[u8], blank: &mut dyn FnMut(Range<usize>));
}
