//! A client that speaks the protocol message by message, and hears it as words.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;

use super::*;

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A session at `A0`, or at a server.
pub(crate) struct Raw(Box<dyn Stream>);

const BEGINNING: &[u8] = b"\0\x03\0\0user\0postgres\0\0";

impl Raw {
    pub(crate) fn begun(sites: &Sites) -> Self {
        let mut raw = Self::saying(sites, BEGINNING);
        raw.until('Z');
        raw
    }

    /// A session at the server itself, in a database that no site has.
    pub(crate) fn at_server(database: &str) -> Self {
        let word = |name: &str| database.split(' ').find_map(|word| word.strip_prefix(name)).unwrap();
        let client = UnixStream::connect(format!("{}/.s.PGSQL.5432", word("host="))).unwrap();
        client.set_read_timeout(Some(common::PATIENCE)).unwrap();
        let mut raw = Self(Box::new(client));
        let first = [&BEGINNING[..18], b"database\0", word("dbname=").as_bytes(), b"\0\0"].concat();
        raw.say(&[framed(b"", &first)]);
        raw.until('Z');
        raw
    }

    /// One that begins with that.
    pub(crate) fn saying(sites: &Sites, first: &[u8]) -> Self {
        let client = TcpStream::connect(sites.sql_address(A0)).unwrap();
        client.set_read_timeout(Some(common::PATIENCE)).unwrap();
        let mut raw = Self(Box::new(client));
        raw.say(&[framed(b"", first)]);
        raw
    }

    pub(crate) fn say(&mut self, messages: &[Vec<u8>]) {
        self.0.write_all(&messages.concat()).unwrap();
    }

    /// The next message: its tag and the words that matter, or `end` of the connection.
    pub(crate) fn next(&mut self) -> String {
        let mut head = [0; 5];
        match self.0.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer"),
            Err(_) => return "end".into(),
            Ok(()) => {}
        }
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) - 4;
        let mut body = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut body).unwrap();
        let tag = char::from(head[0]);
        let texts: Vec<_> = body.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let code = || texts.iter().find_map(|text| text.strip_prefix('C')).unwrap_or_default();
        match tag {
            'E' | 'N' => format!("{tag} {}", code()),
            'C' | 'S' | 'Z' => format!("{tag} {}", texts.join(" ")).trim_end().to_owned(),
            // Of one short column.
            'D' => format!("D {}", String::from_utf8_lossy(&body[6..])),
            _ => tag.into(),
        }
    }

    /// All messages up to the first with that tag, or to the end.
    pub(crate) fn until(&mut self, last: char) -> Vec<String> {
        let mut said = Vec::new();
        while said.last().is_none_or(|word: &String| !word.starts_with([last, 'e'])) {
            said.push(self.next());
        }
        said
    }

    /// Their tags, but for settings.
    pub(crate) fn tags(&mut self, last: char) -> String {
        self.until(last).iter().filter_map(|word| word.chars().next()).filter(|tag| *tag != 'S').collect()
    }

    pub(crate) fn ask(&mut self, text: &str) -> Vec<String> {
        self.say(&[query(text)]);
        self.until('Z')
    }

    /// What a query finds, of one row and column.
    pub(crate) fn value(&mut self, text: &str) -> String {
        let said = self.ask(text);
        said.iter().find_map(|word| word.strip_prefix("D ")).unwrap_or_else(|| panic!("{said:?}")).to_owned()
    }
}

pub(crate) fn query(text: &str) -> Vec<u8> {
    framed(b"Q", &[text.as_bytes(), b"\0"].concat())
}

pub(crate) fn parsed(statement: &str) -> Vec<u8> {
    framed(b"P", &[&b"\0"[..], statement.as_bytes(), b"\0\0\0"].concat())
}

pub(crate) fn executed(statement: &str) -> Vec<u8> {
    [parsed(statement), framed(b"B", &[0; 8]), framed(b"E", &[0; 5])].concat()
}

pub(crate) fn sync() -> Vec<u8> {
    framed(b"S", b"")
}

pub(crate) fn flush() -> Vec<u8> {
    framed(b"H", b"")
}
