//! What a receiver believes of what comes, and when it answers.

use std::collections::BTreeMap;

use crate::{LogName, MirrorFault, MirrorMessage, agreed};

/// Bytes stored of a log, or of files, after which the source learns of it without waiting for the end of the round: about a stretch, for a
/// source whose line is slow waits for this.
const TOLD_EVERY: u64 = 128 << 10;
/// A longer file is not believed.
const FILE_MAX: u64 = 1 << 30;

#[derive(Debug, Default)]
struct Counted {
    taken: u64,
    told: u64,
}

impl Counted {
    fn is_due(&self, round_over: bool) -> bool {
        self.taken - self.told >= if round_over { 1 } else { TOLD_EVERY }
    }
}

#[derive(Debug, Default)]
struct Taking {
    written: u64,
    durable: u64,
    released: u64,
    counted: Counted,
}

/// One connection of a receiver.
#[derive(Debug, Default)]
pub struct ReceiverRules {
    greeted: bool,
    logs: BTreeMap<LogName, Taking>,
    /// The file that comes, how long it is, and how much of it has come.
    file: Option<(String, u64, u64)>,
    files: Counted,
}

impl ReceiverRules {
    /// Takes what the source says, before it is acted upon.
    ///
    /// # Errors
    /// If it has no place there: the connection ends.
    pub fn on(&mut self, message: &MirrorMessage<'_>) -> Result<(), MirrorFault> {
        if let MirrorMessage::Hello { speaks, understands } = *message {
            agreed(speaks, understands)?;
            return match std::mem::replace(&mut self.greeted, true) {
                true => Err(MirrorFault::OutOfTurn("a second hello")),
                false => Ok(()),
            };
        }
        if let MirrorMessage::Ends { why } = *message {
            let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
            return Err(MirrorFault::Ended(why.chars().take(500).map(plain).collect()));
        }
        if !self.greeted {
            return Err(MirrorFault::OutOfTurn("something before its hello"));
        }
        match *message {
            MirrorMessage::Begins { log, .. } => match self.logs.insert(log, Taking::default()) {
                Some(_) => Err(MirrorFault::OutOfTurn("a log that begins twice")),
                None => Ok(()),
            },
            MirrorMessage::Stretch { log, bytes, .. } => {
                self.taking(log)?.counted.taken += bytes.len() as u64;
                if bytes.is_empty() { Err(MirrorFault::OutOfTurn("a stretch of nothing")) } else { Ok(()) }
            }
            MirrorMessage::Marks { log, written, durable, released } => {
                self.on_marks(log, written, durable, released)
            }
            MirrorMessage::Piece { at, of, file: (path, bytes) } => {
                self.on_piece(at, of, path, bytes.len() as u64)
            }
            MirrorMessage::Keep { .. } if self.file.is_some() => Err(MirrorFault::OutOfTurn("half a file")),
            MirrorMessage::Keep { .. } => Ok(()),
            MirrorMessage::Round { .. } => Ok(()),
            _ => Err(MirrorFault::OutOfTurn("what only a receiver says")),
        }
    }

    fn taking(&mut self, log: LogName) -> Result<&mut Taking, MirrorFault> {
        self.logs.get_mut(&log).ok_or(MirrorFault::OutOfTurn("something of a log that has not begun"))
    }

    fn on_marks(
        &mut self,
        log: LogName,
        written: u64,
        durable: u64,
        released: u64,
    ) -> Result<(), MirrorFault> {
        let taking = self.taking(log)?;
        let rise = written >= taking.written && durable >= taking.durable && released >= taking.released;
        if !rise || durable > written || released > written {
            return Err(MirrorFault::OutOfTurn("marks that cannot be"));
        }
        (taking.written, taking.durable, taking.released) = (written, durable, released);
        Ok(())
    }

    fn on_piece(&mut self, at: u64, of: u64, path: &str, bytes: u64) -> Result<(), MirrorFault> {
        let (file, file_of, had) = self.file.take().unwrap_or_else(|| (path.to_owned(), of, 0));
        let follows = file == path && file_of == of && had == at && of <= FILE_MAX;
        let has = had.saturating_add(bytes);
        if !follows || has > of || bytes == 0 && of > 0 {
            return Err(MirrorFault::OutOfTurn("another piece of a file than the next"));
        }
        self.files.taken += bytes;
        self.file = (has < of).then_some((file, of, has));
        Ok(())
    }

    /// Whether a file is there as a whole: the last piece was its last.
    #[must_use]
    pub fn is_file_whole(&self) -> bool {
        self.file.is_none()
    }

    /// Of the source's log: written, and durable.
    #[must_use]
    pub fn marks(&self, log: LogName) -> (u64, u64) {
        self.logs.get(&log).map_or((0, 0), |taking| (taking.written, taking.durable))
    }

    /// What the source is to be told now: what was stored, at the end of a round or when it is much.
    pub fn answers(&mut self, round_over: bool, mut tell: impl FnMut(MirrorMessage<'static>)) {
        for (&log, Taking { counted, .. }) in &mut self.logs {
            if counted.is_due(round_over) {
                counted.told = counted.taken;
                tell(MirrorMessage::Taken { log, bytes: counted.taken });
            }
        }
        if self.files.is_due(round_over) {
            self.files.told = self.files.taken;
            tell(MirrorMessage::TakenFiles { bytes: self.files.taken });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: LogName = LogName::Gateway(0);
    const HELLO: MirrorMessage<'_> = MirrorMessage::Hello { speaks: 1, understands: 1 };
    const BEGINS: MirrorMessage<'_> =
        MirrorMessage::Begins { log: LOG, segment_bytes: 4096, from: 64, afresh: false };

    fn refused(messages: &[MirrorMessage<'_>]) -> Option<usize> {
        let mut receiver = ReceiverRules::default();
        messages.iter().position(|message| receiver.on(message).is_err())
    }

    const fn marks(written: u64, durable: u64, released: u64) -> MirrorMessage<'static> {
        MirrorMessage::Marks { log: LOG, written, durable, released }
    }

    const fn piece(at: u64, of: u64, bytes: &'static [u8]) -> MirrorMessage<'static> {
        MirrorMessage::Piece { at, of, file: ("epoch", bytes) }
    }

    #[test]
    fn what_has_no_place_ends_the_connection() {
        let stretch = MirrorMessage::Stretch { log: LOG, from: 64, bytes: b"x" };
        let whole = [
            HELLO,
            BEGINS,
            stretch,
            marks(4096, 8, 0),
            piece(0, 2, b"a"),
            piece(1, 2, b"b"),
            MirrorMessage::Round { number: 1 },
        ];
        assert_eq!(refused(&whole), None);
        assert_eq!(refused(&[BEGINS]), Some(0));
        assert_eq!(refused(&[HELLO, HELLO]), Some(1));
        assert_eq!(refused(&[HELLO, stretch]), Some(1));
        assert_eq!(refused(&[HELLO, BEGINS, BEGINS]), Some(2));
        assert_eq!(refused(&[HELLO, BEGINS, marks(8, 9, 0)]), Some(2), "durable and not written");
        assert_eq!(refused(&[HELLO, BEGINS, marks(9, 9, 0), marks(8, 8, 0)]), Some(3), "less than before");
        assert_eq!(refused(&[HELLO, piece(1, 2, b"b")]), Some(1));
        assert_eq!(refused(&[HELLO, piece(0, 2, b"a"), piece(0, 2, b"a")]), Some(2));
        assert_eq!(refused(&[HELLO, piece(0, 2, b"abc")]), Some(1));
        assert_eq!(refused(&[HELLO, piece(0, 2, b"a"), MirrorMessage::Keep { paths: "" }]), Some(2));
        assert_eq!(refused(&[HELLO, MirrorMessage::Go]), Some(1));
    }

    #[test]
    fn it_answers_at_the_end_of_a_round_or_when_it_is_much() {
        let mut receiver = ReceiverRules::default();
        let bytes = vec![1; TOLD_EVERY as usize / 2];
        let stretch = MirrorMessage::Stretch { log: LOG, from: 64, bytes: &bytes };
        [HELLO, BEGINS, stretch].iter().for_each(|message| receiver.on(message).unwrap());
        let mut told = Vec::new();
        receiver.answers(false, |message| told.push(message));
        assert!(told.is_empty());
        receiver.on(&stretch).unwrap();
        receiver.answers(false, |message| told.push(message));
        receiver.answers(true, |message| told.push(message));
        assert_eq!(told, [MirrorMessage::Taken { log: LOG, bytes: TOLD_EVERY }]);
        receiver.on(&piece(0, 1, b"a")).unwrap();
        receiver.answers(true, |message| told.push(message));
        assert_eq!(told[1..], [MirrorMessage::TakenFiles { bytes: 1 }]);
    }
}
