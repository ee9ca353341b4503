//! The port at which a site speaks PostgreSQL's protocol.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_store::StoreError;
use pares_store::postgres::{Options, Schema, SchemaChange};
use pares_tls::{CertificateDer, ServerConfig, TlsError};
use pares_wice::{AbortReason, Key, Version, Write};
use postgres::Config;

use crate::client::Client;
use crate::crowd::{Crowd, Room};
use crate::session;
use crate::wire::Message;

/// Clients at a time. Each has a thread here and a process at the server.
pub const CLIENTS_MAX: usize = 100;
/// A transaction without an outcome for so long may be done or not, unless its session sets another time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Time for the handshake of TLS; the same again for the first message behind it.
pub(crate) const STAGE_PATIENCE: Duration = Duration::from_secs(10);
/// Time to prove who he is, for one who has said so: the site's server has its part in it.
pub(crate) const PROOF_PATIENCE: Duration = Duration::from_secs(30);
/// Clients wait for so long before it is looked again whether there is room.
const ROOM_PAUSE: Duration = Duration::from_millis(5);

pub(crate) const LOST: &str = "could not serialize access: a concurrent transaction, here or at another site, changed rows that this one needs; run this one again";

/// No version.
const CLOSED: u64 = u64::MAX;

/// A transaction that was executed at the site's server.
pub struct Ready {
    /// What is to be certified.
    pub executed: Executed,
    /// Where to say what became of it.
    pub verdict: Sender<Verdict>,
}

/// What a transaction saw and did.
#[derive(Debug, Default)]
pub struct Executed {
    /// The version it read.
    pub snapshot: Version,
    /// What nobody may have changed since.
    pub reads: Vec<Key>,
    /// What it did.
    pub writes: Vec<Write>,
}

impl From<SchemaChange> for Executed {
    fn from(SchemaChange { snapshot, writes }: SchemaChange) -> Self {
        Self { snapshot, reads: Vec::new(), writes }
    }
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the logs of all living clusters, and in this site's store.
    Committed,
    /// It is not, and nothing of it.
    Aborted(AbortReason),
    /// The site cannot take it now; nothing has changed.
    Starting,
    /// It cannot be taken at all.
    Impossible(String),
}

type Submit = Box<dyn Fn(Ready) + Send + Sync>;

/// What all sessions of a site share.
pub(crate) struct Front {
    pub(crate) config: Config,
    pub(crate) options: Options,
    pub(crate) schema: Schema,
    /// Whose certificates are believed; nobody shows one where there is none.
    pub(crate) certified: Option<Certified>,
    /// The schema of the store's own tables, quoted.
    pub(crate) home: String,
    submit: Submit,
    /// The store's version, or [`CLOSED`] while no client is let in.
    stored: AtomicU64,
    /// The server has shown an older one: it has crashed, and the site has not noticed.
    fell_back: AtomicBool,
    ends: AtomicBool,
    crowd: Mutex<Crowd>,
}

/// What the owner of a certificate may do by SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlRights {
    /// Nothing.
    Nothing,
    /// Read: all transactions are read-only.
    Read,
    /// All that its role at the server may.
    Write,
}

/// Who may connect where all clients show a certificate.
pub struct Certified {
    /// Asks for one, and believes those of the system's authority that are not revoked now.
    pub tls: Box<dyn Fn() -> Result<Arc<ServerConfig>, TlsError> + Send + Sync>,
    /// What the owner of a certificate that is believed may do.
    pub rights: Box<dyn Fn(&CertificateDer<'_>) -> SqlRights + Send + Sync>,
}

impl Certified {
    /// Whether a client may only read.
    ///
    /// # Errors
    /// Why it may nothing at all.
    pub(crate) fn reads_only(&self, client: &Client) -> Result<bool, &'static str> {
        match client.certificate().map(|certificate| (self.rights)(certificate)) {
            None => Err(
                "this site requires TLS and a client certificate: set sslmode=verify-ca, sslcert, sslkey and sslrootcert",
            ),
            Some(SqlRights::Nothing) => {
                Err("this needs the certificate of a reader, client or operator of this system")
            }
            Some(rights) => Ok(rights == SqlRights::Read),
        }
    }
}

impl Front {
    pub(crate) fn of(
        options: Options,
        home: String,
        certified: Option<Certified>,
        submit: Submit,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            config: options.config()?,
            schema: Schema::new(options.clone()),
            options,
            home,
            certified,
            submit,
            stored: AtomicU64::new(CLOSED),
            fell_back: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            crowd: Mutex::new(Crowd::of(CLIENTS_MAX)),
        })
    }

    /// A query with the store's schema in place of `PARES`.
    pub(crate) fn own(&self, query: &str) -> String {
        query.replace("PARES", &self.home)
    }

    pub(crate) fn serves(&self) -> bool {
        self.stored.load(Ordering::SeqCst) != CLOSED
    }

    /// Whether the store, as a session has found it, has all that clients have been answered. A server that crashes loses the last
    /// of it, and sessions may be there before the site has noticed, and brought it back from its log.
    pub(crate) fn is_whole(&self, found: u64) -> bool {
        let stored = self.stored.load(Ordering::SeqCst);
        let has_fallen_back = stored != CLOSED && found < stored;
        self.fell_back.fetch_or(has_fallen_back, Ordering::SeqCst);
        stored != CLOSED && !has_fallen_back
    }

    /// Those who are connected.
    pub(crate) fn crowd(&self) -> MutexGuard<'_, Crowd> {
        self.crowd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the turn of a change of the schema end, and waits for nothing. If that is aborted, because the announcement was not in this site's store or another one came, sites withdraw it when it is over.
    pub(crate) fn withdraw_turn(&self) {
        if let Ok(withdrawal) = self.schema.withdrawal() {
            let _ = self.certify(withdrawal.into(), Duration::ZERO);
        }
    }

    /// Has a transaction certified, and waits for it.
    pub(crate) fn certify(&self, executed: Executed, patience: Duration) -> Result<(), Denied> {
        let (verdict, outcome) = channel();
        (self.submit)(Ready { executed, verdict });
        match outcome.recv_timeout(patience) {
            Ok(Verdict::Committed) => Ok(()),
            Ok(Verdict::Aborted(reason)) => Err(Denied::Aborted(reason)),
            Ok(Verdict::Starting) => {
                Err(Denied::No("57P03", "the site is starting; nothing has changed".into()))
            }
            Ok(Verdict::Impossible(why)) => Err(Denied::No("54000", why)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Err(Denied::No("40003", UNKNOWN.into()))
            }
        }
    }
}

const UNKNOWN: &str = "the outcome is unknown, because another cluster does not answer, or this site is \
                       ending. The transaction may have committed: look for a row that only it writes \
                       before you run it again";

/// Why a transaction was not certified.
pub(crate) enum Denied {
    Aborted(AbortReason),
    No(&'static str, String),
}

impl Denied {
    pub(crate) fn message(&self) -> Message {
        match self {
            Self::Aborted(AbortReason::Behind) => Message::error(
                "57P03",
                "another cluster lags or is cut off, and too many transactions wait for it; nothing has changed: try again later",
            ),
            Self::Aborted(_) => Message::error("40001", LOST),
            Self::No(code, why) => Message::error(code, why),
        }
    }
}

/// The port. Dropped, it ends all sessions.
pub struct SqlPort {
    front: Arc<Front>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl SqlPort {
    /// Listens at `address` for clients of the database that `options` names, which has a store: for such as are `certified`, if that is asked for. `submit`
    /// hands a transaction to the site.
    ///
    /// # Errors
    /// If it cannot listen, or the server does not answer.
    pub fn open(
        options: Options,
        address: SocketAddr,
        certified: Option<Certified>,
        submit: impl Fn(Ready) + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::Io(format!("sql = \"{address}\": {error}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let home = options.home()?;
        let front = Arc::new(Front::of(options, home, certified, Box::new(submit))?);
        let accepting = Arc::clone(&front);
        let accepting = std::thread::Builder::new()
            .name("sql".into())
            .spawn(move || accept(&accepting, &listener))
            .map_err(failed)?;
        Ok(Self { front, address, accepting: Some(accepting) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets clients in, to a store that has this version at least; or none.
    pub fn serve(&self, stored: Option<Version>) {
        self.front.stored.store(stored.map_or(CLOSED, |stored| stored.0), Ordering::SeqCst);
    }

    /// Whether the store was found at an older version: the site has to begin again.
    #[must_use]
    pub fn has_fallen_back(&self) -> bool {
        self.front.fell_back.load(Ordering::SeqCst)
    }
}

impl Drop for SqlPort {
    fn drop(&mut self) {
        self.front.ends.store(true, Ordering::SeqCst);
        // Ends the wait for the next client; if no thread waits any more, nothing is lost.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
        self.front.crowd().end();
    }
}

fn accept(front: &Arc<Front>, listener: &TcpListener) {
    while let Ok((client, _)) = listener.accept() {
        let has_room = waits_for_room(front);
        if front.ends.load(Ordering::SeqCst) {
            return;
        }
        match (has_room, client.try_clone()) {
            (_, Err(_)) => {} // too many files are open: dropping closes it
            // It may be gone already.
            (false, _) => drop(session::turn_away(client, Instant::now() + STAGE_PATIENCE)),
            (true, Ok(handle)) => serve(front, client, handle),
        }
    }
}

/// Waits until there is room for one more, or nobody will make any; whether there is.
fn waits_for_room(front: &Front) -> bool {
    loop {
        let room = front.crowd().room(Instant::now());
        if room != Room::Soon || front.ends.load(Ordering::SeqCst) {
            return room == Room::Free;
        }
        std::thread::sleep(ROOM_PAUSE);
    }
}

/// Gives a client its thread.
fn serve(front: &Arc<Front>, client: TcpStream, handle: TcpStream) {
    let number = front.crowd().enter(handle, Instant::now());
    let of_session = Arc::clone(front);
    let session = std::thread::Builder::new().name("sql session".into()).spawn(move || {
        let begun = client.set_nodelay(true);
        let client = begun.and_then(|()| Client::over(client, Instant::now() + STAGE_PATIENCE));
        // Whatever ends it, nobody is left to be told.
        let _ = client.and_then(|client| session::run(&of_session, number, client));
        of_session.crowd().leave(number);
    });
    if session.is_err() {
        front.crowd().leave(number);
    }
}
