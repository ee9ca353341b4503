//! The log as a file, page by page, while the site goes on; and what each user has, to be held against it.
//!
//! The first page is read from the latest version, so that the file has everything that was answered before it was asked for; the others from no older one. Each user's entries are
//! complete and in order up to some moment behind that. The file appears under its name when it is whole.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use pares_broker::{AccountSummary, AuditPage, BrokerRead, UserName, tell_log};
use pares_link::Door;
use pares_site::Client;
use pares_wice::Key;
use pares_wice::codec::Coded as _;

use crate::error::{BrokerageError, failed};
use crate::readers::READER;

/// A page that does not come within this is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many dumps are commanded at a time, or wait to be written.
const WAITING_MAX: usize = 16;

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
            let begun = named.spawn(move || write(sites, user, &path));
            self.writing = Some(begun.map_err(BrokerageError::io("starting a dump"))?);
        }
        Ok(self.writing.is_some())
    }
}

/// Where in `logs` the dump of that name lies: a user's in his own folder, whose name has what is no letter, digit, `-` or `_` in hexadecimal, behind `%`.
pub(crate) fn place(logs: &Path, user: Option<&UserName>, name: &str) -> PathBuf {
    let Some(user) = user else { return logs.join(name) };
    let mut folder = String::new();
    for byte in user.as_str().bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' => folder.push(char::from(byte)),
            _ => folder.push_str(&format!("%{byte:02x}")),
        }
    }
    logs.join(folder).join(name)
}

/// Writes the log of a user, or all of it, to `path`; how many entries it has.
pub(crate) fn write(sites: Vec<Door>, user: Option<UserName>, path: &Path) -> Result<u64, BrokerageError> {
    let writing = || BrokerageError::io(format!("writing {}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(writing())?;
    }
    // Two fronts may write one log at once.
    let part = path.with_added_extension(format!("{}.part", std::process::id()));
    let mut file = BufWriter::new(File::create(&part).map_err(writing())?);
    let count = pages(&mut Client::new(READER, 0, sites), user, |text| {
        file.write_all(text.as_bytes()).map_err(writing())
    })?;
    let file = file.into_inner().map_err(|error| writing()(error.into_error()))?;
    file.sync_all().and_then(|()| std::fs::rename(&part, path)).map_err(writing())?;
    Ok(count)
}

fn pages(
    client: &mut Client,
    user: Option<UserName>,
    tell: impl FnMut(&str) -> Result<(), BrokerageError>,
) -> Result<u64, BrokerageError> {
    let page = |from: Option<Key>| {
        let is_first = from.is_none();
        let read = BrokerRead::Log { user: user.clone(), from }.to_bytes();
        let page = if is_first { client.read_latest(&read, PATIENCE) } else { client.read(&read, PATIENCE) };
        AuditPage::from_bytes(&page.map_err(failed)?).map_err(failed)
    };
    tell_log(page, tell)
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
    fn users_write_into_their_own_folders_and_nowhere_else() {
        let logs = Path::new("logs");
        let at = |user: &str| place(logs, Some(&UserName::new(user).unwrap()), "log");
        assert_eq!(at("jo_1-A"), Path::new("logs/jo_1-A/log"));
        assert_eq!(at("../al"), Path::new("logs/%2e%2e%2fal/log"));
        assert_ne!(at("a%2e"), at("a."));
        assert_eq!(place(logs, None, "log"), Path::new("logs/log"));
    }

    #[test]
    fn no_more_dumps_than_a_few_wait() {
        let mut dumps = Dumps::of(Vec::new());
        for left in (0..WAITING_MAX).rev() {
            dumps.push(None, "log".into());
            assert_eq!(dumps.room(), left);
        }
    }
}
