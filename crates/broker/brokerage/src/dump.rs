//! The log as a file, page by page, while the site goes on; and what each user has, to be held against it.
//!
//! The first page is read from the latest version, so that the file has everything that was answered before it was asked for; the others from no older one. Each user's entries are
//! complete and in order up to some moment behind that. The file appears under its name when it is whole.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_broker::{AccountSummary, AuditPage, BrokerRead, LOG_BEGIN, LOG_END, UserName, xml};
use pares_link::Door;
use pares_site::Client;
use pares_text::grouped;
use pares_wice::codec::Coded as _;

use crate::error::{BrokerageError, failed};

/// A page that does not come within this is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the log calls the server that tells it.
const SERVER: &str = "broker";
/// Between two words on how far a dump is.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// So many dumps are commanded at a time, or wait to be written.
const WAITING_MAX: usize = 16;

/// Clients that only read execute nothing; so all can have this number.
const READER: u64 = 1;

/// Dumps that were commanded: one is written at a time, since each reads as fast as the site allows.
pub(crate) struct Dumps {
    sites: Vec<Door>,
    waiting: VecDeque<(Option<UserName>, PathBuf)>,
    writing: Option<JoinHandle<Result<u64, BrokerageError>>>,
}

impl Dumps {
    /// Of what these sites have.
    pub(crate) fn of(sites: Vec<Door>) -> Self {
        Self { sites, waiting: VecDeque::new(), writing: None }
    }

    /// Writes the log of a user, or all of it, to `path`, when those before are written.
    pub(crate) fn push(&mut self, user: Option<UserName>, path: PathBuf) {
        self.waiting.push_back((user, path));
    }

    /// So many more may be commanded.
    pub(crate) fn room(&self) -> usize {
        WAITING_MAX.saturating_sub(self.waiting.len())
    }

    /// Whether none is written, or waits to be.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.writing.is_none()
    }

    /// Goes on with them; whether there is more to do.
    pub(crate) fn progress(&mut self) -> Result<bool, BrokerageError> {
        if let Some(writing) = self.writing.take_if(|writing| writing.is_finished()) {
            writing.join().map_err(|_| failed("a thread that writes a log has panicked"))??;
        }
        if self.writing.is_none()
            && let Some((user, path)) = self.waiting.pop_front()
        {
            let sites = self.sites.clone();
            let named = std::thread::Builder::new().name("dump".into());
            let begun = named.spawn(move || write(sites, user, &path, said_now_and_then(&path)));
            self.writing = Some(begun.map_err(BrokerageError::io("starting a dump"))?);
        }
        Ok(self.writing.is_some())
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

/// Writes the log of a user, or all of it, to `path`, and says after each page how many entries there are so far; how many it has.
pub(crate) fn write(
    sites: Vec<Door>,
    user: Option<UserName>,
    path: &Path,
    mut so_far: impl FnMut(u64),
) -> Result<u64, BrokerageError> {
    let writing = || BrokerageError::io(format!("writing {}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(writing())?;
    }
    // Two fronts may write one log at once.
    let part = path.with_added_extension(format!("{}.part", std::process::id()));
    let mut file = BufWriter::new(File::create(&part).map_err(writing())?);
    let count = pages(&mut Client::new(READER, 0, sites), user, |text, count| {
        so_far(count);
        file.write_all(text.as_bytes()).map_err(writing())
    })?;
    let file = file.into_inner().map_err(|error| writing()(error.into_error()))?;
    file.sync_all().and_then(|()| std::fs::rename(&part, path)).map_err(writing())?;
    Ok(count)
}

fn pages(
    client: &mut Client,
    user: Option<UserName>,
    mut tell: impl FnMut(&str, u64) -> Result<(), BrokerageError>,
) -> Result<u64, BrokerageError> {
    tell(LOG_BEGIN, 0)?;
    let (mut count, mut from, mut text) = (0, None, String::new());
    loop {
        let read = BrokerRead::Log { user: user.clone(), from: from.clone() }.to_bytes();
        let page = match from {
            None => client.read_latest(&read, PATIENCE),
            Some(_) => client.read(&read, PATIENCE),
        };
        let AuditPage { entries, next } = AuditPage::from_bytes(&page.map_err(failed)?).map_err(failed)?;
        for entry in &entries {
            xml(SERVER, &entry.user, &entry.record, &mut text);
        }
        count += entries.len() as u64;
        tell(&text, count)?;
        text.clear();
        from = match next {
            Some(next) => Some(next),
            None => break,
        };
    }
    tell(LOG_END, count)?;
    Ok(count)
}

/// What each of these users has; who has no account is left out.
pub(crate) fn summaries(
    sites: Vec<Door>,
    users: Vec<UserName>,
) -> Result<BTreeMap<String, AccountSummary>, BrokerageError> {
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
    fn no_more_dumps_than_a_few_wait() {
        let mut dumps = Dumps::of(Vec::new());
        for left in (0..WAITING_MAX).rev() {
            dumps.push(None, "log".into());
            assert_eq!(dumps.room(), left);
        }
    }
}
