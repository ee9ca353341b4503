//! Backups of running sites, and other databases made of them.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use common::{Engine, PATIENCE, Sites, configuration_over, done, report, scratch, until};
use pares_link::{ClientStream, Door};
use pares_site::backup::{
    BackupConnection, BackupError, BackupFolder, CopyFacts, Followed, Following, Pace, Restoration, Until,
    take,
};
use pares_site::items::Items;
use pares_site::protocol::{Ask, Code, Reply, WantedPieces};
use pares_site::{Access, Client, SitesConfig};
use pares_wice::{Key, SiteId, Stored, Version};
use tempfile::TempDir;

const A0: SiteId = SiteId::new(0, 0);
const B0: SiteId = SiteId::new(1, 0);
const PACE: Pace = Pace { bytes_per_s: 1 << 30 };

over_every_engine!(
    what_is_restored_is_what_the_database_was_at_that_version,
    a_restored_database_is_another_and_lives_as_any,
);

/// A directory of backups, which is removed with the first.
fn folder() -> (TempDir, BackupFolder) {
    let dir = scratch();
    let folder = BackupFolder::create(dir.path()).unwrap();
    (dir, folder)
}

fn door(sites: &Sites, site: SiteId) -> Door {
    sites.address(site).into()
}

fn hose(sites: &Sites, site: SiteId) -> BackupConnection {
    BackupConnection::connect(&door(sites, site)).unwrap()
}

/// Takes a copy at a site, and begins to follow.
fn taken(sites: &Sites, site: SiteId, folder: &BackupFolder) -> (CopyFacts, Following) {
    let mut following = None;
    let mut begin = |identity: &str, stored: Stored, at_ms| {
        following = Some(Following::begin(folder, identity, stored, at_ms, |_| {})?);
        Ok(())
    };
    let facts = take(&mut hose(sites, site), folder, PACE, &mut begin, |_| true).unwrap();
    (facts, following.unwrap())
}

/// Follows up to that version, at one site after the other.
fn follow(following: &mut Following, sites: &Sites, version: u64) {
    let (mut here, mut there) = (hose(sites, A0), hose(sites, B0));
    until(|| {
        std::mem::swap(&mut here, &mut there);
        following.take(&mut here).unwrap();
        following.last() >= Version(version)
    });
}

/// The stable version of the site that the client uses, and that of its store.
fn stable(client: &mut Client) -> u64 {
    report(client).stable
}

fn stored(client: &mut Client) -> u64 {
    report(client).stored
}

/// Another database with what `folder` has up to `version`, started.
fn restored(engine: Engine, folder: &BackupFolder, version: u64) -> Sites {
    let dir = scratch();
    let mut config = configuration_over(engine, 2, 1).unwrap();
    let plan = Restoration::plan(folder, Until::Version(Version(version))).unwrap();
    let digests = [A0, B0].map(|site| plan.fill(&config, site, dir.path(), &mut |_| {}).unwrap().digest);
    assert_eq!(digests[0], digests[1]);
    config.begins = version;
    config.make_directories(dir.path()).unwrap();
    Sites::begin(dir, config, Items)
}

fn what_is_restored_is_what_the_database_was_at_that_version(engine: Engine) {
    let Some(sites) = Sites::start_over(engine, 2, 1) else { return };
    let (_dir, folder) = folder();
    let mut client = sites.client(1, &[A0, B0]);
    done(client.execute(b"add alice 100", PATIENCE));
    done(client.execute(b"put note of some words", PATIENCE));
    until(|| stored(&mut sites.client(2, &[B0])) >= 2);
    let (facts, mut following) = taken(&sites, B0, &folder);
    assert!(facts.items >= 2 && facts.version >= Version(2), "{facts:?}");
    done(client.execute(b"transfer alice bob 30", PATIENCE));
    let here = stable(&mut client);
    let right = done(client.read(b"list - - 99", PATIENCE));
    done(client.execute(b"delete note", PATIENCE));
    done(client.execute(b"transfer alice bob 70", PATIENCE));
    follow(&mut following, &sites, stable(&mut client));
    drop((sites, following));
    folder.verify().unwrap();
    let sites = restored(engine, &folder, here);
    for site in [A0, B0] {
        let mut client = sites.client(9, &[site]);
        assert_eq!(done(client.read(b"list - - 99", PATIENCE)), right, "{site}");
    }
}

fn a_restored_database_is_another_and_lives_as_any(engine: Engine) {
    let Some(sites) = Sites::start_over(engine, 2, 1) else { return };
    let (_dir, folder) = folder();
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"add alice 100", PATIENCE));
    until(|| stored(&mut sites.client(2, &[B0])) >= 1);
    let (facts, following) = taken(&sites, B0, &folder);
    let identity = sites.config.identity.clone();
    drop((sites, following));
    let mut sites = restored(engine, &folder, facts.version.0);
    assert_ne!(sites.config.identity, identity);
    let mut client = sites.client(1, &[A0, B0]);
    // What the backup has of a client's requests is not done again.
    done(client.execute(b"add alice 100", PATIENCE));
    assert_eq!(done(client.execute(b"get alice", PATIENCE)), "100");
    done(client.execute(b"add alice 5", PATIENCE));
    assert!(stable(&mut client) > facts.version.0, "versions go on");
    // A cluster that loses its disks gets the items that nobody has a log of.
    sites.stop(B0);
    sites.lose_disk(B0);
    let lost = pares_wice::ClusterSet::default().with(pares_wice::ClusterId(1));
    sites.client(7, &[A0]).operate(pares_wice::Command::DeclareLost(lost), PATIENCE).unwrap();
    sites.run(B0);
    let mut there = sites.client(8, &[B0]);
    until(|| there.read(b"get alice", PATIENCE).is_ok_and(|value| value == b"105"));
    let digests = [A0, B0].map(|site| done(sites.client(6, &[site]).read(b"digest", PATIENCE)));
    assert_eq!(digests[0], digests[1]);
    // And it can be backed up in turn, in a directory of its own.
    let refused = Following::resume(&folder, |_| {}).unwrap().unwrap().take(&mut hose(&sites, A0));
    assert!(matches!(refused, Err(BackupError::Another(_))), "{refused:?}");
    let (_dir, other) = self::folder();
    let mut early = Following::begin(&other, &sites.config.identity, Stored::default(), 0, |_| {}).unwrap();
    let gone = early.take(&mut hose(&sites, A0));
    assert!(matches!(gone, Err(BackupError::Gone(Version(0)))), "{gone:?}");
    drop(early);
    let early = Following::resume(&other, |_| {}).unwrap();
    assert!(early.is_none(), "a log without a copy");
    let early = Following::begin(&other, &sites.config.identity, Stored::default(), 0, |_| {}).unwrap();
    let nobody = "127.0.0.1:1".parse::<std::net::SocketAddr>().unwrap().into();
    let followed = early.follow(&[nobody, door(&sites, A0), door(&sites, B0)], |_| false, |_| {}).unwrap();
    assert!(matches!(followed, Followed::Gone(_)), "no site that answers");
    drop(followed);
    assert!(Following::resume(&other, |_| {}).unwrap().is_none());
    assert!(taken(&sites, B0, &other).0.version > facts.version);
}

/// Stores nine items of 100 KiB: more than a copy has in its first pieces.
fn write_nine_pieces(sites: &Sites) -> pares_site::Client {
    let mut client = sites.client(1, &[A0]);
    for item in 0..9 {
        let value = "v".repeat(100 << 10);
        done(client.execute(format!("put i/{item} {value}").as_bytes(), PATIENCE));
    }
    until(|| stored(&mut client) >= 9);
    client
}

#[test]
fn a_copy_that_is_not_to_go_on_leaves_none() {
    let sites = Sites::start(1, 1);
    let (_dir, folder) = folder();
    write_nine_pieces(&sites);
    let stopped = take(&mut hose(&sites, A0), &folder, PACE, |_, _, _| Ok(()), |_| false);
    assert!(matches!(stopped, Err(BackupError::No(_))), "{stopped:?}");
    let too_old = |_: &str, stored: Stored, _| {
        let (version, log) = (stored.version, stored.version.next());
        Err(BackupError::Behind { site: A0.to_string(), version, log })
    };
    let refused = take(&mut hose(&sites, A0), &folder, PACE, too_old, |_| panic!("a piece was taken"));
    assert!(matches!(refused, Err(BackupError::Behind { .. })), "{refused:?}");
    assert!(matches!(folder.verify(), Err(BackupError::Absent(_))));
    let facts = take(&mut hose(&sites, A0), &folder, PACE, |_, _, _| Ok(()), |_| true).unwrap();
    assert!(facts.bytes > (9 * 100) << 10, "{facts:?}");
}

#[test]
fn death_before_first_complete_copy_takes_new_one() {
    let sites = Sites::start(1, 1);
    let (_dir, folder) = folder();
    let mut client = write_nine_pieces(&sites);
    // Twice, and nothing is written meanwhile: both copies are of one version.
    for _ in 0..2 {
        let begin = |identity: &str, stored: Stored, at_ms| {
            Following::begin(&folder, identity, stored, at_ms, |_| {}).map(drop)
        };
        take(&mut hose(&sites, A0), &folder, PACE, begin, |_| false).unwrap_err();
        assert!(Following::resume(&folder, |_| {}).unwrap().is_none(), "a copy is taken");
    }
    let (facts, mut following) = taken(&sites, A0, &folder);
    done(client.execute(b"put note 1", PATIENCE));
    let here = stable(&mut client);
    until(|| following.take(&mut hose(&sites, A0)).is_ok() && following.last() >= Version(here));
    drop(following);
    assert!(folder.verify().unwrap().bases == [facts]);
    let config = configuration_over(Engine::Redb, 1, 1).unwrap();
    for version in facts.version.0..=here {
        let dir = tempfile::tempdir().unwrap();
        let plan = Restoration::plan(&folder, Until::Version(Version(version))).unwrap();
        assert_eq!(plan.fill(&config, A0, dir.path(), &mut |_| {}).unwrap().version.0, version);
    }
    assert!(Following::resume(&folder, |_| {}).unwrap().is_some(), "and no copy is taken again");
}

#[test]
fn only_operators_take_backups() {
    let sites = Sites::start_with_tls(1, 1);
    let (_dir, folder) = folder();
    let taken = |certificate: &str| {
        let access = Access::named(sites.config.clone(), &sites.dir, &[certificate]).unwrap();
        let mut hose = BackupConnection::connect(&access.door(A0).unwrap()).unwrap();
        take(&mut hose, &folder, PACE, |_, _, _| Ok(()), |_| true)
    };
    for certificate in ["reader-app", "client-app"] {
        let refused = taken(certificate).unwrap_err().to_string();
        assert!(refused.contains("the certificate of an operator"), "{refused}");
    }
    taken("operator-app").unwrap();
}

#[test]
fn a_third_backup_at_a_time_is_refused_until_another_ends() {
    let sites = Sites::start(1, 1);
    done(sites.client(1, &[A0]).execute(b"put a 1", PATIENCE));
    let begin = || {
        let mut stream = ClientStream::connect(&door(&sites, A0), 8 << 20).unwrap();
        stream.set_timeout(Some(PATIENCE)).unwrap();
        let wanted = WantedPieces { copy: 0, next: 0, after: Key::new([]), until: 0 };
        stream.send(&Ask::Copy(4, wanted).to_bytes()).unwrap();
        let reply = Reply::from_bytes(&stream.receive().unwrap()).unwrap();
        (stream, reply.code)
    };
    let (first, second) = (begin(), begin());
    assert_eq!([first.1, second.1, begin().1], [Code::Done, Code::Done, Code::Busy]);
    drop(first);
    until(|| begin().1 == Code::Done);
}

#[test]
fn a_database_that_was_restored_says_so_to_its_sites() {
    let dir = tempfile::tempdir().unwrap();
    let config = SitesConfig { begins: 7, ..configuration_over(Engine::Redb, 1, 1).unwrap() };
    std::fs::write(dir.path().join("sites.toml"), config.to_text()).unwrap();
    assert_eq!(SitesConfig::load(dir.path()).unwrap(), config);
}
