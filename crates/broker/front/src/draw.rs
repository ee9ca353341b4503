//! Numbers drawn from a seed: the same for the same seed, for ever (splitmix64).

/// A seed, and how far it was drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeededDraw(u64);

impl SeededDraw {
    /// Draws from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `below`.
    ///
    /// # Panics
    /// If `below` is 0.
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}
