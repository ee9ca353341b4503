//! In a bucket, of a server that speaks S3. It is moto (`pip install 'moto[server]'`), run by the Python that `PARES_S3_PYTHON` names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pares_archive::{Days, Store, restore};

use crate::log::{Log, RECORDER, SHARD, name};

/// The server, and a key that may use its bucket.
struct Server {
    process: Child,
    endpoint: String,
    key: String,
    secret: String,
}

impl Server {
    /// None if the environment names no Python.
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("PARES_S3_PYTHON") else {
            eprintln!("skipped: no PARES_S3_PYTHON that has moto[server]");
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archive/s3_server.py");
        let mut command = Command::new(python);
        let mut process = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let [endpoint, key, secret]: [String; 3] = serde_json::from_str(&line).unwrap();
        Some(Self { process, endpoint, key, secret })
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.trim_start_matches("http://").parse().unwrap()
    }

    /// Its bucket, reached at `endpoint`.
    fn bucket(&self, place: &str, endpoint: &str, secret: &str) -> Store {
        let settings = [
            ("AWS_ACCESS_KEY_ID", self.key.as_str()),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT", endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("HOME", "of no concern"),
        ];
        Store::open_with(place, settings.map(|(key, value)| (key.to_owned(), value.to_owned()))).unwrap()
    }

    fn store(&self, place: &str) -> Store {
        self.bucket(place, &self.endpoint, &self.secret)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// A way to the server that ends, for good, once so many bytes went there. Where it begins.
fn cut_after(bytes: u64, server: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let left = Arc::new(AtomicU64::new(bytes));
    std::thread::spawn(move || {
        while let (Ok((client, _)), 1..) = (listener.accept(), left.load(Ordering::Relaxed)) {
            let server = TcpStream::connect(server).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let left = Arc::clone(&left);
            std::thread::spawn(move || pass(from, to, &left));
            std::thread::spawn(move || pass(server, client, &AtomicU64::new(u64::MAX)));
        }
    });
    endpoint
}

fn pass(mut from: TcpStream, mut to: TcpStream, left: &AtomicU64) {
    let mut bytes = [0; 1_024];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        let is_over =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(read as u64));
        if is_over.is_err() {
            left.store(0, Ordering::Relaxed);
            break;
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn restored(store: &Store) -> Result<(Vec<String>, Vec<pares_archive::Manifest>), String> {
    let into = tempfile::tempdir().unwrap();
    let copied = restore(store, RECORDER, (None, None), into.path()).map_err(|error| error.to_string())?;
    let days = Days::new(&into.path().join(RECORDER), &[SHARD]);
    Ok((copied.days, days.manifests().unwrap()))
}

#[test]
fn days_are_archived_listed_and_restored() {
    let Some(server) = Server::start() else { return };
    let mut log = Log::new();
    (20_000..20_003).for_each(|day| log.pass(day));
    let names: Vec<String> = (20_000..20_003).map(name).collect();
    for place in ["s3://pares", "s3://pares/some/where"] {
        let store = server.store(place);
        assert_eq!(restored(&store).unwrap_err(), format!("{place} has no such day of {RECORDER}"));
        assert_eq!(log.archive(&store, None).as_ref(), Ok(&names));
        assert_eq!(log.archive(&store, None), Ok(Vec::new()), "once");
        assert_eq!(store.list(RECORDER).unwrap(), names);
        assert_eq!(restored(&store).unwrap(), (names.clone(), log.days().manifests().unwrap()));
    }
    // What was damaged there is found.
    let store = server.store("s3://pares");
    let segment =
        format!("{RECORDER}/{}/{}.zst", names[1], log.days().manifests().unwrap()[1].segments[0].name);
    let mut bytes = store.get(&segment).unwrap().unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    store.put(&segment, bytes).unwrap();
    assert!(restored(&store).unwrap_err().contains("is missing or damaged"));
}

#[test]
fn a_bucket_that_fails_in_the_middle_is_said_so_and_the_next_call_goes_on() {
    let Some(server) = Server::start() else { return };
    let mut log = Log::new();
    (20_000..20_003).for_each(|day| log.pass(day));
    let mut failed = 0;
    for bytes in [0, 1_000, 4_000, 8_000, 12_000] {
        let endpoint = cut_after(bytes, server.address());
        let cut = server.bucket("s3://pares/cut", &endpoint, &server.secret);
        if let Err(said) = log.archive(&cut, None) {
            assert!(said.contains("s3://pares/cut/"), "{said}");
            failed += 1;
        }
    }
    assert!(failed > 1, "some were cut");
    let store = server.store("s3://pares/cut");
    log.archive(&store, None).unwrap();
    assert_eq!(restored(&store).unwrap().1, log.days().manifests().unwrap());
}

#[test]
fn wrong_credentials_or_no_such_bucket_are_said_so_and_nothing_is_noted() {
    let Some(server) = Server::start() else { return };
    let mut log = Log::new();
    log.pass(20_000);
    let wrong = server.bucket("s3://pares", &server.endpoint, "not the secret");
    let other = Server { key: "AKIAUNKNOWN".into(), ..Server::start().unwrap() };
    for (store, word) in [
        (wrong, "SignatureDoesNotMatch"),
        (other.store("s3://pares"), "InvalidAccessKeyId"),
        (server.store("s3://nowhere"), "NoSuchBucket"),
    ] {
        let said = log.archive(&store, None).unwrap_err();
        assert!(said.starts_with(store.name()) && said.contains(word), "{said}");
        assert!(store.list(RECORDER).unwrap_err().to_string().contains(store.name()));
        assert!(!log.days().is_archived(pares_types::BusinessDay(20_000)));
    }
}
