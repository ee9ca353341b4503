//! Taking a copy: pieces asked of one site, a few under way at a time, into a file.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pares_wice::codec::DecodeError;
use pares_wice::{Key, Stored};

use super::BackupError;
use super::copy_file::{CopyFacts, CopyHead, CopyWriter};
use super::folder::BackupFolder;
use super::hose::{Hose, TAG};
use super::words::{Begun, Handed};
use crate::place::standing::Piece;
use crate::protocol::{Ask, WantedPieces};

/// Pieces under way: what a site may have waiting for an application has room for so many of the longest.
const WINDOW: u32 = 4;
/// Longest sleep: the site lets a copy go of which nothing is taken for ten seconds.
const SLEEP_MAX: Duration = Duration::from_secs(1);

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

/// Takes a copy into `folder`. `begun` hears when it is known what it will be of, `progress` how far it is, after each piece, and says whether to go on.
///
/// # Errors
/// If the site does not give it, or not to its end, or it cannot be written, or it was not to go on: then there is no file that could be taken for one.
pub fn take(
    hose: &mut Hose,
    folder: &BackupFolder,
    pace: Pace,
    mut begun: impl FnMut(&str, Stored, u64),
    mut progress: impl FnMut(CopyFacts) -> bool,
) -> Result<CopyFacts, BackupError> {
    let mut wanted = WantedPieces { copy: 0, next: 0, after: Key::new([]), until: WINDOW };
    hose.ask(&Ask::Copy(TAG, wanted.clone()))?;
    let Handed::Begun(Begun { copy, identity, stored }) = hose.receive()? else { return Err(nonsense()) };
    wanted.copy = copy;
    folder.takes(&identity)?;
    let _lock = folder.lock_for_copy()?;
    let head = CopyHead { identity, stored, taken_ms: now_ms() };
    let mut file = CopyWriter::create(&folder.copy_path(stored.version), &head)?;
    begun(&head.identity, stored, head.taken_ms);
    let began = Instant::now();
    loop {
        let piece = next_piece(hose, &wanted)?;
        file.write(&piece.items)?;
        if piece.is_last {
            return file.end();
        }
        if !progress(file.facts()) {
            return Err(BackupError::No("stopped before the copy was whole".into()));
        }
        std::thread::sleep(pace.pause(file.facts().bytes, began.elapsed()));
        ask_on(hose, &mut wanted, &piece)?;
    }
}

/// The piece after `piece` is the next, and more may come.
fn ask_on(hose: &mut Hose, wanted: &mut WantedPieces, piece: &Piece) -> Result<(), BackupError> {
    wanted.next += 1;
    if let Some((last, _)) = piece.items.last() {
        wanted.after = last.clone();
    }
    if wanted.next + WINDOW / 2 < wanted.until {
        return Ok(());
    }
    wanted.until = wanted.next + WINDOW;
    hose.ask(&Ask::Copy(TAG, wanted.clone()))
}

fn next_piece(hose: &mut Hose, wanted: &WantedPieces) -> Result<Piece, BackupError> {
    match hose.receive()? {
        Handed::Piece(piece) if piece.copy == wanted.copy && piece.number == wanted.next => Ok(piece),
        _ => Err(nonsense()),
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
