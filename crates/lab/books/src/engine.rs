//! What is measured.

use pares_flow::BookMessage;

use crate::Output;

/// A book, or several, with whatever stands between it and the messages.
pub trait Engine {
    /// An empty one.
    fn new() -> Self;

    /// Takes the messages one after the other, as if each came alone: what the engine may use of those that come later is
    /// that they are known. Reports all that happens to `out` and calls `after` when it is done with a message.
    ///
    /// # Panics
    /// If the engine finds itself broken.
    fn apply(&mut self, messages: &[BookMessage], out: &mut impl Output, after: &mut impl FnMut());

    /// Orders that rest.
    fn resting(&self) -> usize;
}
