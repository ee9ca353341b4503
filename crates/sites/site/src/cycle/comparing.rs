//! What a site says and hears of what it has applied, and its end if it is alone with that.

use pares_wice::Notice;

use super::Cycle;
use crate::application::Application;
use crate::comparison::COMPARE_TICKS;
use crate::error::ProcessError;
use crate::place::note_differs;
use crate::place::standing::Word;
use crate::world::World;

impl<W: World, A: Application> Cycle<W, A> {
    /// Once a second: it tells all, and judges itself.
    pub(super) fn tick_comparison(&mut self) -> Result<(), ProcessError> {
        if !self.ticks.is_multiple_of(COMPARE_TICKS) {
            return Ok(());
        }
        let new = self.comparison.take_new().into_iter();
        self.notices.extend(new.map(|(site, version)| Notice::Differs(site, version)));
        if let Some(version) = self.comparison.is_alone(self.ticks) {
            // Started again it must not serve either.
            note_differs(self.world.notes(), version)?;
            return Err(ProcessError::Differs { version });
        }
        if let Some(said) = self.comparison.word() {
            let word = Word::Digest(said);
            self.others(false).into_iter().for_each(|site| self.say(site, &word));
        }
        Ok(())
    }

    /// Who has applied something else, for operators.
    pub(super) fn differing(&self) -> Vec<String> {
        let differing = self.comparison.differing();
        let told = differing.map(|(site, version)| {
            format!("{}.{} differs up to version {version}", site.cluster.0, site.number)
        });
        told.collect()
    }
}
