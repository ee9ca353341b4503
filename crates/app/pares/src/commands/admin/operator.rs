//! An operator at a gateway.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pares_client::{Answer, Client, ClientError, ClientRequest, Credential, KeyFile, Options, Tls};
use pares_node::{Layout, SystemConfig, keys};
use pares_types::{
    ClientOrderId, Command, DAY_NS, Entry, InstrumentId, MemberId, Proposal, Reason, Registration, Status,
};

use crate::error::CommandError;

/// The exchange itself.
pub(super) const EXCHANGE: MemberId = MemberId(0);

/// How far nanoseconds since 1970 are shifted to fit a name's number: 48 bits, until the year 2116.
const NUMBER_SHIFT: u32 = 14;
/// How far ahead of the clock a request is named at most, days.
const AHEAD_DAYS_MAX: u64 = 10_000;
/// How often a change of the register is asked again because others change it, and how long after.
const TRIES_MAX: u32 = 50;
const RETRY: Duration = Duration::from_millis(20);
/// Answered within that, it did not hang.
const AT_ONCE: Duration = Duration::from_millis(500);

/// An operator, signed on.
pub(super) struct Operator {
    client: Client,
    session: u16,
    /// What it asks for it only proposes, so that another operator may ask for it.
    pub(super) proposes: bool,
}

impl Operator {
    /// Signs on with that key, else with the one of the first operator if it lies with the system, else without any.
    pub(super) fn sign_on(
        gateway: Option<&str>,
        (key, proposes): (Option<&Path>, bool),
        config: &SystemConfig,
        layout: &Layout,
    ) -> Result<Self, CommandError> {
        let own = Some(layout.operator_key()).filter(|path| path.exists());
        let path: Option<PathBuf> = key.map(Path::to_path_buf).or(own);
        let key = path.as_ref().map(|path| KeyFile::read(path)).transpose();
        let key = key.map_err(|error| CommandError::Usage(error.to_string()))?;
        if let Some(other) = key.as_ref().filter(|key| key.member != EXCHANGE.0) {
            return Err(CommandError::Usage(format!(
                "that is a key of member {}, not of an operator",
                other.member
            )));
        }
        let session = key.as_ref().map_or(0, |key| key.session);
        let client = connect(gateway, key.as_ref(), config, layout);
        let client = client.map_err(|error| name_new_key(error, path.as_deref()))?;
        Ok(Self { client, session, proposes })
    }

    /// Asks, and goes on asking while a step did not suffice. Phases and the time go on by themselves.
    pub(super) fn ask(&mut self, instrument: InstrumentId, command: Command) -> Result<Answer, ClientError> {
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

    /// Has the register changed. If others change it too, what was refused for that was not done, and is asked again.
    pub(super) fn register(
        &mut self,
        member: u32,
        session: u16,
        entry: Entry,
    ) -> Result<Answer, CommandError> {
        let mut tries = 0;
        loop {
            // What is carried out late, since its gateway stood still, undoes nothing that came after.
            let as_of = self.client.own_limits_and_wait()?.next;
            let change = Command::Register(Registration { member: MemberId(member), session, entry, as_of });
            let change = if self.proposes { self.proposal(InstrumentId(0), &change)? } else { change };
            let asked = Instant::now();
            let answer = self.ask(InstrumentId(0), change)?;
            // Of one that hung, what came between may be what was done instead of it.
            let is_at_once = asked.elapsed() < AT_ONCE;
            match (answer.status, answer.reason) {
                (Status::Refused, Reason::RegisterChanged) if is_at_once && tries < TRIES_MAX => tries += 1,
                (Status::Refused, reason) => return Err(CommandError::Refused(reason)),
                _ => return Ok(answer),
            }
            std::thread::sleep(RETRY);
        }
    }

    /// The request that proposes that another operator asks for it.
    pub(super) fn proposal(
        &mut self,
        instrument: InstrumentId,
        command: &Command,
    ) -> Result<Command, CommandError> {
        let proposal = Proposal::of(instrument, command);
        let proposal = proposal.ok_or_else(|| CommandError::Usage("that needs no second operator".into()))?;
        let (session, entry) = (self.session, Entry::Propose(proposal));
        let as_of = self.client.own_limits_and_wait()?.next;
        Ok(Command::Register(Registration { member: EXCHANGE, session, entry, as_of }))
    }

    /// Names are for life: the time makes this one new, and its series says whose it is. A clock that was set back makes old ones:
    /// what was sent once and refused for its name was not executed, so it is sent again under one further ahead, until one is new.
    fn ask_under_a_new_name(
        &mut self,
        instrument: InstrumentId,
        command: Command,
    ) -> Result<Answer, ClientError> {
        let mut ahead_days = 0;
        loop {
            let number = pares_os::clock::now_ns().saturating_add(ahead_days * DAY_NS) >> NUMBER_SHIFT;
            let client_order_id = ClientOrderId(u64::from(self.session) << 48 | number);
            let request = ClientRequest::Exchange { client_order_id, instrument, command };
            let answer = self.client.submit_and_wait(&request)?;
            let is_old = answer.repeat || !answer.reason.uses_name();
            if !is_old || ahead_days > AHEAD_DAYS_MAX {
                return Ok(answer);
            }
            ahead_days = 2 * ahead_days + 1;
        }
    }
}

/// A key that is refused may have been changed by a command whose answer did not come.
fn name_new_key(error: CommandError, path: Option<&Path>) -> CommandError {
    let new = path.map(|path| path.with_extension("key.new")).filter(|new| new.exists());
    match (error, new) {
        (CommandError::Client(ClientError::Rejected(Reason::WrongKey)), Some(new)) => {
            let new = new.display();
            CommandError::Failed(format!(
                "wrong_key; {new} is of a change that did not end, and may be in force: try it with --key"
            ))
        }
        (error, _) => error,
    }
}

fn connect(
    asked: Option<&str>,
    key: Option<&KeyFile>,
    config: &SystemConfig,
    layout: &Layout,
) -> Result<Client, CommandError> {
    let tls = keys::operator(layout, config)?.map(Tls::believing);
    let options = Options { credential: key.map(Credential::from), tls, ..Options::default() };
    let connect = |address: &str| Client::connect_with(address, EXCHANGE, options.clone());
    if let Some(address) = asked {
        return Ok(connect(address)?);
    }
    let mut last = CommandError::Failed(format!(
        "no gateway has published its address in {}; is the system up?",
        layout.run().display()
    ));
    for id in config.gateway_ids() {
        let Ok(address) = std::fs::read_to_string(layout.gateway_address(id)) else { continue };
        match connect(address.trim()) {
            Ok(client) => return Ok(client),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

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
