//! A session at a server that cancels what it is told to.

use std::net::TcpListener;
use std::time::Duration;

use pares_store::postgres::{GivesWay, Options, Way};
use pares_wice::Isolation;

use super::*;
use crate::wire::{MESSAGE_MAX, Stream, receive, send};

/// A server that has a row for every question: this word, and nothing in four columns. Statements that begin with one of these are cancelled, each once.
fn server(mut socket: TcpStream, word: &'static str, mut cancels: Vec<&'static str>) {
    let (mut statement, mut skips) = (String::new(), false);
    while let Ok(message) = receive(&mut socket, MESSAGE_MAX) {
        match message.tag {
            b'P' => message.strings::<2>().unwrap()[1].clone_into(&mut statement),
            b'Q' => message.strings::<1>().unwrap()[0].clone_into(&mut statement),
            _ => {}
        }
        let mut say = |tag, body: &[u8]| send(&mut socket, tag, body).unwrap();
        if message.tag == b'S' {
            skips = false;
            say(b'Z', b"I");
        }
        if skips || !matches!(message.tag, b'Q' | b'E') {
            continue;
        }
        match cancels.iter().position(|begin| statement.starts_with(begin)) {
            Some(at) => {
                cancels.remove(at);
                say(b'E', &Message::error(CANCELLED, "canceling statement due to user request").body);
            }
            None => {
                let length = u32::try_from(word.len()).unwrap().to_be_bytes();
                say(b'D', &[&[0, 5], &length[..], word.as_bytes(), &[0xff; 16]].concat());
                say(b'C', &text("DONE"));
            }
        }
        skips = message.tag == b'E';
        if !skips {
            say(b'Z', b"I");
        }
    }
}

struct Rig {
    session: Session,
    shared: Arc<Shared>,
    peer: TcpStream,
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

impl Rig {
    fn new(word: &'static str, cancels: &[&'static str]) -> Self {
        let (ours, theirs) = pair();
        let cancels = cancels.to_vec();
        std::thread::spawn(move || server(theirs, word, cancels));
        let shared = Arc::new(Shared::new(Link::over(Stream::Tcp(ours), false).unwrap()));
        let options = Options::new("host=127.0.0.1 user=nobody");
        let front = Front::of(options, "public".into(), None, Box::new(drop)).unwrap();
        let (client, peer) = pair();
        let mut client = Client::over(client, Instant::now() + Duration::from_secs(60));
        client.begun().unwrap();
        let session = Session::over(Arc::new(front), Arc::clone(&shared), client);
        Self { session, shared, peer }
    }

    /// Sends a query; SQLSTATE of the error that answers it, or the tag of the answer that ends it.
    fn query(&mut self, query: &str) -> String {
        let shared = Arc::clone(&self.shared);
        let mut link = shared.lock();
        self.session.look(&mut link).unwrap();
        self.session.answer(&mut link, &Message::new(b'Q', text(query))).unwrap();
        let mut said = String::new();
        loop {
            let message = receive(&mut self.peer, MESSAGE_MAX).unwrap();
            match message.tag {
                b'Z' => return said,
                b'E' => message.field(b'C').clone_into(&mut said),
                b'C' => message.strings::<1>().unwrap()[0].clone_into(&mut said),
                _ => {}
            }
        }
    }

    /// The writer finds the session busy, so often.
    fn in_the_way(&self, times: u32) {
        let _busy = self.shared.lock();
        (0..times).for_each(|_| assert_eq!(self.shared.give_way(), Way::Cancel));
    }
}

#[test]
fn a_late_cancellation_is_another_transaction_that_came_first_wherever_it_hits() {
    for hit in ["BEGIN ISOLATION", "SAVEPOINT", "TABLE account", "ROLLBACK"] {
        let mut rig = Rig::new("1", &[hit]);
        rig.in_the_way(1);
        let said = ["BEGIN", "TABLE account", "ROLLBACK"].map(|query| rig.query(query));
        assert!(said.iter().all(|said| said != CANCELLED), "{hit}: {said:?}");
        assert_eq!(said.iter().any(|said| said == "40001"), hit != "ROLLBACK", "{hit}: {said:?}");
        assert_eq!(rig.query("TABLE account"), "DONE");
    }
}

#[test]
fn as_many_are_the_writers_as_it_asked_for() {
    let mut rig = Rig::new("1", &["TABLE account"; 3]);
    rig.in_the_way(2);
    let said = [(); 4].map(|()| rig.query("TABLE account"));
    assert_eq!(said, ["40001", "40001", CANCELLED, "DONE"]);
}

#[test]
fn what_the_session_asks_for_itself_is_asked_again() {
    let level = "SELECT current_setting('default_transaction_isolation')";
    let mut rig = Rig::new("serializable", &[level, level]);
    rig.in_the_way(1);
    assert_eq!(rig.query("SET default_transaction_isolation = 'serializable'"), "DONE");
    assert_eq!(rig.shared.lock().level, Isolation::Serialisable);
}
