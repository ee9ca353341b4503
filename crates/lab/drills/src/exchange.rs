//! The exchange's own requests, asked until they are answered, whatever gateway dies.

use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, Options};
use pares_load::{LabError, LabResult, check_patience, keep_if_connected};
use pares_types::{ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, Reason, Status};

/// How long no gateway may answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// After so long without an answer it is asked again, perhaps at another gateway.
const REPEAT: Duration = Duration::from_secs(1);
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(20);

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
    let (begun, mut last) = (Instant::now(), "no gateway was asked".to_owned());
    loop {
        check_patience(begun, PATIENCE, &format!("the exchange was not answered ({last})"))?;
        let client = connect(MemberId(0), &options)?;
        match client.and_then(|mut client| client.submit_and_wait(&request)) {
            Ok(answer) if answer.status == Status::Refused => {
                return Err(LabError::Failed(format!("{command:?} was refused: {}", answer.reason)));
            }
            Ok(_) => return Ok(()),
            Err(ClientError::Rejected(reason)) if !may_pass(reason) => {
                return Err(LabError::Failed(format!("{command:?} was rejected: {reason}")));
            }
            Err(error @ ClientError::Rejected(_)) => last = error.to_string(),
            Err(error) => {
                last = error.to_string();
                keep_if_connected(Err(error))?;
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a gateway has no room for the request now, and may have it later.
fn may_pass(reason: Reason) -> bool {
    use Reason::{NotRecorded, Overloaded, StorageUnavailable, TooManyConnections, TooManySessions};
    matches!(reason, Overloaded | NotRecorded | StorageUnavailable | TooManyConnections | TooManySessions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_repeated_only_while_there_is_no_room_for_it() {
        let mut reasons =
            [Reason::TooManyConnections, Reason::Overloaded, Reason::NoRight, Reason::Overloaded].into_iter();
        let asked = ask_exchange(1, Command::RemoveInstrument, |_, _| {
            Ok(Err(ClientError::Rejected(reasons.next().expect("a right that is missing ends it"))))
        });
        let why = asked.unwrap_err().to_string();
        assert!(why.ends_with("was rejected: no_right"), "{why}");
        assert_eq!(reasons.count(), 1);
    }
}
