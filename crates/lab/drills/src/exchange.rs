//! The exchange's own requests, asked until they are answered, whatever gateway dies.

use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, Options};
use pares_load::{LabError, LabResult, check_patience, keep_if_connected};
use pares_types::{ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, Status};

/// How long no gateway may answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// After so long without an answer it is asked again, perhaps at another gateway.
const REPEAT: Duration = Duration::from_secs(1);

/// Asks all instruments' shards under that name, again whenever a connection is lost. `connect` signs on at some gateway, and keeps alive what is to answer.
///
/// # Errors
/// If it is refused, nobody answers, or `connect` can keep nothing alive.
pub(crate) fn ask_exchange(
    name: u64,
    command: Command,
    mut connect: impl FnMut(MemberId, &Options) -> Result<Result<Client, ClientError>, LabError>,
) -> LabResult {
    let (client_order_id, instrument) = (ClientOrderId(name), InstrumentId(0));
    let request = ClientRequest::Exchange { client_order_id, instrument, command };
    let options = Options { patience: REPEAT, ..Options::default() };
    let begun = Instant::now();
    loop {
        check_patience(begun, PATIENCE, "the exchange was not answered")?;
        let client = connect(MemberId(0), &options)?;
        match client.and_then(|mut client| client.submit_and_wait(&request)) {
            Ok(answer) if answer.status == Status::Refused => {
                return Err(LabError::Failed(format!("{command:?} was refused: {}", answer.reason)));
            }
            Ok(_) => return Ok(()),
            // It has no room for a request now.
            Err(ClientError::Rejected(_)) => {}
            Err(error) => {
                keep_if_connected(Err(error))?;
            }
        }
    }
}
