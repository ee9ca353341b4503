//! What a receiver was sent that came to nothing.

/// What packets came to nothing, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Packets that are none.
    pub malformed: u64,
    /// Packets of another session.
    pub strange: u64,
    /// Messages that had come already.
    pub known: u64,
    /// Messages that came too early to be kept.
    pub too_early: u64,
}

impl Dropped {
    /// Counts those too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.malformed += other.malformed;
        self.strange += other.strange;
        self.known += other.known;
        self.too_early += other.too_early;
    }
}
