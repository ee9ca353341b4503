//! Who takes a backup while everything fails: the shipped copies and logs, in files, with questions and replies carried through the simulation.
//!
//! It asks one site after the other, gives up a site that does not answer, and dies now and then: it continues with what its directory has. In the end the
//! backup is restored, which compares the digest of every version, and the items are those of the sites.

use pares_link::ClientId;
use pares_site::backup::{
    BackupError, BackupFolder, Copied, CopyHead, Copying, DamagedLog, Finding, Following, Restoration, Until,
};
use pares_site::protocol::Ask;
use pares_store::{Memory, Reads, Store};
use pares_wice::{KeyRange, SiteId, Version};

use super::sites::{Event, Sites};
use super::{Broken, Defect, Verdict, must};

/// What stands for it where clients have their numbers.
const COPIES: usize = 0xfffe;
const FOLLOWS: usize = 0xfffd;
/// Between two of its turns, and how long it waits for an answer, microseconds.
const TURN_US: u64 = 20_000;
const PATIENCE_US: u64 = 500_000;
/// Of a thousand turns, in how many it dies.
const DEATHS_PERMILLE: u64 = 10;

/// A question that waits for its answer.
#[derive(Clone, Copy)]
struct Open {
    connection: ClientId,
    site: SiteId,
    asked_us: u64,
}

/// Takes a copy, and all versions behind it.
pub(super) struct Keeper {
    dir: tempfile::TempDir,
    copying: Option<Copying>,
    following: Option<Following>,
    copy_open: Option<Open>,
    versions_open: Option<Open>,
    /// Whether it has looked into its directory since it died last.
    is_up: bool,
    /// Whether a copy is whole in the run that it follows.
    has_copy: bool,
}

/// Whether that is a connection of a keeper.
pub(super) fn is_a_keepers(connection: ClientId) -> bool {
    [COPIES, FOLLOWS].contains(&((connection.0 & 0xffff) as usize))
}

/// The same, but for the item that the first write changes.
fn other_versions(reply: &[u8]) -> Vec<u8> {
    let (mut other, name) = (reply.to_vec(), b"account/");
    if let Some(at) = other.windows(name.len()).position(|bytes| bytes == name) {
        other[at + name.len()] ^= 1; // another digit
    }
    other
}

fn nothing_is_damaged(damaged: DamagedLog) {
    panic!("nothing is damaged here: {damaged:?}");
}

fn broken(error: &BackupError) -> (Broken, String) {
    (Broken::Unkept, error.to_string())
}

impl Keeper {
    /// Takes versions from the first copy on that has begun.
    fn follow(&mut self, head: &CopyHead) -> Verdict {
        if self.following.is_none() {
            let CopyHead { identity, stored, taken_ms } = head;
            let begun = Following::begin(&self.folder(), identity, *stored, *taken_ms, nothing_is_damaged);
            self.following = Some(begun.map_err(|error| broken(&error))?);
        }
        Ok(())
    }

    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().expect("there is room for files");
        let (copy_open, versions_open) = (None, None);
        Self { dir, copying: None, following: None, copy_open, versions_open, is_up: false, has_copy: false }
    }

    fn folder(&self) -> BackupFolder {
        BackupFolder::open(self.dir.path())
    }

    /// Whether it waits for an answer there.
    pub(super) fn listens_to(&self, connection: ClientId) -> bool {
        [self.copy_open, self.versions_open].iter().flatten().any(|open| open.connection == connection)
    }

    /// Whether it has all up to that version.
    pub(super) fn has(&self, newest: Version) -> bool {
        self.has_copy && self.following.as_ref().is_some_and(|following| following.last() == newest)
    }

    /// All but its files is gone.
    fn die(&mut self) {
        (self.copying, self.following) = (None, None);
        (self.copy_open, self.versions_open) = (None, None);
        (self.is_up, self.has_copy) = (false, false);
    }

    /// Continues with what its directory has, or begins a copy.
    fn look(&mut self) -> Verdict {
        let sound = |found| assert!(matches!(found, Finding::Sound(_)), "nothing is damaged here: {found:?}");
        let resumed = Following::resume(&self.folder(), sound);
        self.following = resumed.map_err(|error| broken(&error))?;
        (self.is_up, self.has_copy) = (true, self.following.is_some());
        if self.following.is_none() {
            self.copying = Some(Copying::new(&self.folder()));
        }
        Ok(())
    }

    /// The versions that come next are kept by nobody here: the log ends, and another copy is taken.
    fn begin_anew(&mut self) -> Verdict {
        if let Some(following) = self.following.take() {
            following.end().map_err(|error| broken(&error))?;
        }
        self.copying = Some(Copying::new(&self.folder()));
        (self.copy_open, self.versions_open, self.has_copy) = (None, None, false);
        Ok(())
    }
}

impl Sites {
    /// The keeper has a turn: it asks what is to be asked.
    pub(super) fn keep(&mut self) -> Verdict {
        self.schedule(TURN_US, Event::Keep);
        let (now_us, dies) = (self.now_us(), !self.faults.over && self.random.chance(DEATHS_PERMILLE));
        let Some(mut keeper) = self.keeper.take() else { return Ok(()) };
        if dies {
            keeper.die();
        } else if !keeper.is_up {
            keeper.look()?;
        }
        let is_late = |open: &Open| now_us - open.asked_us > PATIENCE_US;
        if keeper.copy_open.is_some_and(|open| is_late(&open)) {
            // The site has lost the copy, or the question: another one gives another.
            (keeper.copy_open, keeper.copying) = (None, Some(Copying::new(&keeper.folder())));
        }
        keeper.versions_open = keeper.versions_open.filter(|open| !is_late(open));
        if let (Some(copying), None) = (&keeper.copying, keeper.copy_open) {
            keeper.copy_open = self.ask_to_keep(COPIES, None, &copying.question());
        }
        if let (Some(following), None) = (&keeper.following, keeper.versions_open) {
            keeper.versions_open = self.ask_to_keep(FOLLOWS, None, &following.question());
        }
        self.keeper = Some(keeper);
        Ok(())
    }

    /// Asks a site, any if none is said; nothing is open if nobody is there.
    fn ask_to_keep(&mut self, who: usize, open: Option<Open>, ask: &Ask) -> Option<Open> {
        let any = self.list[self.random.index(self.list.len())];
        let site = open.map_or(any, |open| open.site);
        let asked_us = self.now_us();
        if !self.nodes.get(&site)?.accepts() {
            return None;
        }
        match open {
            None => {
                let connection = self.ask_site(who, site, ask.to_bytes());
                Some(Open { connection, site, asked_us })
            }
            Some(Open { connection, .. }) => {
                let life = self.nodes[&site].life;
                self.schedule(200, Event::Ask { site, life, connection, bytes: ask.to_bytes() });
                Some(Open { connection, site, asked_us })
            }
        }
    }

    pub(super) fn kept(&mut self, site: SiteId, connection: ClientId, reply: &[u8]) -> Verdict {
        let mut keeper = self.keeper.take().expect("it listens");
        let is_copy = keeper.copy_open.is_some_and(|open| open.connection == connection);
        let done = match is_copy {
            true => self.copied(&mut keeper, site, reply),
            false => self.followed(&mut keeper, site, reply),
        };
        self.keeper = Some(keeper);
        done
    }

    fn copied(&mut self, keeper: &mut Keeper, site: SiteId, reply: &[u8]) -> Verdict {
        let Some(copying) = &mut keeper.copying else { return Ok(()) };
        match copying.reply(reply, &site.to_string()) {
            Ok(Copied::Begun(head)) => keeper.follow(&head)?,
            Ok(Copied::Piece(_, Some(more))) => {
                keeper.copy_open = self.ask_to_keep(COPIES, keeper.copy_open, &more);
            }
            Ok(Copied::Piece(_, None)) => {}
            Ok(Copied::Whole(facts)) => {
                self.summary.copies += 1;
                let behind = keeper.following.as_ref().map(Following::last);
                self.note(|| format!("{site} has given a copy of {}", facts.version));
                (keeper.copying, keeper.copy_open) = (None, None);
                keeper.has_copy = behind.is_some();
                // Of a site that is behind the first one, it may lie before the log.
                if self.has_no_base(keeper, facts.version)? {
                    (keeper.copying, keeper.has_copy) = (Some(Copying::new(&keeper.folder())), false);
                }
            }
            Err(error) if error.may_pass() => {
                (keeper.copying, keeper.copy_open) = (Some(Copying::new(&keeper.folder())), None);
            }
            Err(error) => return Err(broken(&error)),
        }
        Ok(())
    }

    /// Whether the log that is followed does not go through a copy of that version.
    fn has_no_base(&self, keeper: &Keeper, version: Version) -> Result<bool, (Broken, String)> {
        let facts = keeper.folder().verify().map_err(|error| broken(&error))?;
        let run = facts.runs().pop();
        Ok(run.is_none_or(|run| run.base.is_none() || run.last < version))
    }

    fn followed(&mut self, keeper: &mut Keeper, site: SiteId, reply: &[u8]) -> Verdict {
        let Some(following) = &mut keeper.following else { return Ok(()) };
        let before = following.last();
        keeper.versions_open = None;
        let is_other = self.plan.defect == Some(Defect::GivesOtherVersions) && self.random.chance(100);
        let reply = if is_other { other_versions(reply) } else { reply.to_vec() };
        match following.reply(&reply, &site.to_string()) {
            Ok(_) => self.summary.kept += following.last().0 - before.0,
            Err(BackupError::Gone(version)) => {
                self.note(|| format!("{site} keeps the versions behind {version} no more"));
                keeper.begin_anew()?;
            }
            Err(error) if error.may_pass() => {}
            Err(error) => return Err(broken(&error)),
        }
        Ok(())
    }

    /// What the backup restores is what the sites have.
    pub(super) fn restore_what_was_kept(&mut self) -> Verdict {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let store = Memory::default();
        let restored = Restoration::plan(&keeper.folder(), Until::Newest)
            .and_then(|plan| plan.fill_store(&store, &mut |_| {}))
            .map_err(|error| broken(&error))?;
        let site = self.list[0];
        let own = self.nodes[&site].machine.store();
        let all = |store: &dyn Store| {
            let snapshot = store.snapshot().expect("it is whole");
            snapshot.first(&KeyRange::prefix(b""), usize::MAX).expect("it can be read")
        };
        must(own.applied() == restored.version && all(&*own) == all(&store), Broken::Unkept, || {
            format!("{site} is at {}, and {} was restored", own.applied(), restored.version)
        })
    }
}
