//! The exchange's own requests, asked until they are answered, whatever gateway dies.

use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, OpenRequests, Options, Update};
use pares_load::{LabError, LabResult, ScratchSystem, check_patience, keep_if_connected};
use pares_types::{Answer, ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, Status};

use super::PATIENCE;

const EXCHANGE: MemberId = MemberId(0);
const ALL: InstrumentId = InstrumentId(0);

/// The exchange at some gateway.
#[derive(Default)]
pub(super) struct Exchange {
    client: Option<Client>,
    names: u64,
}

impl Exchange {
    /// The same one without its connection.
    pub(super) fn after(before: &Self) -> Self {
        Self { client: None, names: before.names }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// If it is refused, or nobody answers.
    pub(super) fn ask(&mut self, system: &mut ScratchSystem, command: Command) -> LabResult {
        self.names += 1;
        let client_order_id = ClientOrderId(self.names);
        let mut open = OpenRequests::new();
        open.keep(&ClientRequest::Exchange { client_order_id, instrument: ALL, command });
        let begun = Instant::now();
        loop {
            check_patience(begun, PATIENCE, "the exchange was not answered")?;
            system.supervisor.tick();
            let mut answer = None;
            let turn = self.turn(system, &mut open, &mut answer);
            if !keep_if_connected(turn)? {
                self.client = None;
            }
            match answer {
                Some(answer) if answer.status == Status::Refused => {
                    return Err(LabError::Failed(format!("{command:?} was refused: {}", answer.reason)));
                }
                Some(_) => return Ok(()),
                None => {}
            }
        }
    }

    fn turn(
        &mut self,
        system: &ScratchSystem,
        open: &mut OpenRequests,
        answered: &mut Option<Answer>,
    ) -> Result<(), ClientError> {
        let client = match &mut self.client {
            Some(client) => client,
            None => self.client.insert(system.connect(EXCHANGE, 0, &Options::default())?),
        };
        if !open.is_empty() {
            open.repeat_all(client)?;
        }
        let mut rejected = None;
        let begun = Instant::now();
        while answered.is_none() && rejected.is_none() && begun.elapsed() < Duration::from_secs(1) {
            client.wait(Duration::from_millis(10))?;
            client.poll(|update| {
                let closed = open.on_update(&update);
                match update {
                    Update::Answer(answer) if closed.is_some() => *answered = Some(answer),
                    Update::Rejected { .. } => rejected = closed,
                    _ => {}
                }
            })?;
        }
        rejected.iter().for_each(|request| open.keep(request));
        Ok(())
    }
}
