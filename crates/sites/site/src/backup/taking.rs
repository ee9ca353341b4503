//! Taking a copy: pieces asked of one site, a few under way at a time, into a file.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pares_os::process::Lock;
use pares_wice::codec::DecodeError;
use pares_wice::{Key, Stored};

use super::BackupError;
use super::copy_file::{CopyFacts, CopyHead, CopyWriter};
use super::folder::BackupFolder;
use super::hose::{BackupConnection, TAG, handed};
use super::messages::{Begun, Handed};
use crate::cycle::TICK;
use crate::place::giving::KEPT_TICKS;
use crate::place::standing::Piece;
use crate::protocol::{Ask, WantedPieces};

/// Pieces under way: what a site may have waiting for an application has room for so many of the longest.
const WINDOW: u32 = 4;
/// Longest sleep: the site lets a copy go of which nothing is taken for ten seconds.
const SLEEP_MAX: Duration = Duration::from_secs(1);
const KEPT_MS: u128 = TICK.as_millis() * KEPT_TICKS as u128;
const _: () = assert!(2 * SLEEP_MAX.as_millis() < KEPT_MS, "a copy is kept while its taker sleeps");

/// How fast a copy may be taken, so that those whom the site serves hardly notice.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Bytes of items a second, at least 1.
    pub bytes_per_s: u64,
}

impl Pace {
    /// How long to wait before more is taken, when so many bytes were taken in so long.
    fn pause(self, bytes: u64, elapsed: Duration) -> Duration {
        let due = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s.max(1) as f64);
        due.saturating_sub(elapsed).min(SLEEP_MAX)
    }
}

/// Takes a copy into `folder`. `begun` hears when it is known what it will be of, before any of it is taken, and may refuse it; `progress` how far it is, after each
/// piece, and says whether to continue.
///
/// # Errors
/// Those of `begun`; if the site does not give it, or not to its end, or it cannot be written, or it was not to continue: then there is no file that could be taken for one.
pub fn take(
    hose: &mut BackupConnection,
    folder: &BackupFolder,
    pace: Pace,
    mut begun: impl FnMut(&str, Stored, u64) -> Result<(), BackupError>,
    mut progress: impl FnMut(CopyFacts) -> bool,
) -> Result<CopyFacts, BackupError> {
    let mut copying = Copying::new(folder);
    hose.ask(&copying.question())?;
    let began = Instant::now();
    loop {
        let reply = hose.receive()?;
        match copying.reply(&reply, hose.site())? {
            Copied::Begun(head) => begun(&head.identity, head.stored, head.taken_ms)?,
            Copied::Whole(facts) => return Ok(facts),
            Copied::Piece(facts, _) if !progress(facts) => {
                return Err(BackupError::No("stopped before the copy was complete".into()));
            }
            Copied::Piece(facts, more) => {
                std::thread::sleep(pace.pause(facts.bytes, began.elapsed()));
                more.map_or(Ok(()), |more| hose.ask(&more))?;
            }
        }
    }
}

/// A copy that is being taken of one site, by questions and replies that the caller carries.
pub struct Copying {
    folder: BackupFolder,
    wanted: WantedPieces,
    /// From when on it is known what it is of; nobody else writes one here meanwhile.
    file: Option<(CopyWriter, Lock)>,
}

/// What a reply was of a copy.
pub enum Copied {
    /// It begins.
    Begun(CopyHead),
    /// So much has come; what to ask then, if anything.
    Piece(CopyFacts, Option<Ask>),
    /// It is there.
    Whole(CopyFacts),
}

impl Copying {
    /// One into `folder`.
    #[must_use]
    pub fn new(folder: &BackupFolder) -> Self {
        let wanted = WantedPieces { copy: 0, next: 0, after: Key::new([]), until: WINDOW };
        Self { folder: folder.clone(), wanted, file: None }
    }

    /// What to ask the site.
    #[must_use]
    pub fn question(&self) -> Ask {
        Ask::Copy(TAG, self.wanted.clone())
    }

    /// Takes the next reply of `site`.
    ///
    /// # Errors
    /// If the site does not give it, or what it says is not the next piece, or that cannot be written. It has failed then.
    pub fn reply(&mut self, reply: &[u8], site: &str) -> Result<Copied, BackupError> {
        match (handed(reply, site)?, &mut self.file) {
            (Handed::Begun(begun), None) => self.begins(begun).map(Copied::Begun),
            (Handed::Piece(piece), Some((file, _)))
                if piece.copy == self.wanted.copy && piece.number == self.wanted.next =>
            {
                file.write(&piece.items)?;
                self.go_on(&piece)
            }
            _ => Err(nonsense()),
        }
    }

    fn begins(&mut self, begun: Begun) -> Result<CopyHead, BackupError> {
        assert!(self.file.is_none(), "a copy begins once");
        let Begun { copy, identity, stored } = begun;
        self.wanted.copy = copy;
        self.folder.takes(&identity)?;
        let lock = self.folder.lock_for_copy()?;
        let head = CopyHead { identity, stored, taken_ms: now_ms() };
        self.file = Some((CopyWriter::create(&self.folder.copy_path(stored.version), &head)?, lock));
        Ok(head)
    }

    /// The piece after `piece` is the next, and more may come.
    fn go_on(&mut self, piece: &Piece) -> Result<Copied, BackupError> {
        assert_eq!(piece.number, self.wanted.next, "pieces are taken in their order");
        let (file, _lock) = self.file.take_if(|_| piece.is_last).unzip();
        if let Some(file) = file {
            return file.end().map(Copied::Whole);
        }
        let wanted = &mut self.wanted;
        wanted.next += 1;
        if let Some((last, _)) = piece.items.last() {
            wanted.after = last.clone();
        }
        let asks = wanted.next + WINDOW / 2 >= wanted.until;
        if asks {
            wanted.until = wanted.next + WINDOW;
        }
        assert!(wanted.next < wanted.until, "the next piece was asked for");
        let facts = self.file.as_ref().map(|(file, _)| file.facts).ok_or_else(nonsense)?;
        Ok(Copied::Piece(facts, asks.then(|| self.question())))
    }
}

/// What is answered is part of something else.
fn nonsense() -> BackupError {
    BackupError::Answer(DecodeError::Length)
}

/// The time by this machine's clock, milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ahead_of_the_pace_waits_and_never_for_long() {
        let pace = Pace { bytes_per_s: 1_000 };
        assert_eq!(pace.pause(500, Duration::from_millis(200)), Duration::from_millis(300));
        assert_eq!(pace.pause(500, Duration::from_millis(900)), Duration::ZERO);
        assert_eq!(pace.pause(1 << 40, Duration::ZERO), SLEEP_MAX);
        assert_eq!(Pace { bytes_per_s: 0 }.pause(5, Duration::ZERO), SLEEP_MAX);
    }
}
