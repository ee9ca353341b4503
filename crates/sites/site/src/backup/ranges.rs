//! Which versions a directory of backups can restore, and where some are missing.
//!
//! That every file is whole says nothing of a file that is not there. Files name the versions they hold, so what is missing between them shows: they are
//! joined to runs without a gap, and a run restores what lies behind its first base.
//!
//! ```text
//!   base 10 | log 10..25 | log 25..40        base 60 | log 60..70        log 90..95
//!   run: restores 10..40                     run: restores 60..70        run without a base: restores nothing
//!                              gap 41..60                        gap 71..90
//! ```

use pares_wice::Version;

use super::copy_file::CopyFacts;

/// What a log of versions holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFacts {
    /// The version it begins behind.
    pub behind: Version,
    /// The last one.
    pub last: Version,
    /// The digest of all versions up to there, if it is known.
    pub digest: Option<u64>,
    /// When that was stored, milliseconds since 1970; 0 if it is empty.
    pub last_ms: u64,
    /// Where a record begins that was not written to its end, if there is one: only in the last log, which grows, or whose writer died.
    pub torn_at: Option<u64>,
}

/// Versions without a gap, in bases and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupRun {
    /// The version it begins behind, or the one of a base that no log goes through.
    pub behind: Version,
    /// Its last version.
    pub last: Version,
    /// The first base in it: from that version to the last one all can be restored, and without a base nothing.
    pub base: Option<Version>,
    /// Whether it has a log.
    pub has_log: bool,
}

impl BackupRun {
    fn of(log: &LogFacts) -> Self {
        assert!(log.behind <= log.last, "a log ends where it begins, or behind that");
        Self { behind: log.behind, last: log.last, base: None, has_log: true }
    }

    fn at(base: &CopyFacts) -> Self {
        Self { behind: base.version, last: base.version, base: Some(base.version), has_log: false }
    }

    /// Takes `next` in if that continues this run; says whether it does.
    fn join(&mut self, next: Self) -> bool {
        assert!(self.behind <= next.behind, "runs are joined in their order");
        let joins = next.behind <= self.last;
        if joins {
            self.last = self.last.max(next.last);
            self.base = self.base.or(next.base);
            self.has_log |= next.has_log;
        }
        let is_within = |base: Version| (self.behind..=self.last).contains(&base);
        assert!(self.base.is_none_or(is_within), "a run holds the base that it begins to restore from");
        joins
    }
}

/// The runs of these bases and logs, in order.
pub(super) fn runs(bases: &[CopyFacts], logs: &[LogFacts]) -> Vec<BackupRun> {
    let mut parts: Vec<_> = logs.iter().map(BackupRun::of).chain(bases.iter().map(BackupRun::at)).collect();
    parts.sort_by_key(|part| (part.behind, part.last));
    let mut runs: Vec<BackupRun> = Vec::new();
    for part in parts {
        if !runs.last_mut().is_some_and(|run| run.join(part)) {
            runs.push(part);
        }
    }
    assert!(runs.is_sorted_by(|one, next| one.last < next.behind), "between two runs versions are missing");
    runs
}

/// What is wrong with runs: sentences, none if every log continues all that there is before it, and can be restored.
pub(super) fn faults(runs: &[BackupRun]) -> Vec<String> {
    let gaps = runs.windows(2).filter(|two| two[1].has_log).map(|two| {
        let (last, next) = (two[0].last, two[1].behind);
        format!("a gap: the versions between {last} and {next} are missing")
    });
    let stranded = runs.iter().filter(|run| run.base.is_none()).map(|run| {
        let BackupRun { behind, last, .. } = run;
        format!("no base for the versions from {behind} to {last}: they cannot be restored, unless a copy is still being taken")
    });
    gaps.chain(stranded).collect()
}
