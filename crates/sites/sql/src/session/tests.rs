//! Sessions at a server that refuses on command.

use std::net::TcpListener;
use std::sync::Mutex;

use pares_store::postgres::{Options, Preemptible, Way};
use pares_wice::Isolation;

use super::*;
use crate::link::{CANCELLED, NO_STATEMENT};
use crate::wire::{MESSAGE_MAX, receive, send};

/// What the server was asked, in this order; `SYNC` for a Sync.
type Asked = Arc<Mutex<Vec<String>>>;
/// Beginnings of statements that the server cancels, each once.
type Cancels = Arc<Mutex<Vec<&'static str>>>;

/// A server that has a row for every question: this word, and nothing in four columns.
fn server(mut socket: TcpStream, word: &'static str, cancels: &Cancels, asked: &Asked) {
    let (mut statement, mut skips) = (String::new(), false);
    while let Ok(message) = receive(&mut socket, MESSAGE_MAX) {
        match message.tag {
            b'P' => message.strings::<2>().unwrap()[1].clone_into(&mut statement),
            b'Q' => message.strings::<1>().unwrap()[0].clone_into(&mut statement),
            b'S' => asked.lock().unwrap().push("SYNC".into()),
            _ => {}
        }
        let mut say = |tag, body: &[u8]| send(&mut socket, tag, body).unwrap();
        if message.tag == b'S' {
            skips = false;
            say(b'Z', b"I");
        }
        let done = b"PBC".iter().position(|tag| *tag == message.tag);
        if let Some(done) = done.filter(|_| !skips) {
            say(b"123"[done], &[]);
        }
        if skips || !matches!(message.tag, b'Q' | b'E') {
            continue;
        }
        asked.lock().unwrap().push(statement.clone());
        let found = cancels.lock().unwrap().iter().position(|begin| statement.starts_with(begin));
        let fails = found.is_some() || statement == NO_STATEMENT;
        match fails {
            true => {
                found.map(|at| cancels.lock().unwrap().remove(at));
                say(b'E', &Message::error(CANCELLED, "canceling statement due to user request").body);
                skips = message.tag == b'E';
            }
            false => {
                let length = u32::try_from(word.len()).unwrap().to_be_bytes();
                say(b'D', &[&[0, 5], &length[..], word.as_bytes(), &[0xff; 16]].concat());
                say(b'C', &text("DONE"));
            }
        }
        if message.tag == b'Q' {
            say(b'Z', b"I");
        }
    }
}

struct Rig {
    session: Session,
    shared: Arc<Shared>,
    peer: TcpStream,
    asked: Asked,
    cancels: Cancels,
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

impl Rig {
    fn new(word: &'static str, cancels: &[&'static str]) -> Self {
        let (ours, theirs) = pair();
        let (cancels, asked) = (Arc::new(Mutex::new(cancels.to_vec())), Asked::default());
        let (cancelled, heard) = (Arc::clone(&cancels), Arc::clone(&asked));
        std::thread::spawn(move || server(theirs, word, &cancelled, &heard));
        let shared = Arc::new(Shared::new(Link::over(ours, false).unwrap()));
        let options = Options::new("host=127.0.0.1 user=nobody");
        let front = Front::of(options, "public".into(), None, Box::new(drop)).unwrap();
        let (client, peer) = pair();
        peer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut client = Client::over(client, Instant::now() + Duration::from_secs(60)).unwrap();
        client.begun(shared.lock().socket().unwrap(), Duration::ZERO);
        let session = Session::over(Arc::new(front), Arc::clone(&shared), client);
        Self { session, shared, peer, asked, cancels }
    }

    fn take(&mut self, message: &Message) {
        let shared = Arc::clone(&self.shared);
        let mut link = shared.lock();
        self.session.look(&mut link).unwrap();
        self.session.answer(&mut link, message).unwrap();
        self.session.look(&mut link).unwrap();
    }

    /// Sends a query; the last SQLSTATE or tag that answers it, and how the session is then.
    fn query(&mut self, query: &str) -> (String, char) {
        self.take(&Message::new(b'Q', text(query)));
        self.answer()
    }

    fn answer(&mut self) -> (String, char) {
        let mut said = String::new();
        loop {
            let message = receive(&mut self.peer, MESSAGE_MAX).unwrap();
            match message.tag {
                b'Z' => return (said, char::from(message.body[0])),
                b'E' => message.field(b'C').clone_into(&mut said),
                b'C' => message.strings::<1>().unwrap()[0].clone_into(&mut said),
                _ => {}
            }
        }
    }

    fn is(&mut self, query: &str, said: &str, state: char) {
        assert_eq!(self.query(query), (said.to_owned(), state), "{query}");
    }

    /// The writer finds the session busy with that transaction, and in its way.
    fn is_busy(&self, transaction: u64) -> Way {
        let _busy = self.shared.lock();
        self.shared.give_way(transaction)
    }
}

#[test]
fn blocking_statement_loses_client_cancel_does_not() {
    for (is_in_the_way, said) in [(true, "40001"), (false, CANCELLED)] {
        let mut rig = Rig::new("1", &["TABLE account"]);
        rig.is("BEGIN", "BEGIN", 'T');
        let shared = Arc::clone(&rig.shared);
        let mut link = shared.lock();
        if is_in_the_way {
            assert_eq!(shared.give_way(shared.open().unwrap()), Way::Cancel);
            shared.cancelled();
        }
        rig.session.answer(&mut link, &Message::new(b'Q', text("TABLE account"))).unwrap();
        rig.session.look(&mut link).unwrap();
        drop(link);
        assert_eq!(rig.answer(), (said.to_owned(), 'E'));
        // It is sent once.
        rig.is("COMMIT", "ROLLBACK", 'I');
        rig.cancels.lock().unwrap().push("SHOW");
        rig.is("SHOW x", CANCELLED, 'I');
    }
}

#[test]
fn ended_transaction_and_successor_are_not_cancelled() {
    let mut rig = Rig::new("1", &[]);
    rig.is("BEGIN", "BEGIN", 'T');
    let seen = rig.shared.open().unwrap();
    for end in ["ROLLBACK", "COMMIT"] {
        rig.is(end, end, 'I');
        assert_eq!((rig.shared.open(), rig.is_busy(seen)), (None, Way::Free));
        rig.is("BEGIN", "BEGIN", 'T');
        assert_eq!(rig.is_busy(seen), Way::Free);
        rig.is("TABLE account", "DONE", 'T');
    }
}

#[test]
fn a_transaction_ends_when_no_cancellation_is_under_way() {
    for end in ["ROLLBACK", "COMMIT"] {
        let mut rig = Rig::new("1", &[]);
        rig.is("BEGIN", "BEGIN", 'T');
        assert_eq!(rig.is_busy(rig.shared.open().unwrap()), Way::Cancel);
        let (shared, asked) = (Arc::clone(&rig.shared), Arc::clone(&rig.asked));
        let ends = std::thread::spawn(move || {
            let shared = Arc::clone(&rig.shared);
            let mut link = shared.lock();
            rig.session.answer(&mut link, &Message::new(b'Q', text(end))).unwrap();
            drop(link);
            rig.answer().0
        });
        while shared.open().is_some() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(20));
        assert!(!asked.lock().unwrap().iter().any(|asked| ["ROLLBACK", "COMMIT"].contains(&&**asked)));
        shared.cancelled();
        assert_eq!(ends.join().unwrap(), end);
        assert_eq!(asked.lock().unwrap().iter().filter(|asked| *asked == end).count(), 1);
    }
}

#[test]
fn what_cannot_be_taken_back_loses_its_connection() {
    let mut rig = Rig::new("1", &["ROLLBACK"; 3]);
    rig.is("BEGIN", "BEGIN", 'T');
    assert_eq!(rig.shared.give_way(rig.shared.open().unwrap()), Way::End);
}

#[test]
fn a_commit_is_told_though_the_next_transaction_does_not_begin() {
    let mut rig = Rig::new("1", &[]);
    rig.is("BEGIN", "BEGIN", 'T');
    rig.cancels.lock().unwrap().push("SAVEPOINT");
    rig.is("COMMIT AND CHAIN", "COMMIT", 'E');
    rig.is("TABLE account", CANCELLED, 'E');
    rig.is("TABLE account", "25P02", 'E');
    rig.is("ROLLBACK", "ROLLBACK", 'I');
}

#[test]
fn chain_continues_level_and_needs_transaction() {
    let mut rig = Rig::new("on", &[]);
    for end in ["COMMIT", "ROLLBACK"] {
        rig.is(&format!("{end} AND CHAIN"), "25P01", 'I');
        rig.is("BEGIN", "BEGIN", 'T');
        rig.is(&format!("{end} AND CHAIN"), end, 'T');
        let begun = rig.asked.lock().unwrap().iter().rev().find(|asked| asked.starts_with("BEGIN")).cloned();
        assert_eq!(begun.as_deref(), Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
        rig.is("ROLLBACK", "ROLLBACK", 'I');
    }
}

#[test]
fn a_second_begin_says_the_level_as_long_as_nothing_was_done() {
    let mut rig = Rig::new("1", &[]);
    rig.is("BEGIN", "BEGIN", 'T');
    rig.is("BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN", 'T');
    assert_eq!(rig.session.mode.level, Some(Isolation::Serialisable));
    rig.is("TABLE account", "DONE", 'T');
    rig.is("BEGIN", "BEGIN", 'T');
    rig.is("BEGIN READ WRITE", "BEGIN", 'T');
    assert!(rig.asked.lock().unwrap().contains(&"SET TRANSACTION READ WRITE".to_owned()));
    rig.cancels.lock().unwrap().push("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    rig.is("BEGIN ISOLATION LEVEL REPEATABLE READ", CANCELLED, 'E');
}

#[test]
fn unrestartable_transaction_ends_and_client_knows() {
    let mut rig = Rig::new("1", &["BEGIN ISOLATION LEVEL SERIALIZABLE"]);
    rig.is("BEGIN", "BEGIN", 'T');
    rig.is("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", CANCELLED, 'E');
    rig.is("TABLE account", "25P02", 'E');
    rig.is("ROLLBACK", "ROLLBACK", 'I');
}

#[test]
fn unknown_level_is_strictest_and_setting_lasts() {
    let mut rig = Rig::new("read committed", &["SELECT current_setting('default_transaction_isolation')"]);
    rig.is("SET default_transaction_isolation = 'read committed'", "DONE", 'I');
    assert_eq!(rig.shared.lock().level, Isolation::Serialisable);
    rig.is("SET x = 1", "DONE", 'I');
    assert_eq!(rig.shared.lock().level, Isolation::Snapshot);
    let discard = [&text("")[..], &text("DISCARD PLANS"), &[0, 0]].concat();
    rig.take(&Message::new(b'P', discard));
    rig.take(&Message::new(b'B', [&text("")[..], &text(""), &[0; 6]].concat()));
    rig.asked.lock().unwrap().clear();
    rig.take(&Message::new(b'E', [&text("")[..], &[0; 4]].concat()));
    assert_eq!(rig.asked.lock().unwrap()[..2], ["DISCARD PLANS", "SYNC"]);
}
