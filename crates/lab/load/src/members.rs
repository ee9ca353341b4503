//! Members of a system that requires sign-on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, Credential, KeyFile, Options, Secret, Tls, Verifier};
use pares_types::{
    ClientOrderId, ClientRequest, Command, Entry, InstrumentId, Key, Limits, MemberId, Reason, Registration,
    Status,
};

use crate::error::LabError;
use crate::system::ScratchSystem;

/// The only session of each.
const SESSION: u16 = 1;
/// How long a gateway may take to read of a key.
const PATIENCE: Duration = Duration::from_secs(10);
/// Every limit there is, with [`POSITION_MAX`], beyond what any load reaches: each request is held against all of them.
const LIMITS: Limits = Limits {
    quantity_max: 1 << 40,
    value_max: 1 << 60,
    collar: 1_000_000,
    orders_max: 1 << 30,
    rate_max: 10_000_000,
    burst_max: 10_000_000,
};

const POSITION_MAX: u64 = 1 << 40;

impl ScratchSystem {
    /// Lets members 1 to `count` in, each with a key and limits, and waits until every gateway knows them.
    ///
    /// # Errors
    /// If the operator's key cannot be used, or a gateway refuses.
    pub fn let_in(&self, count: u32) -> Result<Vec<Credential>, LabError> {
        let (addresses, tls) = (self.addresses()?, self.tls()?);
        let key = KeyFile::read(&self.supervisor.layout().operator_key())
            .map_err(|error| LabError::Failed(error.to_string()))?;
        let mut operator =
            Registrar { client: sign_on(addresses[0], MemberId(0), (&key).into(), &tls)?, name: 0 };
        let members: Vec<_> = (1..=count).map(MemberId).collect();
        let credentials =
            members.iter().map(|&member| operator.add(member)).collect::<Result<Vec<_>, _>>()?;
        for (&member, credential) in members.iter().zip(&credentials) {
            for &address in &addresses {
                until_known(address, member, credential, &tls)?;
            }
        }
        Ok(credentials)
    }
}

/// The first operator, signed on.
struct Registrar {
    client: Client,
    name: u64,
}

impl Registrar {
    fn add(&mut self, member: MemberId) -> Result<Credential, LabError> {
        let credential = Credential { session: SESSION, secret: Secret::generate() };
        let key = match credential.secret.verifier() {
            Verifier::Ed25519(key) => Key::Ed25519(key),
            Verifier::Shared(key) => Key::Shared(key),
        };
        self.change(Registration { member, session: 0, entry: Entry::AddMember })?;
        self.change(Registration { member, session: SESSION, entry: Entry::SetKey(key) })?;
        self.change(Registration { member, session: SESSION, entry: Entry::SetLimits(LIMITS) })?;
        self.change(Registration { member, session: SESSION, entry: Entry::SetPositionMax(POSITION_MAX) })?;
        Ok(credential)
    }

    fn change(&mut self, change: Registration) -> Result<(), LabError> {
        self.name += 1;
        // An operator's names are of the series of its session: that of the first operator is 1.
        let client_order_id = ClientOrderId(1 << 48 | self.name);
        let command = Command::Register(change);
        let request = ClientRequest::Exchange { client_order_id, instrument: InstrumentId(0), command };
        let answer = self.client.submit_and_wait(&request)?;
        match answer.status {
            Status::Refused => {
                Err(LabError::Failed(format!("the register refuses: {}", answer.reason.meaning())))
            }
            _ => Ok(()),
        }
    }
}

fn sign_on(
    address: SocketAddr,
    member: MemberId,
    credential: Credential,
    tls: &Option<Tls>,
) -> Result<Client, ClientError> {
    let options = Options { credential: Some(credential), tls: tls.clone(), ..Options::default() };
    Client::connect_with(address, member, options)
}

/// A gateway knows a key once it has read the record so far.
fn until_known(
    address: SocketAddr,
    member: MemberId,
    credential: &Credential,
    tls: &Option<Tls>,
) -> Result<(), LabError> {
    let begun = Instant::now();
    loop {
        match sign_on(address, member, credential.clone(), tls) {
            Ok(_) => return Ok(()),
            Err(ClientError::Rejected(Reason::WrongKey)) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
