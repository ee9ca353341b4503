//! An operator at a gateway.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pares_client::{Answer, Client, ClientError, ClientRequest, Credential, KeyFile, Options, Tls};
use pares_node::{Layout, SystemConfig, keys, operators};
use pares_resources::deeds;
use pares_types::{
    ClientOrderId, Command, DAY_NS, Entry, GatewayId, InstrumentId, MemberId, Reason, Registration, Status,
};

use super::key;
use crate::error::CommandError;

/// The exchange itself.
pub(super) const EXCHANGE: MemberId = MemberId(0);

/// How far nanoseconds since 1970 are shifted to fit a name's number: 48 bits, until the year 2116.
const NUMBER_SHIFT: u32 = 14;
/// How far ahead of the clock a request is named at most, days.
const AHEAD_DAYS_MAX: u64 = 10_000;
/// How often an operator and its gateway have to hear each other: what a gateway reads later than after three of these is not done.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// What nobody knows then.
const NO_ANSWER: &str = "no gateway has answered. The request may be executed already (see `pares admin audit`), or later, until another operator request reaches the same shard";

/// An operator. It signs on once it asks for something, since a gateway does not wait for one that types a password.
pub(super) struct Operator {
    client: Option<Client>,
    /// Those that may be asked yet.
    gateways: Gateways,
    session: u16,
    /// Where its key lies, and where the first operator's would.
    key: Option<PathBuf>,
    own_key: PathBuf,
    /// What it asks for it only proposes, so that another operator may ask for it.
    pub(super) proposes: bool,
}

impl Operator {
    /// With that key, else with the one of the first operator if it lies with the system, else without any.
    pub(super) fn new(
        gateway: Option<&str>,
        (key, proposes): (Option<&Path>, bool),
        config: &SystemConfig,
        layout: &Layout,
    ) -> Result<Self, CommandError> {
        let own_key = layout.operator_key();
        let path = key.map(Path::to_path_buf).or_else(|| own_key.exists().then(|| own_key.clone()));
        let key = path.as_ref().map(|path| KeyFile::read(path)).transpose();
        let key = key.map_err(|error| CommandError::Usage(error.to_string()))?;
        if let Some(other) = key.as_ref().filter(|key| key.member != EXCHANGE.0) {
            return Err(CommandError::Usage(format!(
                "that key belongs to member {}, not to an operator",
                other.member
            )));
        }
        let session = key.as_ref().map_or(0, |key| key.session);
        let gateways = Gateways::of(gateway, key.as_ref(), config, layout)?;
        Ok(Self { client: None, gateways, session, key: path, own_key, proposes })
    }

    /// Asks, or proposes it, and asks again while a step did not suffice. Phases and the time continue by themselves.
    pub(super) fn ask(&mut self, instrument: InstrumentId, command: Command) -> Result<Answer, CommandError> {
        let (instrument, command) = match self.proposes {
            true => (InstrumentId(0), self.proposal(instrument, &command)?),
            false => (instrument, command),
        };
        let mut cancelled = 0;
        loop {
            let mut answer = self.ask_under_a_new_name(instrument, command)?;
            cancelled += answer.executed.0;
            let to_repeat = matches!(command, Command::RemoveInstrument | Command::Block { .. });
            if answer.reason != Reason::Unfinished || !to_repeat {
                answer.executed.0 = cancelled;
                return Ok(answer);
            }
        }
    }

    /// Has the register changed.
    pub(super) fn register(
        &mut self,
        member: u32,
        session: u16,
        entry: Entry,
    ) -> Result<Answer, CommandError> {
        let change = Registration { member: MemberId(member), session, entry };
        let answer = self.ask(InstrumentId(0), Command::Register(change))?;
        if answer.status == Status::Refused { Err(CommandError::Refused(answer.reason)) } else { Ok(answer) }
    }

    /// The request that proposes that another operator asks for it.
    fn proposal(&self, instrument: InstrumentId, command: &Command) -> Result<Command, CommandError> {
        let proposed = deeds::proposed_by(self.session, instrument, command);
        proposed.ok_or_else(|| {
            CommandError::Usage("this request needs no second operator: leave --propose out".into())
        })
    }

    /// Names are for life: the time makes this one new, and its series says whose it is. A clock that was set back makes old ones:
    /// what was sent once and refused for its name was not executed, so it is sent again under one further ahead, until one is new.
    fn ask_under_a_new_name(
        &mut self,
        instrument: InstrumentId,
        command: Command,
    ) -> Result<Answer, CommandError> {
        let mut ahead_days = 0;
        loop {
            let number = pares_os::clock::now_ns().saturating_add(ahead_days * DAY_NS) >> NUMBER_SHIFT;
            let client_order_id = ClientOrderId(u64::from(self.session) << 48 | number);
            let request = ClientRequest::Exchange { client_order_id, instrument, command };
            let (answer, is_asked_again) = self.submit(&request)?;
            let is_old = answer.repeat && !is_asked_again || !answer.reason.uses_name();
            if !is_old || ahead_days > AHEAD_DAYS_MAX {
                return Ok(answer);
            }
            ahead_days = 2 * ahead_days + 1;
        }
    }

    /// Asks, and if no answer comes, at the other gateways under the same name: it is done once, whichever has taken it in. Says whether
    /// it was asked again.
    fn submit(&mut self, request: &ClientRequest) -> Result<(Answer, bool), CommandError> {
        use ClientError::{Backlogged, Rejected};
        let mut is_asked_again = false;
        let mut client = self.client.take().map_or_else(|| self.connect(), Ok)?;
        loop {
            match client.submit_and_wait(request) {
                Ok(answer) => {
                    self.client = Some(client);
                    return Ok((answer, is_asked_again));
                }
                // What one has taken in another may still reject.
                Err(error @ (Rejected(_) | Backlogged)) if !is_asked_again => return Err(error.into()),
                Err(_) => {}
            }
            let Ok(other) = self.gateways.connect() else {
                return Err(CommandError::NoAnswer(NO_ANSWER.to_owned()));
            };
            (client, is_asked_again) = (other, true);
        }
    }

    fn connect(&mut self) -> Result<Client, CommandError> {
        self.gateways.connect().map_err(|error| match error {
            CommandError::Client(ClientError::NoKey) => no_key(&self.own_key),
            error => name_new_key(error, self.key.as_deref()),
        })
    }
}

/// The gateways that an operator has not asked yet, and how.
struct Gateways {
    entrances: VecDeque<Entrance>,
    options: Options,
}

/// Where a gateway is.
struct Entrance {
    /// Its operators' socket, if it is one of this system's.
    socket: Option<PathBuf>,
    address: String,
}

impl Entrance {
    /// One that has said where it is.
    fn published(id: GatewayId, layout: &Layout) -> Option<Self> {
        let address = std::fs::read_to_string(layout.gateway_address(id)).ok()?;
        Some(Self { socket: Some(layout.operators_socket(id)), address })
    }

    /// Through its socket, which nobody else on this machine can crowd; at its port if this user may not, or the socket has no place.
    fn connect(&self, options: &Options) -> Result<Client, ClientError> {
        if let Some(Ok(socket)) = self.socket.as_deref().map(operators::connect) {
            match Client::at_socket(socket, EXCHANGE, options) {
                // Who is refused before it has written anything finds the connection closed.
                Err(ClientError::Rejected(Reason::TooManyConnections) | ClientError::Closed) => {}
                signed_on => return signed_on,
            }
        }
        Client::connect_with(self.address.trim(), EXCHANGE, options.clone())
    }
}

impl Gateways {
    /// The one at that address only, or all that have said where they are.
    fn of(
        asked: Option<&str>,
        key: Option<&KeyFile>,
        config: &SystemConfig,
        layout: &Layout,
    ) -> Result<Self, CommandError> {
        let tls = keys::operator(layout, config)?.map(Tls::believing);
        let credential = key.map(Credential::from);
        let options = Options { credential, tls, heartbeat: Some(HEARTBEAT), ..Options::default() };
        let entrances: VecDeque<Entrance> = match asked {
            Some(address) => [Entrance { socket: None, address: address.to_owned() }].into(),
            None => config.gateway_ids().filter_map(|id| Entrance::published(id, layout)).collect(),
        };
        if entrances.is_empty() {
            let run = layout.run();
            let what = format!(
                "no gateway has published its address in {}: start the system with `pares up`",
                run.display()
            );
            return Err(CommandError::Failed(what));
        }
        Ok(Self { entrances, options })
    }

    /// Connects to the next one that answers.
    fn connect(&mut self) -> Result<Client, CommandError> {
        let mut last = CommandError::Failed("no other gateway is left to ask".to_owned());
        while let Some(entrance) = self.entrances.pop_front() {
            match entrance.connect(&self.options) {
                Ok(client) => return Ok(client),
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }
}

fn no_key(path: &Path) -> CommandError {
    CommandError::Usage(format!(
        "operators must sign on, and {} is missing: restore it, or name an operator's key file with --key",
        path.display()
    ))
}

/// A key that is refused may have been changed by a command whose answer did not come.
fn name_new_key(error: CommandError, path: Option<&Path>) -> CommandError {
    let new = path.map(key::new_beside).filter(|new| new.exists());
    match (error, new) {
        (CommandError::Client(ClientError::Rejected(Reason::WrongKey)), Some(new)) => {
            let new = new.display();
            CommandError::Failed(format!(
                "wrong_key; {new} is from an unfinished key change, and may be active: try it with --key"
            ))
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use pares_types::Reply;
    use pares_wire::frame;

    use super::*;

    /// Refuses a client.
    fn refuse(mut stream: impl Write, reason: Reason) {
        let mut refusal = Vec::new();
        frame::write_reply(&mut refusal, &Reply::Rejected { client_order_id: ClientOrderId(0), reason });
        stream.write_all(&refusal).unwrap();
    }

    /// Why an operator at that socket is refused whose gateway refuses for a wrong key at its port.
    fn refused(socket: &Path) -> Option<Reason> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap().to_string();
        let entrance = Entrance { socket: Some(socket.to_owned()), address };
        std::thread::scope(|scope| {
            scope.spawn(|| refuse(port.accept().unwrap().0, Reason::WrongKey));
            match entrance.connect(&Options::default()) {
                Err(ClientError::Rejected(reason)) => Some(reason),
                _ => None,
            }
        })
    }

    #[test]
    fn operator_without_place_at_the_socket_goes_to_the_port() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway-0.operators");
        assert_eq!(refused(&path), Some(Reason::WrongKey), "there is no socket");
        let socket = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| refuse(socket.accept().unwrap().0, Reason::TooManyConnections));
            assert_eq!(refused(&path), Some(Reason::WrongKey), "all places are taken");
        });
        while operators::connect(&path).is_ok() {}
        assert_eq!(refused(&path), Some(Reason::WrongKey), "its gateway is hung");
    }

    #[test]
    fn a_refused_key_beside_which_a_new_one_lies_names_that_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("operator.key");
        let said = |reason, path: Option<&Path>| {
            name_new_key(CommandError::Client(ClientError::Rejected(reason)), path).to_string()
        };
        assert!(!said(Reason::WrongKey, Some(&path)).contains("operator.key.new"));
        std::fs::write(dir.path().join("operator.key.new"), "").unwrap();
        assert!(said(Reason::WrongKey, Some(&path)).contains("operator.key.new"));
        assert!(!said(Reason::NoRight, Some(&path)).contains("operator.key.new"));
        assert!(!said(Reason::WrongKey, None).contains("operator.key.new"));
    }
}
