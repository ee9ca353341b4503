//! The connection to the site's own server, on behalf of one client.
//!
//! What the client asks goes through it one message at a time, so that it is known at every moment what the server is doing; between, the session asks
//! on its own account. Its statements have names, since a client's statement without one must survive them.

use std::io::{self, BufReader, BufWriter, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pares_store::postgres::{FIRST, Preemptible, Way};
use pares_wice::Isolation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use crate::current::Current;
use crate::statement::{Mode, isolation_named};
use crate::wire::{MESSAGE_MAX, Message, receive, send, text};

/// What the session calls its own statements and portals. They are there only while it asks: a client that executed one again could move what COMMIT goes back to.
const OWN: &str = "pares session";
/// SQLSTATE of what was cancelled.
pub(crate) const CANCELLED: &str = "57014";
/// What the server refuses, and its log shows.
pub(crate) const NO_STATEMENT: &str = "refused by the site";
/// The part of the server that refuses a text of several statements as one, when it has read it.
const NOT_ONE: &str = "postgres.c";
/// The server warns that a portal is left which was made in what had failed: that of the client's own end of it.
const SKIPPED_PORTAL: &str = "01000";
/// How often a rollback is tried, which its client may cancel.
const ROLLBACKS: usize = 3;

/// How often a relation was written to, by relations, as far as the server has not yet told its statistics: that it does some time behind a transaction, so what one that was taken back
/// has done is still counted in the next ones.
const COUNTS: &str = "
    SELECT coalesce(pg_catalog.jsonb_object_agg(oid, count), '{}')::text FROM (
        SELECT oid, pg_catalog.pg_stat_get_xact_tuples_inserted(oid) + pg_catalog.pg_stat_get_xact_tuples_updated(oid) + pg_catalog.pg_stat_get_xact_tuples_deleted(oid) AS count
        FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'S', 'm', 'f', 'v')) counts WHERE count > 0";
/// As [`COUNTS`] says it.
const NOTHING_COUNTED: &str = "{}";

/// Why the server did not do it.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It says why; the message is for the client.
    Refused(Message),
    /// The connection is gone.
    Gone(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// The connection.
pub(crate) struct Link {
    reader: BufReader<TcpStream>,
    writer: BufWriter<TcpStream>,
    /// Whether a transaction block is open at the server.
    pub(crate) open: bool,
    /// The transaction as the writer may cancel it: until it is to end.
    pub(crate) current: Arc<Current>,
    /// Whether it was taken back because it was in another's way.
    pub(crate) lost: bool,
    /// What the session's transactions are held against, unless they say so themselves.
    pub(crate) level: Isolation,
    /// Its client may do nothing else.
    pub(crate) reads_only: bool,
    /// Whether an earlier transaction may have left [counts](COUNTS) of what it did.
    pub(crate) counts: bool,
    /// Those at the beginning of the transaction.
    pub(crate) counted: String,
    /// The client's messages of the extended protocol have begun something, or the server ignores everything, up to a Sync.
    unsynced: bool,
    /// What the server said beside, for the client.
    pub(crate) aside: Vec<Message>,
}

impl Link {
    pub(crate) fn over(stream: TcpStream, reads_only: bool) -> io::Result<Self> {
        Ok(Self {
            reader: BufReader::new(stream.try_clone()?),
            writer: BufWriter::new(stream),
            open: false,
            current: Arc::default(),
            lost: false,
            level: Isolation::Snapshot,
            reads_only,
            counts: false,
            counted: NOTHING_COUNTED.into(),
            unsynced: false,
            aside: Vec::new(),
        })
    }

    pub(crate) fn writer(&mut self) -> &mut impl Write {
        &mut self.writer
    }

    pub(crate) fn receive(&mut self) -> io::Result<Message> {
        receive(&mut self.reader, MESSAGE_MAX)
    }

    /// Sends a message of the client's; of the extended protocol, with a request for its answer.
    pub(crate) fn pass(&mut self, message: &Message, extended: bool) -> io::Result<()> {
        send(&mut self.writer, message.tag, &message.body)?;
        if extended {
            self.unsynced = true;
            send(&mut self.writer, b'H', &[])?;
        }
        self.writer.flush()
    }

    /// Sends a message of the client's without an answer; see [`Link::flush`].
    pub(crate) fn pass_on(&mut self, message: &Message) -> io::Result<()> {
        send(&mut self.writer, message.tag, &message.body)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Another end of the connection, to wait at.
    pub(crate) fn socket(&self) -> io::Result<TcpStream> {
        self.reader.get_ref().try_clone()
    }

    /// Whether there is something that was received with an earlier message.
    pub(crate) fn has_more(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// Whether the server has said something, or ended.
    pub(crate) fn has_said(&self) -> io::Result<bool> {
        let mut end = [PollFd::new(self.reader.get_ref(), PollFlags::IN)];
        Ok(self.has_more() || retry_on_intr(|| poll(&mut end, Some(&Timespec::default())))? > 0)
    }

    /// Ends what was sent by the extended protocol.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        send(&mut self.writer, b'S', &[])?;
        self.writer.flush()?;
        self.synced()
    }

    fn synced(&mut self) -> io::Result<()> {
        self.unsynced = false;
        loop {
            let message = self.receive()?;
            match message.tag {
                b'Z' => return Ok(()),
                b'S' | b'N' | b'A' | b'E' => self.aside.push(message),
                _ => {}
            }
        }
    }

    /// Runs a statement on the session's own account.
    pub(crate) fn ask(&mut self, statement: &str, values: &[&str]) -> Result<Rows, Trouble> {
        let mut rows = Rows::new();
        self.ask_each(statement, values, &mut |row| rows.push(row))?;
        Ok(rows)
    }

    /// The same; each row is handed over as it comes.
    pub(crate) fn ask_each(
        &mut self,
        statement: &str,
        values: &[&str],
        row: &mut dyn FnMut(Vec<Option<String>>),
    ) -> Result<(), Trouble> {
        self.say(&[
            (b'C', own(b'P')),
            (b'C', own(b'S')),
            (b'P', [text(OWN), text(statement), vec![0, 0]].concat()),
            (b'B', bound(values)?),
            (b'E', [text(OWN), vec![0; 4]].concat()),
            (b'C', own(b'P')),
            (b'C', own(b'S')),
            (b'S', Vec::new()),
        ])?;
        self.rows(row)
    }

    /// Sends the session's own messages. What the client's have begun ends before: the server gives its next transaction no other level (25001), and ignores
    /// all behind one that it has refused.
    fn say(&mut self, messages: &[(u8, Vec<u8>)]) -> io::Result<()> {
        if self.unsynced {
            send(&mut self.writer, b'S', &[])?;
        }
        for (tag, body) in messages {
            send(&mut self.writer, *tag, body)?;
        }
        self.writer.flush()?;
        if self.unsynced { self.synced() } else { Ok(()) }
    }

    /// Whether the server takes a text for one statement as its session does. A text with no semicolon in it is one; else the server prepares one and refuses more.
    pub(crate) fn must_be_one(&mut self, statement: &str) -> Result<(), Trouble> {
        if statement.contains(';') { self.must_be_read(statement) } else { Ok(()) }
    }

    /// Whether the server reads a text, which it does not execute.
    pub(crate) fn must_be_read(&mut self, statement: &str) -> Result<(), Trouble> {
        self.say(&[
            (b'C', own(b'S')),
            (b'P', [text(OWN), text(statement), vec![0, 0]].concat()),
            (b'C', own(b'S')),
            (b'S', Vec::new()),
        ])?;
        self.rows(&mut drop)
    }

    /// Whether the server reads all of a text of several statements. It prepares none, but reads them first. What is open stays as it is, unless it does not.
    pub(crate) fn must_all_be_read(&mut self, text: &str, is_open: bool) -> Result<(), Trouble> {
        if is_open {
            self.ask(&format!("SAVEPOINT \"{OWN}\""), &[])?;
        }
        match self.must_be_read(text) {
            Err(Trouble::Refused(why)) if why.field(b'F') == NOT_ONE => {}
            other => other?,
        }
        for end in ["ROLLBACK TO", "RELEASE"].into_iter().filter(|_| is_open) {
            self.ask(&format!("{end} \"{OWN}\""), &[])?;
        }
        Ok(())
    }

    /// Whether the server has by that name what its client has sent, by the protocol and not by PREPARE.
    pub(crate) fn has_prepared(&mut self, name: &str, statement: &str) -> io::Result<bool> {
        let known = "SELECT FROM pg_catalog.pg_prepared_statements WHERE name OPERATOR(pg_catalog.=) $1 AND statement OPERATOR(pg_catalog.=) $2 AND NOT from_sql";
        match self.ask(known, &[name, statement]) {
            Ok(rows) => Ok(!rows.is_empty()),
            Err(Trouble::Refused(_)) => Ok(false),
            Err(Trouble::Gone(error)) => Err(error),
        }
    }

    fn rows(&mut self, row: &mut dyn FnMut(Vec<Option<String>>)) -> Result<(), Trouble> {
        let mut refused = None;
        loop {
            let message = self.receive()?;
            match message.tag {
                b'Z' => break,
                b'D' => row(message.columns()?),
                b'E' if !message.is_last() => refused = Some(message),
                b'E' | b'S' | b'N' | b'A' => self.aside.push(message),
                _ => {}
            }
        }
        refused.map_or(Ok(()), |why| Err(Trouble::Refused(why)))
    }

    /// Begins a transaction, with a savepoint to go back to.
    pub(crate) fn begin(&mut self, mode: Mode) -> Result<(), Trouble> {
        let read_only = if self.reads_only { Some(true) } else { mode.read_only };
        let mode = Mode { read_only, level: mode.level.or(Some(self.level)) };
        self.ask(&format!("BEGIN {}", mode.words()), &[])?;
        self.open = true;
        self.current.begin();
        if self.reads_only {
            // Behind its first query the server never lets it write.
            self.ask("SELECT 1", &[])?;
        }
        if self.counts {
            let rows = self.ask(COUNTS, &[])?;
            let counted = rows.first().and_then(|row| row[0].clone());
            self.counted = counted.unwrap_or_else(|| NOTHING_COUNTED.into());
            self.counts = self.counted != NOTHING_COUNTED;
        } else if self.counted != NOTHING_COUNTED {
            self.counted = NOTHING_COUNTED.into();
        }
        self.ask(FIRST, &[]).map(drop)
    }

    /// Asks what the session's transactions are held against now: as strictly as can be, if the server does not say.
    pub(crate) fn learn_level(&mut self) -> io::Result<()> {
        self.level = match self.ask("SELECT current_setting('default_transaction_isolation')", &[]) {
            Ok(rows) => isolation_named(rows.first().and_then(|row| row[0].as_deref()).unwrap_or_default()),
            Err(Trouble::Refused(_)) => Isolation::Serialisable,
            Err(Trouble::Gone(error)) => return Err(error),
        };
        Ok(())
    }

    /// Commits what is open and has written nothing.
    pub(crate) fn commit(&mut self) -> Result<(), Trouble> {
        self.current.close();
        self.ask("COMMIT", &[])?;
        self.open = false;
        Ok(())
    }

    /// Has what is open fail, as with an error in it.
    pub(crate) fn fail(&mut self) -> io::Result<()> {
        match self.ask(NO_STATEMENT, &[]) {
            Err(Trouble::Refused(_)) => Ok(()),
            Err(Trouble::Gone(error)) => Err(error),
            Ok(_) => Err(io::Error::other("the server has not refused what is no statement")),
        }
    }

    /// Takes back what is open.
    pub(crate) fn roll_back(&mut self) -> io::Result<()> {
        self.counts = true;
        self.current.close();
        for _ in 0..ROLLBACKS {
            let heard = self.aside.len();
            match self.ask("ROLLBACK", &[]) {
                Ok(_) => {
                    self.open = false;
                    // Before it are warnings of the client's own triggers, which have the same code.
                    let of_rollback = self.aside.split_off(heard).into_iter();
                    self.aside.extend(
                        of_rollback
                            .filter(|message| message.tag != b'N' || message.field(b'C') != SKIPPED_PORTAL),
                    );
                    return Ok(());
                }
                Err(Trouble::Refused(_)) => {}
                Err(Trouble::Gone(error)) => return Err(error),
            }
        }
        Err(io::Error::other("the server does not roll back"))
    }
}

/// What names the session's own portal (`P`) or statement (`S`).
fn own(kind: u8) -> Vec<u8> {
    [&[kind][..], &text(OWN)].concat()
}

/// The session's own statement with its values, all text.
fn bound(values: &[&str]) -> io::Result<Vec<u8>> {
    let count = u16::try_from(values.len()).expect("a few").to_be_bytes();
    let mut bind = [text(OWN), text(OWN), vec![0, 0], count.to_vec()].concat();
    for value in values {
        let length = u32::try_from(value.len()).map_err(io::Error::other)?;
        bind.extend_from_slice(&length.to_be_bytes());
        bind.extend_from_slice(value.as_bytes());
    }
    bind.extend_from_slice(&[0, 0]);
    Ok(bind)
}

/// A link that its session uses and the store's writer may need to be free.
pub(crate) struct Shared {
    link: Mutex<Link>,
    current: Arc<Current>,
}

impl Shared {
    pub(crate) fn new(link: Link) -> Self {
        let current = Arc::clone(&link.current);
        Self { link: Mutex::new(link), current }
    }

    /// Whether the latest transaction was in another's way.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.current.is_in_the_way()
    }

    /// The outcome of that transaction was sent.
    pub(crate) fn forget(&self) {
        self.current.forget();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Preemptible for Shared {
    fn open(&self) -> Option<u64> {
        self.current.open()
    }

    fn give_way(&self, transaction: u64) -> Way {
        let mut link = match self.link.try_lock() {
            Ok(link) => link,
            Err(TryLockError::WouldBlock) if self.current.cancel(transaction) => return Way::Cancel,
            Err(TryLockError::WouldBlock) => return Way::Free,
            // Its session has panicked, and may have been in the middle of a message.
            Err(TryLockError::Poisoned(_)) => return Way::End,
        };
        if self.current.open() == Some(transaction) {
            link.lost = link.roll_back().is_ok();
            return if link.lost { Way::Free } else { Way::End };
        }
        Way::Free
    }

    fn cancelled(&self) {
        self.current.cancelled();
    }
}
