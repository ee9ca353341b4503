//! What a report tells of those who are refused.

use super::{Cycle, told};
use crate::report::STRANGER;
use crate::world::World;

/// Strangers of whom a report tells.
const STRANGERS_TOLD_MAX: usize = 16;

impl<W: World, A> Cycle<W, A> {
    /// Sites first; of strangers no more than somebody would read.
    pub(super) fn refused(&self) -> Vec<String> {
        let all = || self.turned_away.iter();
        let sites = all().filter_map(|(who, why)| Some(told(who.as_ref().ok()?, why)));
        let strangers =
            all().filter_map(|(who, why)| Some(told(&format!("{STRANGER}{}", who.as_ref().err()?), why)));
        sites.chain(strangers.take(STRANGERS_TOLD_MAX)).collect()
    }
}
