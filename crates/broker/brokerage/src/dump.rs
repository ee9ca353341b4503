//! The log as a file, page by page, while the site continues; and what each user has, to be held against it.
//!
//! The first page is read from the latest version, so that the file has everything that was answered before it was asked for; the others from no older one. Each user's entries are
//! complete and in order up to some moment behind that. The file appears under its name when it is whole, and the sites keep what it hashes to: so a file that was changed later is known.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_broker::{
    AccountSummary, Asked, AuditPage, BrokerRead, DUMPS_OF_USERS, LogDigest, UserName, tell_log,
};
use pares_link::Door;
use pares_site::Client;
use pares_text::grouped;
use pares_wice::codec::Coded as _;
use pares_wice::{Key, TransactionId};

use crate::audit::LogChain;
use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::readers::READER;
use crate::{front, unnumbered};

/// A page that does not come within this is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two words on how far a dump is.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// So many dumps are commanded at a time, or wait to be written.
const WAITING_MAX: usize = 16;

/// Dumps that were commanded: one is written at a time, since each reads as fast as the site allows.
pub(crate) struct Dumps {
    sites: Vec<Door>,
    /// Under which the sites have kept the latest head.
    name: TransactionId,
    waiting: VecDeque<Dump>,
    writing: Option<Writing>,
}

/// A dump that is being written.
struct Writing {
    ticket: u64,
    user: Option<UserName>,
    thread: JoinHandle<BrokerageResult<WrittenLog>>,
}

/// A log that was written.
pub(crate) struct WrittenLog {
    /// Entries of the log.
    pub(crate) entries: u64,
    /// What the file hashes to.
    pub(crate) head: LogDigest,
}

/// A dump that was commanded.
struct Dump {
    /// What who commanded it knows it by.
    ticket: u64,
    user: Option<UserName>,
    path: PathBuf,
}

impl Dumps {
    /// Of what these sites have.
    pub(crate) fn of(sites: Vec<Door>) -> Self {
        Self { sites, name: unused_name(), waiting: VecDeque::new(), writing: None }
    }

    /// Writes the log of a user, or all of it, to `path`, when those before are written; the ticket comes back when it is.
    pub(crate) fn push(&mut self, ticket: u64, user: Option<UserName>, path: PathBuf) {
        self.waiting.push_back(Dump { ticket, user, path });
    }

    /// So many more may be commanded.
    pub(crate) fn room(&self) -> usize {
        WAITING_MAX.saturating_sub(self.waiting.len())
    }

    /// Whose are written, or wait to be.
    pub(crate) fn users(&self) -> Vec<Option<UserName>> {
        let waiting = self.waiting.iter().map(|dump| &dump.user);
        self.writing.iter().map(|writing| &writing.user).chain(waiting).cloned().collect()
    }

    /// Whether none is written, or waits to be.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.writing.is_none()
    }

    /// Continues them; the ticket of one that is over, and the log that is there now, or why there is none.
    pub(crate) fn progress(&mut self) -> Option<(u64, BrokerageResult<WrittenLog>)> {
        if let Some(over) = self.writing.take_if(|writing| writing.thread.is_finished()) {
            let panicked = |_| Err(failed("a thread that writes a log has panicked"));
            return Some((over.ticket, over.thread.join().unwrap_or_else(panicked)));
        }
        if self.writing.is_some() {
            return None;
        }
        let Dump { ticket, user, path } = self.waiting.pop_front()?;
        self.name.sequence += 1;
        let (sites, name, of) = (self.sites.clone(), self.name, user.clone());
        let named = std::thread::Builder::new().name("dump".into());
        let dump = move || {
            make_folder_of(&path)?;
            write(sites, name, of, &path, said_now_and_then(&path))
        };
        match named.spawn(dump) {
            Ok(thread) => self.writing = Some(Writing { ticket, user, thread }),
            Err(error) => return Some((ticket, Err(BrokerageError::io("starting a dump")(error)))),
        }
        None
    }
}

/// Says how far a long dump to `path` is.
fn said_now_and_then(path: &Path) -> impl FnMut(u64) + use<> {
    let (path, mut said) = (path.to_owned(), Instant::now());
    move |count| {
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            pares_text::tell!("{}: {} entries so far", path.display(), grouped(count));
        }
    }
}

/// Makes the folder of a log that is to be written.
pub(crate) fn make_folder_of(path: &Path) -> BrokerageResult {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.map_err(BrokerageError::io(format!("writing {}", path.display())))
}

/// A name under which the sites have executed nothing, nor anything behind it.
pub(crate) fn unused_name() -> TransactionId {
    TransactionId { client: front::drawn_client(), sequence: 1 }
}

/// Writes the log of a user, or all of it, to `path`, whose folder is there, and says after each page how many entries there are so far. The sites keep its head under
/// `name`, which was not used.
pub(crate) fn write(
    sites: Vec<Door>,
    name: TransactionId,
    user: Option<UserName>,
    path: &Path,
    so_far: impl FnMut(u64),
) -> BrokerageResult<WrittenLog> {
    whole(path, |part| {
        let (entries, chain) = write_part(part, sites.clone(), user.clone(), path, so_far)?;
        keep(sites, name, user, &chain)?;
        Ok(WrittenLog { entries, head: chain.head() })
    })
}

/// Has the file `path` written under another name: it is there when it is whole.
pub(crate) fn whole<T>(path: &Path, write: impl FnOnce(&Path) -> BrokerageResult<T>) -> BrokerageResult<T> {
    let part = part_of(path);
    let written = write(&part).and_then(|written| {
        let renamed = std::fs::rename(&part, path);
        renamed.map_err(BrokerageError::io(format!("writing {}", path.display())))?;
        Ok(written)
    });
    if written.is_err() {
        // There may be none.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// Where a file lies until it is whole: two fronts may write one at once. No log that was commanded has a name that begins like this.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().display();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// Whether a log lies here that is not whole.
pub(crate) fn is_part(path: &Path) -> bool {
    writer_of(path).is_some()
}

/// The process that writes, or wrote, the part that lies here.
fn writer_of(part: &Path) -> Option<u32> {
    let name = part.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(".part")?;
    name.rsplit_once('.')?.1.parse().ok()
}

/// Whether there is a process of this number. A system without `/proc` does not say: then there may be one.
pub(crate) fn is_running(process: u32) -> bool {
    let all = Path::new("/proc");
    all.join(process.to_string()).exists() || !all.join("self").exists()
}

/// Removes what processes that have died, or this one before it was this, have left in the folder of logs and in those of users.
pub(crate) fn remove_left_parts(logs: &Path, is_running: impl Fn(u32) -> bool) {
    let of = |folder: &Path| folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let users = of(&logs.join(DUMPS_OF_USERS)).filter(|folder| folder.is_dir());
    for part in users.chain([logs.to_owned()]).flat_map(|folder| of(&folder).collect::<Vec<_>>()) {
        if writer_of(&part).is_some_and(|writer| writer == std::process::id() || !is_running(writer)) {
            // Another front that starts may have removed it.
            let _ = std::fs::remove_file(part);
        }
    }
}

/// How many entries the part has, and what it hashes to.
fn write_part(
    part: &Path,
    sites: Vec<Door>,
    user: Option<UserName>,
    path: &Path,
    mut so_far: impl FnMut(u64),
) -> BrokerageResult<(u64, LogChain)> {
    let writing = || BrokerageError::io(format!("writing {}", path.display()));
    let mut file = BufWriter::new(File::create(part).map_err(writing())?);
    let mut chain = LogChain::default();
    let count = pages(&mut Client::new(READER, 0, sites), user, |text, count| {
        so_far(count);
        chain.text(text);
        file.write_all(text.as_bytes()).map_err(writing())
    })?;
    let file = file.into_inner().map_err(|error| writing()(error.into_error()))?;
    file.sync_all().map_err(writing())?;
    Ok((count, chain))
}

/// Has the sites keep what a log hashes to: before it has its name, so that each file that has one can be proven.
fn keep(sites: Vec<Door>, name: TransactionId, user: Option<UserName>, chain: &LogChain) -> BrokerageResult {
    let asked = Asked::KeepHead { user, digest: chain.head(), elements: chain.elements() };
    let mut client = Client::new(name.client, name.sequence - 1, sites);
    client.execute(&unnumbered(asked).to_bytes(), PATIENCE).map(drop).map_err(failed)
}

fn pages(
    client: &mut Client,
    user: Option<UserName>,
    mut tell: impl FnMut(&str, u64) -> BrokerageResult,
) -> BrokerageResult<u64> {
    let count = Cell::new(0);
    let page = |from: Option<Key>| {
        let is_first = from.is_none();
        let read = BrokerRead::Log { user: user.clone(), from }.to_bytes();
        let page = if is_first { client.read_latest(&read, PATIENCE) } else { client.read(&read, PATIENCE) };
        let page = AuditPage::from_bytes(&page.map_err(failed)?).map_err(failed)?;
        count.set(count.get() + page.entries.len() as u64);
        Ok(page)
    };
    tell_log(page, |text| tell(text, count.get()))
}

/// What each of these users has; who has no account is left out.
pub(crate) fn summaries(
    sites: Vec<Door>,
    users: Vec<UserName>,
) -> BrokerageResult<BTreeMap<String, AccountSummary>> {
    let mut client = Client::new(READER, 0, sites);
    // From here on it is shown nothing older.
    client.read_latest(&BrokerRead::Log { user: None, from: None }.to_bytes(), PATIENCE).map_err(failed)?;
    let mut found = BTreeMap::new();
    for user in users {
        let name = user.as_str().to_owned();
        let read = BrokerRead::Summary { user }.to_bytes();
        let bytes = client.read(&read, PATIENCE).map_err(failed)?;
        let summary = Option::<AccountSummary>::from_bytes(&bytes).map_err(failed)?;
        found.extend(summary.map(|summary| (name, summary)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritable_log_is_reported_and_next_one_continues() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, []).unwrap();
        let mut dumps = Dumps::of(Vec::new());
        for ticket in [7, 8] {
            dumps.push(ticket, None, file.join("log"));
        }
        for ticket in [7, 8] {
            let over = std::iter::repeat_with(|| dumps.progress()).flatten().next();
            assert!(matches!(over, Some((over, Err(_))) if over == ticket));
        }
        assert!(dumps.is_idle());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn a_log_is_begun_in_no_folder_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("gone");
        assert!(write(Vec::new(), unused_name(), None, &folder.join("log"), |_| ()).is_err());
        assert!(!folder.exists());
    }

    #[test]
    fn leftovers_of_dead_fronts_only_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let users = dir.path().join(DUMPS_OF_USERS).join("jo");
        std::fs::create_dir_all(&users).unwrap();
        let (dead, living, own) = (7, 8, std::process::id());
        let kept = ["log", "log.7.part", ".log", ".part", ".log.x.part"].map(str::to_owned);
        for folder in [dir.path(), &users] {
            let of = |writer| format!(".log.{writer}.part");
            for name in kept.iter().cloned().chain([dead, living, own].map(of)) {
                std::fs::write(folder.join(name), []).unwrap();
            }
        }
        remove_left_parts(dir.path(), |writer| writer == living);
        for folder in [dir.path(), &users] {
            let left = [dead, living, own].map(|writer| folder.join(format!(".log.{writer}.part")).exists());
            assert_eq!(left, [false, true, false]);
            assert!(kept.iter().all(|name| folder.join(name).exists()));
        }
        assert!(is_part(&part_of(&users.join("log"))));
        assert_eq!(writer_of(&part_of(&users.join("log.7.part"))), Some(own));
    }

    #[test]
    fn a_process_is_running_until_it_has_ended() {
        assert!(is_running(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_running(child.id()));
    }

    #[test]
    fn no_more_dumps_than_a_few_wait() {
        let mut dumps = Dumps::of(Vec::new());
        for left in (0..WAITING_MAX).rev() {
            dumps.push(0, None, "/dev/null/log".into());
            assert_eq!(dumps.room(), left);
        }
        assert_eq!(dumps.users(), vec![None; WAITING_MAX]);
        dumps.progress();
        assert_eq!(dumps.users(), vec![None; WAITING_MAX], "the one that is written too");
    }
}
