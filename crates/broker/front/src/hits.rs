//! Hits that no command has used: the log is to have them all the same.

use pares_broker::QuoteBrought;

use crate::desk::DeskEffect;
use crate::front::BrokerFront;
use crate::user::{Moment, UserPart};

impl BrokerFront {
    /// A hit that its desk gave to another front first, which is gone: it is noted as nobody's, unless the log has it.
    pub fn take_hit(&mut self, brought: QuoteBrought, now_ms: u64) {
        self.parts[0].note(Moment::Hit(brought));
        self.advance(0, now_ms);
    }

    /// Hits that no command has used are noted as nobody's.
    pub fn settle_hits(&mut self, now_ms: u64) {
        self.note_unclaimed();
        self.advance(0, now_ms);
    }

    /// Whether the log has every hit that this front was given.
    #[must_use]
    pub fn has_noted(&self) -> bool {
        !self.desk.has_unclaimed() && self.parts.iter().all(UserPart::has_noted)
    }

    /// Before everything is dumped, hits that no command used are noted.
    pub(crate) fn note_unclaimed(&mut self) {
        self.desk.settle();
        for said in self.desk.take_effects() {
            if let DeskEffect::Unclaimed { brought } = said {
                self.parts[0].note(Moment::Hit(brought));
            }
        }
    }
}
