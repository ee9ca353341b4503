//! How a connection begins: the client says who it is, and the site's server decides whether it may.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use postgres::Config;
use postgres::config::Host;

use crate::client::Client;
use crate::front::{Front, PROOF_PATIENCE, STAGE_PATIENCE};
use crate::link::{Link, Trouble};
use crate::statement::isolation_named;
use crate::wire::{Message, send_body};

const VERSION_MAJOR: u32 = 3;
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
/// Longest first message.
const FIRST_MAX: usize = 10_000;
const PORT: u16 = 5432;

const OTHER_VERSION: &str = "this site speaks version 3 of PostgreSQL's protocol, and no other";
const STARTING: &str = "the site is starting: try again, or another site";

/// A session that can begin.
pub(crate) struct Begun {
    pub(crate) client: Client,
    pub(crate) link: Link,
    /// The number of the server's process.
    pub(crate) pid: i32,
}

/// Connects to the site's server. A socket of the file system is read and written as one of the network.
pub(crate) fn connect(config: &Config) -> io::Result<TcpStream> {
    let port = config.get_ports().first().copied().unwrap_or(PORT);
    match config.get_hosts().first() {
        Some(Host::Unix(folder)) => {
            let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}")))?;
            Ok(OwnedFd::from(socket).into())
        }
        Some(Host::Tcp(name)) => TcpStream::connect((name.as_str(), port)).and_then(|stream| {
            stream.set_nodelay(true)?;
            Ok(stream)
        }),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "the store's URL names no host")),
    }
}

/// Lets a client begin; none if it was refused, or has cancelled another.
pub(crate) fn begin(front: &Front, client: Client) -> io::Result<Option<Begun>> {
    let Some((mut client, first)) = hear(front, client)? else { return Ok(None) };
    client.has_until(Instant::now() + PROOF_PATIENCE);
    let reads_only = front.certified.as_ref().map_or(Ok(false), |certified| certified.reads_only(&client));
    let reads_only = match reads_only {
        Ok(reads_only) => reads_only,
        Err(why) => return refuse(client, &Message::fatal("28000", why)),
    };
    if !front.serves() {
        return refuse(client, &Message::fatal("57P03", STARTING));
    }
    let stream = match connect(&front.config) {
        Ok(stream) => stream,
        Err(error) => {
            let why = format!("the site's server does not answer: {error}");
            return refuse(client, &Message::fatal("57P03", &why));
        }
    };
    let mut link = Link::over(stream, reads_only)?;
    send_body(link.writer(), &rewritten(&first, &front.config, reads_only))?;
    link.writer().flush()?;
    authenticate(front, link, client)
}

/// What a client says first of itself; behind TLS, if it asks for that and there is any.
fn hear(front: &Front, mut client: Client) -> io::Result<Option<(Client, Vec<u8>)>> {
    loop {
        let first = client.receive_first()?;
        let code = first.first_chunk().map(|code| u32::from_be_bytes(*code));
        match (code, &front.certified) {
            (Some(TLS), Some(certified)) if !client.is_encrypted() => {
                let tls = (certified.tls)().map_err(io::Error::other)?;
                client.say(b'S')?;
                client = client.encrypted(&tls)?;
                client.has_until(Instant::now() + STAGE_PATIENCE);
            }
            (Some(TLS | GSS), _) => client.say(b'N')?,
            (Some(CANCEL), _) => {
                let mut server = connect(&front.config)?;
                send_body(&mut server, &first)?;
                server.flush()?;
                return Ok(None);
            }
            (Some(version), _) if version >> 16 != VERSION_MAJOR => {
                return refuse(client, &Message::fatal("0A000", OTHER_VERSION));
            }
            (Some(_), _) if first.len() <= FIRST_MAX => return Ok(Some((client, first))),
            _ => return Ok(None),
        }
    }
}

fn refuse<T>(mut client: Client, why: &Message) -> io::Result<Option<T>> {
    client.send(why)?;
    client.flush()?;
    Ok(None)
}

/// The client's own first message, but for the database, which is the store's, and for how its strings are read. Of one that only reads the server says so (`target_session_attrs=read-only`).
fn rewritten(first: &[u8], config: &Config, reads_only: bool) -> Vec<u8> {
    let mut parts = first[4..].split(|byte| *byte == 0);
    let mut to = first[..4].to_vec();
    let mut say = |name: &[u8], value: &[u8]| to.extend_from_slice(&[name, &[0], value, &[0]].concat());
    while let (Some(name), Some(value)) = (parts.next().filter(|name| !name.is_empty()), parts.next()) {
        if !matches!(name, b"database" | b"replication") {
            say(name, value);
        }
    }
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    say(b"database", database.as_bytes());
    say(b"standard_conforming_strings", b"on");
    if reads_only {
        say(b"default_transaction_read_only", b"on");
    }
    to.push(0);
    to
}

/// Carries what server and client say to each other until the server is ready.
fn authenticate(front: &Front, mut link: Link, mut client: Client) -> io::Result<Option<Begun>> {
    let mut pid = 0;
    loop {
        let message = link.receive()?;
        if message.tag == b'Z'
            && let Err(why) = must_be_whole(front, &mut link)
        {
            return refuse(client, &why);
        }
        client.send(&message)?;
        let number = message.body.first_chunk().map(|number| i32::from_be_bytes(*number));
        match (message.tag, number) {
            (b'E', _) => {
                client.flush()?;
                return Ok(None);
            }
            (b'K', Some(number)) => pid = number,
            (b'Z', _) => {
                client.flush()?;
                return Ok(Some(Begun { client, link, pid }));
            }
            // Clear text, MD5, and the steps of SASL: the client has to say something.
            (b'R', Some(3 | 5 | 10 | 11)) => {
                client.flush()?;
                let Some(answer) = client.receive()? else { return Ok(None) };
                link.pass(&answer, false)?;
            }
            _ => {}
        }
    }
}

/// The store's version; and how the session's transactions begin: as its role or its client says, and never with less than here is given.
const BEGINNING: &str = "
    SELECT version, CASE current_setting('default_transaction_isolation') WHEN 'serializable' THEN 'serializable'
        ELSE set_config('default_transaction_isolation', 'repeatable read', false) END FROM PARES.pares_applied";

/// The server must show what clients of this site were answered; or else why this session cannot begin.
fn must_be_whole(front: &Front, link: &mut Link) -> Result<(), Message> {
    let found = match link.ask(&front.own(BEGINNING), &[]) {
        Err(Trouble::Refused(why)) if front.serves() => {
            let said = format!("the session cannot begin: {}", why.field(b'M'));
            return Err(Message::fatal(why.field(b'C'), &said));
        }
        found => found.unwrap_or_default(),
    };
    if let Some([Some(version), Some(level)]) = found.first().map(Vec::as_slice) {
        link.level = isolation_named(level);
        if version.parse().is_ok_and(|version| front.is_whole(version)) {
            return Ok(());
        }
    }
    Err(Message::fatal("57P03", STARTING))
}
