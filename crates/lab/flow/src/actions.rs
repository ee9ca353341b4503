//! A recorded day as what is to be done, in order: commands to send, and rows to compare once all before them is done.
//!
//! It follows from the recording alone, whatever comes of it. So who has a record of the commands can read the day again and
//! hold anything that was built from that record against the same rows.

use std::collections::VecDeque;

use crate::command::Action;
use crate::recorded::{RecordedEvents, SourceError};
use crate::translate::{Tally, Translator, TranslatorConfig};

/// A day being read.
#[derive(Debug)]
pub struct Actions<S> {
    source: S,
    translator: Translator,
    /// Translated, not handed out.
    translated: VecDeque<Action>,
    time_ns: u64,
}

impl<S: RecordedEvents> Actions<S> {
    /// What `source` asks for, from its first event.
    ///
    /// # Panics
    /// If `config.levels` is 0, or differs from what the source publishes.
    #[must_use]
    pub fn new(source: S, config: TranslatorConfig) -> Self {
        if let Some(levels) = source.published_levels().filter(|&levels| levels > 0) {
            assert_eq!(config.levels, levels, "compare as many levels as are published");
        }
        let translator = Translator::new(config);
        Self { source, translator, translated: VecDeque::new(), time_ns: 0 }
    }

    /// The next one; `None` at the end of the day.
    ///
    /// # Errors
    /// [`SourceError`] if the recording cannot be read on; what was handed out stays valid.
    pub fn next_action(&mut self) -> Result<Option<Action>, SourceError> {
        loop {
            if let Some(action) = self.translated.pop_front() {
                return Ok(Some(action));
            }
            let Some(recorded) = self.source.next_event()? else { return Ok(None) };
            self.time_ns = recorded.time_ns;
            self.translator.translate(&recorded, &mut self.translated);
        }
    }

    /// What was translated so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        self.translator.tally()
    }

    /// When the last event translated happened, nanoseconds after midnight.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The source, for its own counts.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }
}
