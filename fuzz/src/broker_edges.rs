//! What comes to a broker's processes from beside it: lines of loaders, frames between fronts and desks, and the paths that DUMPLOG names.
//!
//! A dump's path comes from a client and becomes a file of the front's: whatever it says, that file lies in the folder of dumps, or in one user's folder there.

use std::path::{Component, Path};

use pares_broker::{StockQuote, StockSymbol, UserName, Verb, WorkloadLine, dump_path};
use pares_front::QuoteFault;
use pares_front::loader_lines::{LINE_MAX, LoaderLine};
use pares_front::{ToDesk, ToFront};
use pares_wice::codec::Coded;

/// Reads a line of a loader. A command is that of the same line in a workload; what is none has no part in anything.
pub fn loader_lines(bytes: &[u8]) {
    match LoaderLine::parse(bytes) {
        LoaderLine::Command(line, after) => {
            let text = core::str::from_utf8(bytes).expect("a command is text").trim();
            let rest = text.split_once(']').map_or("", |(_, rest)| rest);
            let plain = format!("[{}]{rest}", line.number);
            assert_eq!(WorkloadLine::parse(plain.as_bytes()).as_ref(), Ok(&line), "as in a workload");
            let again = after.map_or(plain, |after| format!("[{}>{after}]{rest}", line.number));
            assert_eq!(LoaderLine::parse(again.as_bytes()), LoaderLine::Command(line, after), "as written");
        }
        LoaderLine::Session(session) => {
            let again = format!("SESSION {session}");
            assert_eq!(LoaderLine::parse(again.as_bytes()), LoaderLine::Session(session), "as written");
        }
        LoaderLine::Wrong(..) => {
            let begins = bytes.trim_ascii();
            assert!(begins.starts_with(b"[") || begins.starts_with(b"SESSION"), "anybody may say that");
        }
        LoaderLine::Beyond(shown) => {
            assert!(
                shown.parse::<u64>().is_err() && shown.bytes().all(|byte| byte.is_ascii_digit()),
                "{shown}"
            );
        }
        LoaderLine::Nothing | LoaderLine::Note | LoaderLine::Foreign => {}
    }
}

/// Lines of each kind.
#[must_use]
pub fn loader_line_seeds() -> Vec<Vec<u8>> {
    let lines = [
        "[7>3] BUY,jo,S,10.00",
        "[8] COMMIT_BUY,jo",
        "[16777215>16777214] DUMPLOG,jo,./log",
        "[9] DUMPLOG,testLOG",
        "SESSION 262145",
        "NOTE",
        " \r",
    ];
    let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    seeds.push(format!("[1] ADD,jo,1.00{}", " ".repeat(LINE_MAX - 15)).into_bytes());
    seeds
}

/// Reads a frame as either end does: what is one is written as it was read.
pub fn desk_words(bytes: &[u8]) {
    if let Ok(word) = ToDesk::from_bytes(bytes) {
        assert_eq!(word.to_bytes(), bytes, "as read");
    }
    if let Ok(word) = ToFront::from_bytes(bytes) {
        assert_eq!(word.to_bytes(), bytes, "as read");
    }
}

/// A frame of each kind.
#[must_use]
pub fn desk_word_seeds() -> Vec<Vec<u8>> {
    let (symbol, user) = (StockSymbol::new("ABC").expect("letters"), UserName::new("jo").expect("a name"));
    let quote = StockQuote { price_cents: 1_000, symbol, user: "jo".into(), server_ms: 7, key: "key".into() };
    let questions =
        [ToDesk::Want { question: 1, symbol, user }, ToDesk::Noted { count: 2 }, ToDesk::AreYouThere];
    let answers = [
        ToFront::Desk { number: 3 },
        ToFront::Quote { question: 4, quote: quote.clone(), count: Some(5) },
        ToFront::None { question: 6, fault: QuoteFault::Garbage },
        ToFront::Hit { count: 7, quote },
        ToFront::Here,
    ];
    questions.iter().map(Coded::to_bytes).chain(answers.iter().map(Coded::to_bytes)).collect()
}

/// Reads `user,path` or `path` as the fields of a DUMPLOG: the file is one of the folder of dumps, and no other's.
pub fn dump_paths(bytes: &[u8]) {
    let Ok(line) = WorkloadLine::parse(&[b"[1] DUMPLOG,", bytes].concat()) else { return };
    let (Verb::Dumplog, None, Some(file)) = (line.command.verb, line.fault, line.command.file) else {
        return;
    };
    let user = line.command.user;
    let path = dump_path(user.as_ref(), &file);
    let parts: Vec<Component<'_>> = Path::new(&path).components().collect();
    assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))), "{path:?}");
    assert_eq!(parts.len(), if user.is_some() { 3 } else { 1 }, "{path:?}");
    assert_eq!(parts[0].as_os_str() == "users", user.is_some(), "that folder is of users alone: {path:?}");
    assert!(path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['\\', '*', '$']), "{path:?}");
    assert!(!file.starts_with('.') && !path.contains("/."), "nothing is hidden: {path:?}");
    if let Some(user) = &user {
        assert_eq!(folder_of(parts[1]), user.as_str(), "each user has his own");
    }
}

/// Whose folder it is.
fn folder_of(folder: Component<'_>) -> String {
    let folder = folder.as_os_str().to_string_lossy();
    let mut parts = folder.split('%');
    let mut user = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (hex, rest) = part.split_at(2);
        user.push(char::from(u8::from_str_radix(hex, 16).expect("two digits")));
        user.push_str(rest);
    }
    user
}

/// Paths that are taken.
#[must_use]
pub fn dump_path_seeds() -> Vec<Vec<u8>> {
    let paths = [
        "testLOG",
        "./users",
        "jo,./log",
        "../al,../../etc/passwd",
        "%2e,C:\\logs\\a.xml",
        "a$(b),log-1_2.xml",
    ];
    paths.iter().map(|path| path.as_bytes().to_vec()).collect()
}
