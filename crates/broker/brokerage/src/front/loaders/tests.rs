//! Bytes to the port of a front over a site of this process, and what it says to them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::{Events, Poll};
use pares_broker::{AccountSummary, Asked, Refusal, UserCommand, Verb};
use pares_front::{Arrival, CommandOrder, EACH_USER};
use pares_site::config::Promise;
use tempfile::TempDir;

use super::*;
use crate::dump;
use crate::front::old_stamps;
use crate::link::SocketOwner;
use crate::quote_server::{Behaviour, QuoteServer};

const OWNER: SocketOwner = SocketOwner(2);

/// A front, and where it listens.
struct At {
    floor: Floor,
    loaders: Loaders,
    poll: Poll,
    events: Events,
    address: SocketAddr,
    is_disk_full: bool,
    _quotes: Option<QuoteServer>,
    _dir: TempDir,
}

impl At {
    fn new() -> Self {
        let behaviour = Behaviour { seed: 1, instant: true, bad_per_mille: 0 };
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let quotes = QuoteServer::start(any, behaviour.settings()).unwrap();
        let address = quotes.address();
        Self { _quotes: Some(quotes), ..Self::with_quotes_of(address) }
    }

    fn with_quotes_of(address: SocketAddr) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (dir, poll) = (tempfile::tempdir().unwrap(), Poll::new().unwrap());
        let floor = Floor::alone(dir.path(), Promise::Os, None, address, None).unwrap();
        let port = Port::bind(any, poll.registry(), OWNER, 10).unwrap();
        let address = port.address().unwrap();
        let events = Events::with_capacity(16);
        let loaders = Loaders::at(port);
        Self { floor, loaders, poll, events, address, is_disk_full: false, _quotes: None, _dir: dir }
    }

    /// The quote server takes connections, and says nothing.
    fn without_quotes() -> (Self, TcpListener) {
        let silent = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        (Self::with_quotes_of(silent.local_addr().unwrap()), silent)
    }

    /// The next lines that a connection receives.
    fn hears(&mut self, client: &mut TcpStream, lines: usize) -> String {
        let mut told = Vec::new();
        for _ in 0..20_000 {
            if told.iter().filter(|byte| **byte == b'\n').count() == lines {
                return String::from_utf8(told).unwrap();
            }
            self.turn();
            let mut bytes = [0; 4_096];
            let count = client.read(&mut bytes).unwrap_or_default();
            told.extend_from_slice(&bytes[..count]);
        }
        panic!("{lines} lines were to come: {}", String::from_utf8_lossy(&told));
    }

    /// Turns until it is so.
    fn until(&mut self, is_so: impl Fn(&mut Self) -> bool) {
        while !is_so(self) {
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.poll.poll(&mut self.events, Some(Duration::from_millis(1))).unwrap();
        for event in &self.events {
            self.loaders.port.wake(SocketOwner::of(event.token()).1);
        }
        self.loaders.turn(&mut self.floor);
        for mut told in self.floor.turn().unwrap() {
            told.is_unwritten = self.is_disk_full && told.dump().is_some();
            self.loaders.tell(&told, &mut self.floor);
        }
        self.loaders.flush(&mut self.floor);
    }

    /// What a client that says these bytes, and no more, receives until its connection ends; without the greeting.
    fn says(&mut self, bytes: &[u8]) -> String {
        let said = self.say(bytes);
        self.told(said)
    }

    fn say(&self, bytes: &[u8]) -> JoinHandle<String> {
        let (mut client, bytes) = (TcpStream::connect(self.address).unwrap(), bytes.to_vec());
        std::thread::spawn(move || {
            let mut told = Vec::new();
            // A front that does not want to hear the end of it closes before.
            let _ = client.write_all(&bytes).and_then(|()| client.shutdown(std::net::Shutdown::Write));
            // What a connection has said is there, however it ends.
            let _ = client.read_to_end(&mut told);
            String::from_utf8(told).unwrap()
        })
    }

    fn told(&mut self, reading: JoinHandle<String>) -> String {
        self.until(|_| reading.is_finished());
        let told = reading.join().unwrap();
        let (greeting, told) = told.split_once('\n').unwrap();
        assert!(greeting.starts_with("SESSION "), "{greeting}");
        told.to_owned()
    }

    /// A connection that has been told its session, and has taken nothing since.
    fn greeted(&mut self) -> (TcpStream, String) {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.set_nonblocking(true).unwrap();
        let mut greeting = Vec::new();
        while greeting.last() != Some(&b'\n') {
            self.turn();
            let mut byte = [0];
            greeting.extend(client.read(&mut byte).ok().map(|_| byte[0]));
        }
        (client, String::from_utf8(greeting).unwrap())
    }

    /// What the front holds for its only connection, bytes.
    fn unread(&mut self) -> Option<usize> {
        let number = self.loaders.loaders.keys().next().copied()?;
        self.loaders.port.conn(number).map(|conn| conn.backlog())
    }

    fn account(&mut self, user: &str) -> Option<AccountSummary> {
        let (site, user) = (self.floor.address().unwrap().into(), UserName::new(user).unwrap());
        let reading = std::thread::spawn(move || dump::summaries(vec![site], vec![user]));
        self.until(|_| reading.is_finished());
        reading.join().unwrap().unwrap().into_values().next()
    }
}

/// The lines of a reply whose order says nothing.
fn sorted(told: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_body_of_a_web_pages_request_is_not_executed() {
    let mut at = At::new();
    let request =
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:4600\r\nConnection: keep-alive\r\nContent-Length: 17\r\n\
        Content-Type: text/plain;charset=UTF-8\r\nOrigin: http://example.org\r\n\r\n[1] ADD,eve,1.00\n";
    assert_eq!(at.says(request), "[0] LOST the line is not a loader's\n");
    assert_eq!(at.account("eve"), None);
    assert_eq!(at.says(b"\n [1] ADD,jo,1.00 \r\n[x] ADD,jo,1.00\n").lines().count(), 2, "goes on");
    assert!(at.account("jo").is_some());
    let told = at.says(b"[1] ADD,al,1.00\nSESSION 5\n[2] ADD,al,1.00\n");
    assert!(told.contains("[0] LOST a session must be named before its first command\n"), "{told}");
}

#[test]
fn unassigned_session_ends_its_connection_not_the_front() {
    let mut at = At::new();
    let own = at.floor.front.number().unwrap() << 18;
    for session in [0, 5, own, own + 1_001, own + (1 << 18) + 2, 1 << 39, 1 << 40, u64::MAX] {
        let told = at.says(format!("SESSION {session}\n[1] ADD,eve,1.00\n").as_bytes());
        assert_eq!(told, format!("[0] LOST session {session} was never assigned\n"));
    }
    assert_eq!(at.account("eve"), None);
    assert_eq!(at.says(b"[1] ADD,jo,1.00\n"), "[1] OK cash 1.00\n");
    let other = (own + (1 << 18)) + 1;
    assert_eq!(at.says(format!("SESSION {other}\n[1] ADD,jo,1.00\n").as_bytes()), "[1] OK cash 2.00\n");
}

#[test]
fn what_was_never_executed_is_not_answered_ok() {
    let mut at = At::new();
    let told = at.says(b"[5] ADD,jo,1.00\n[3>0] ADD,jo,1.00\n[7>3] ADD,jo,1.00\n[5>0] ADD,jo,1.00\n");
    assert_eq!(
        sorted(&told),
        ["[3] LOST overtaken", "[5] OK cash 1.00", "[5] OK cash 1.00", "[7] LOST overtaken"]
    );
}

#[test]
fn a_line_that_is_not_taken_is_not_the_one_before_the_next() {
    let mut at = At::new();
    for beyond in ["16777216", "18446744073709551616"] {
        let told = at.says(format!("[1] ADD,jo,1.00\n[{beyond}] ADD,jo,1.00\n[2] ADD,jo,1.00\n").as_bytes());
        let lost = format!("[{beyond}] LOST a session's numbers");
        assert!(told.contains(&lost) && told.contains("[2] OK cash "), "{told}");
    }
}

#[test]
fn repeated_line_gets_first_reply_late_one_the_reason() {
    let mut at = At::new();
    let told = at.says(b"[5] ADD,rep,10\n[5] ADD,rep,10\n[3] ADD,rep,10\n[8>9] ADD,rep,10\n[8>8] ADD,rep,10\n[6] ADD,rep,10\n[7>9] DUMPLOG,./all\n");
    let expected = [
        "[3] LOST overtaken",
        "[5] OK cash 10.00",
        "[5] OK cash 10.00",
        "[6] OK cash 20.00",
        "[7] LOST its number must be above 9, which it follows",
        "[8] LOST its number must be above 8, which it follows",
        "[8] LOST its number must be above 9, which it follows",
    ];
    assert_eq!(sorted(&told), expected);
}

#[test]
fn a_connection_whose_command_is_given_up_is_told_so() {
    let mut at = At::new();
    let waits = at.say(b"[7>3] ADD,jo,1.00\n");
    at.until(|at| !at.loaders.open.is_empty());
    let asked = Asked::Command { command: UserCommand::of(Verb::Add), fault: None };
    let arrival = *at.loaders.open.keys().next().unwrap();
    at.loaders.tell(&Told { arrival, asked, reply: None, is_unwritten: false }, &mut at.floor);
    let told = at.told(waits);
    assert!(told.starts_with("[0] LOST line 7 was given up, because the previous line is missing"), "{told}");
}

#[test]
fn a_connection_has_no_more_users_than_it_may() {
    let mut at = At::new();
    at.loaders.users_max = 2;
    let told = at.says(b"[1] ADD,a,1.00\n[2] ADD,b,1.00\n[3] ADD,a,1.00\n[4] ADD,c,1.00\n");
    assert!(told.ends_with("[0] LOST too many users on one connection\n"), "{told}");
    assert_eq!(at.account("c"), None);
}

#[test]
fn excess_dump_blocks_only_its_own_connection() {
    let mut at = At::new();
    at.floor.dumps_max = 0;
    let held = at.say(b"[1] DUMPLOG,jo,log\n[2] ADD,jo,1.00\n");
    at.until(|at| at.loaders.loaders.values().any(|loader| loader.held.is_some()));
    assert_eq!(at.says(b"[1] ADD,al,1.00\n"), "[1] OK cash 1.00\n");
    assert_eq!((at.account("jo"), held.is_finished()), (None, false));
    at.floor.dumps_max = 1;
    assert_eq!(at.told(held), "[1] OK\n[2] OK cash 1.00\n");
}

#[test]
fn a_log_that_could_not_be_written_is_not_answered_ok() {
    let mut at = At::new();
    at.is_disk_full = true;
    let found = at.says(b"[1] DUMPLOG,jo,log\n");
    assert_eq!(found, "[1] UNWRITTEN the log could not be written: say the line again\n");
    at.is_disk_full = false;
    assert_eq!(at.says(b"[1] DUMPLOG,jo,log\n"), "[1] OK\n");
}

#[test]
fn reused_number_with_other_command_is_not_ok() {
    let mut at = At::new();
    let told = at.says(b"[1] ADD,jo,1.00\n[1>0] ADD,jo,9.00\n[1>0] ADD,jo,1.00\n");
    assert_eq!(
        sorted(&told),
        ["[1] LOST another command has this number", "[1] OK cash 1.00", "[1] OK cash 1.00"]
    );
}

#[test]
fn unsent_requests_of_closed_connection_are_dropped() {
    let (mut at, _silent) = At::without_quotes();
    let told = at.says(b"[1] QUOTE,jo,S\n[2] ADD,jo,1.00\n[3] ADD,al,1.00\nno line\n");
    assert!(told.ends_with("[0] LOST the line is not a loader's\n"), "{told}");
    while at.account("al").is_none() {}
    assert_eq!((at.floor.front.open_of(UserName::new("jo").as_ref()), at.account("jo")), (0, None));
}

#[test]
fn user_waiting_for_quote_blocks_no_other_user() {
    let (mut at, _silent) = At::without_quotes();
    let mut lines = "[1] QUOTE,jo,S\n".to_owned();
    (2..=6_000).for_each(|number| lines.push_str(&format!("[{number}] ADD,jo,1.00\n")));
    lines.push_str("[6001] ADD,al,1.00\n");
    let both = at.say(lines.as_bytes());
    at.until(|at| at.account("al").is_some());
    assert_eq!(at.says(b"[1] ADD,bo,1.00\n"), "[1] OK cash 1.00\n");
    let told = at.told(both);
    assert!(told.starts_with("[6001] OK cash 1.00\n[1] REFUSED 10 "), "{}", &told[..80]);
    assert_eq!(told.lines().count(), 6_001);
}

#[test]
fn non_reading_loader_is_cut_off_its_session_continues() {
    let mut at = At::new();
    let (mut client, session) = at.greeted();
    client.write_all(b"[1] ADD,jo,1.00\n").unwrap();
    let wrong = b"[x\n".repeat(10_000);
    // The socket has taken what it can, and so has the front.
    while client.write(&wrong).is_ok() || at.unread().unwrap() < UNREAD_MAX {
        at.turn();
    }
    for _ in 0..50 {
        at.turn();
        assert!((UNREAD_MAX..UNREAD_MAX + 1_000).contains(&at.unread().unwrap()), "{:?}", at.unread());
    }
    assert_eq!(at.says(b"[1] ADD,al,1.00\n"), "[1] OK cash 1.00\n", "others are answered");
    at.loaders.patience.unread = Duration::ZERO;
    at.until(|at| at.unread().is_none());
    let goes_on = format!("{session}[1>0] ADD,jo,1.00\n[2] ADD,jo,1.00\n");
    assert_eq!(at.says(goes_on.as_bytes()), "[1] OK cash 1.00\n[2] OK cash 2.00\n");
}

#[test]
fn who_begins_to_take_its_answers_is_read_again() {
    let mut at = At::new();
    let (mut client, _) = at.greeted();
    let wrong = b"[x\n".repeat(10_000);
    let mut said = 0;
    while at.unread().unwrap() < UNREAD_MAX {
        said += client.write(&wrong).unwrap_or_default();
        at.turn();
    }
    while said % 3 != 0 {
        said += client.write(&wrong[said % 3..3]).unwrap_or_default();
        at.turn();
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    client.set_nonblocking(false).unwrap();
    let reading =
        std::thread::spawn(move || std::io::BufRead::lines(std::io::BufReader::new(client)).count());
    at.until(|_| reading.is_finished());
    assert_eq!(reading.join().unwrap(), said / 3, "each line has its answer");
}

#[test]
fn bytewise_line_is_a_line_unterminated_is_not() {
    let mut at = At::new();
    let (mut client, _) = at.greeted();
    for byte in b"[1] ADD,jo,1.00\n" {
        client.write_all(&[*byte]).unwrap();
        at.turn();
    }
    while at.account("jo").is_none() {}
    assert_eq!(at.says(b"[1] ADD,al,1.00"), "", "what ends with its connection is half of something");
    client.write_all(b"[2] ADD,jo,1").unwrap();
    (0..20).for_each(|_| at.turn());
    at.loaders.patience.line = Duration::ZERO;
    at.until(|at| at.loaders.loaders.is_empty());
    let mut told = String::new();
    client.read_to_string(&mut told).unwrap();
    assert_eq!(told, "[1] OK cash 1.00\n[0] LOST a line is not terminated\n");
    assert_eq!(at.account("al"), None);
}

#[test]
fn a_line_of_a_million_bytes_ends_its_connection_with_a_reason() {
    let mut at = At::new();
    for (begin, shown) in [("[1] ADD,jo,", 1), ("[2>1] ADD,jo,", 2), ("[3 ", 3), ("[", 0), ("", 0)] {
        for end in ["", "\n"] {
            let line = format!("{begin}{}{end}", "9".repeat(1_000_000));
            let told = format!("[{shown}] LOST a line may have at most 1,024 bytes\n");
            assert_eq!(at.says(line.as_bytes()), told, "{begin}");
        }
    }
    let longest = format!("[1] ADD,jo,1.00{}\n[2] ADD,jo,1.00{}\n", " ".repeat(1_009), " ".repeat(1_010));
    let told = at.says(longest.as_bytes());
    assert!(told.ends_with("[2] LOST a line may have at most 1,024 bytes\n"), "{told}");
    let found = at.account("jo").map(|account| account.account.cash_cents);
    assert_eq!(found, Some(100), "1,024 are not too many");
}

#[test]
fn nonsense_is_refused_with_reason_and_no_change() {
    let mut at = At::new();
    let nines = "9".repeat(31);
    for (command, reason) in [
        ("ADD,jo,0", Refusal::BadAmount),
        ("ADD,jo,0.00", Refusal::BadAmount),
        ("ADD,jo,-5.00", Refusal::BadAmount),
        ("ADD,jo,1.005", Refusal::BadAmount),
        (&format!("ADD,jo,{nines}"), Refusal::BadAmount),
        ("ADD,jo,1e30", Refusal::BadAmount),
        ("BUY,jo,S,0.001", Refusal::BadAmount),
        ("SET_BUY_TRIGGER,jo,S,-1", Refusal::BadAmount),
        ("ADD,j\0o,1.00", Refusal::BadUser),
        ("ADD,\u{1b}[2Jjo,1.00", Refusal::BadUser),
        ("ADD,\u{7f},1.00", Refusal::BadUser),
        ("ADD,,1.00", Refusal::BadUser),
        ("BUY,jo,\0,1.00", Refusal::BadSymbol),
        ("STEAL,jo", Refusal::UnknownCommand),
        ("add,jo,1.00", Refusal::UnknownCommand),
        ("", Refusal::UnknownCommand),
        ("ADD,j\u{f6},1.00", Refusal::NotText),
    ] {
        let told = at.says(format!("[1] {command}\n").as_bytes());
        assert!(told.starts_with(&format!("[1] REFUSED {} ", reason as u8)), "{command:?}: {told}");
    }
    for bytes in [&b"\0\n"[..], b"\0[1] ADD,jo,1.00\n", b"\x1b[A\n", b"\x16\x03\x01\x02\0\x01\n"] {
        assert_eq!(at.says(bytes), "[0] LOST the line is not a loader's\n", "{bytes:?}");
    }
    assert_eq!(at.account("jo"), None, "what was refused makes no account");
}

#[test]
fn connection_beyond_limit_waits_and_is_served_later() {
    let mut at = At::new();
    let mut silent: Vec<_> = (0..10).map(|_| at.greeted().0).collect();
    let idle: Vec<_> = (0..60).map(|_| TcpStream::connect(at.address).unwrap()).collect();
    let waits = at.say(b"[1] ADD,jo,1.00\n");
    (0..50).for_each(|_| at.turn());
    assert_eq!((at.loaders.loaders.len(), waits.is_finished()), (10, false));
    silent[0].write_all(b"[1] ADD,al,1.00\n").unwrap();
    while at.account("al").is_none() {}
    drop((silent, idle));
    assert_eq!(at.told(waits), "[1] OK cash 1.00\n");
}

#[test]
fn who_is_idle_when_places_are_short_makes_room_and_is_told_why() {
    let mut at = At::new();
    let mut idle: Vec<_> = (0..10).map(|_| at.greeted().0).collect();
    at.loaders.patience.idle = Duration::ZERO;
    assert_eq!(at.says(b"[1] ADD,jo,1.00\n"), "[1] OK cash 1.00\n");
    let mut told = String::new();
    idle[0].set_nonblocking(false).unwrap();
    idle[0].read_to_string(&mut told).unwrap();
    assert_eq!(told, "[0] LOST it was idle, and other loaders are waiting\n");
}

#[test]
fn a_user_has_no_more_under_way_by_many_connections_than_by_one() {
    let mut at = At::new();
    at.loaders.user_open_max = 0;
    let held = at.say(b"[1] ADD,jo,1.00\n[2] ADD,jo,1.00\n");
    at.until(|at| at.loaders.loaders.values().any(|loader| loader.held.is_some()));
    (0..20).for_each(|_| at.turn());
    assert_eq!((at.floor.front.open(), held.is_finished()), (0, false));
    at.loaders.user_open_max = 1;
    assert_eq!(at.says(b"[1] ADD,al,1.00\n"), "[1] OK cash 1.00\n");
    assert_eq!(at.told(held), "[1] OK cash 1.00\n[2] OK cash 2.00\n");
}

#[test]
fn however_many_loaders_there_are_a_part_of_the_room_is_peoples() {
    let (mut at, _quotes) = At::without_quotes();
    at.floor.open_max = 8;
    let loaders: Vec<_> = (0..5)
        .map(|loader| {
            let (mut client, _) = at.greeted();
            for user in 1..=4 {
                writeln!(client, "[{user}] QUOTE,u{loader}x{user},S").unwrap();
            }
            client
        })
        .collect();
    at.until(|at| at.loaders.open.len() >= 6);
    (0..20).for_each(|_| at.turn());
    assert_eq!((at.loaders.open.len(), at.floor.front.open(), loaders.len()), (6, 6, 5));
    let mut person_commands = |user: &str| {
        let (user, order) = (UserName::new(user), CommandOrder::Arrival { name: None });
        let command = UserCommand { user: user.clone(), ..UserCommand::of(Verb::DisplaySummary) };
        let asked = Asked::Command { command, fault: None };
        at.floor.take(Arrival { sender: EACH_USER, user, order, asked })
    };
    assert!(person_commands("ann").is_ok() && person_commands("bob").is_ok());
}

#[test]
fn lines_refused_for_clock_free_room_and_are_no_predecessor() {
    // The stamps are an hour old; of the stock D nothing is said.
    let mut at = At::with_quotes_of(old_stamps::serve());
    let (mut client, _) = at.greeted();
    let lines = b"[1] QUOTE,jo,D\n[2] ADD,jo,1.00\n[3] QUOTE,a,A\n[4] QUOTE,b,B\n[5] QUOTE,c,C\n";
    client.write_all(lines).unwrap();
    let told = at.hears(&mut client, 5);
    assert!(told.contains("[1] REFUSED 23 ") && told.contains("[2] REFUSED 23 "), "{told}");
    at.floor.open_max = 8;
    let lines: String = (6..26).map(|number| format!("[{number}] ADD,jo,1.00\n")).collect();
    client.write_all(lines.as_bytes()).unwrap();
    let told = at.hears(&mut client, 20);
    assert!(told.lines().all(|line| line.contains("] REFUSED 23 ")), "{told}");
    at.floor.front.trust_clock();
    client.write_all(b"[26] ADD,jo,1.00\n").unwrap();
    assert_eq!(at.hears(&mut client, 1), "[26] OK cash 1.00\n");
    client.shutdown(std::net::Shutdown::Write).unwrap();
    at.until(|at| at.loaders.loaders.is_empty());
}

#[test]
fn session_continues_on_new_connection_before_old_ends() {
    let mut at = At::new();
    let ((mut old, session), (mut new, _)) = (at.greeted(), at.greeted());
    old.write_all(b"[2>1] ADD,jo,1.00\n").unwrap();
    at.until(|at| !at.loaders.open.is_empty());
    new.write_all(format!("{session}[2>1] ADD,jo,1.00\n[3] ADD,jo,1.00\n").as_bytes()).unwrap();
    at.until(|at| at.loaders.open.len() >= 3);
    (0..20).for_each(|_| at.turn());
    old.write_all(b"no line\n").unwrap();
    at.until(|at| at.loaders.loaders.len() <= 1);
    new.write_all(b"[1>0] ADD,jo,1.00\n").unwrap();
    let told = at.hears(&mut new, 3);
    assert_eq!(sorted(&told), ["[1] OK cash 1.00", "[2] OK cash 2.00", "[3] OK cash 3.00"]);
    assert!(at.loaders.open.is_empty());
}
