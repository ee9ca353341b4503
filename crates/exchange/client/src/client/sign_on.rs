//! Signing on: as whom, the proof if one is asked for, and what was agreed.

use std::time::Instant;

use pares_types::GatewayId;
use pares_wire::Transcript;
use pares_wire::frame::{self, Proof, SIGN_ON_JOURNALLED, SIGN_ON_RESUMES, SignOn};

use super::Client;
use crate::heartbeat::Heartbeat;
use crate::options::{Credential, Options};
use crate::{ClientError, Update};

impl Client {
    pub(super) fn sign_on(&mut self, options: &Options) -> Result<(), ClientError> {
        let journalled = if options.journalled { SIGN_ON_JOURNALLED } else { 0 };
        let flags = journalled | if options.resumes { SIGN_ON_RESUMES } else { 0 };
        let session = options.credential.as_ref().map_or(0, |credential| credential.session);
        let member = self.member.0.into();
        let heartbeat =
            options.heartbeat.map_or(0, |every| every.as_millis().clamp(1, u32::MAX.into()) as u32);
        let (flags, session, heartbeat_ms) = (flags.into(), session.into(), heartbeat.into());
        let sign_on = SignOn { member, flags, session, heartbeat_ms, ..SignOn::default() };
        self.outbox.push(|out| frame::write(out, &sign_on))?;
        let asked = self.wait_for(|update| match *update {
            Update::SignedOn { .. } => Some(Ok(Err(*update))),
            Update::Challenged { gateway, nonce } => Some(Ok(Ok((gateway, nonce)))),
            Update::Rejected { reason, .. } => Some(Err(ClientError::Rejected(reason))),
            _ => None,
        })?;
        let signed_on = match asked {
            Err(signed_on) => signed_on,
            Ok(challenge) => self.prove(challenge, options.credential.as_ref())?,
        };
        if let Update::SignedOn { gateway, in_flight_max, heartbeat, .. } = signed_on {
            (self.gateway, self.in_flight_max) = (gateway, in_flight_max);
            self.heartbeat = Heartbeat::new(heartbeat, Instant::now());
        }
        Ok(())
    }

    /// Answers the challenge.
    fn prove(
        &mut self,
        (gateway, nonce): (GatewayId, [u8; 32]),
        credential: Option<&Credential>,
    ) -> Result<Update, ClientError> {
        let Credential { session, secret } = credential.ok_or(ClientError::NoKey)?;
        let transcript = Transcript { nonce, gateway, member: self.member, session: *session, token: 0 };
        let proof = secret.prove(&transcript.bytes());
        let (first, second) = proof.split_first_chunk().expect("a proof has 64 bytes");
        let second = second.try_into().expect("a proof has 64 bytes");
        self.outbox.push(|out| frame::write(out, &Proof { first: *first, second }))?;
        self.wait_for(|update| match *update {
            Update::SignedOn { .. } => Some(Ok(*update)),
            Update::Rejected { reason, .. } => Some(Err(ClientError::Rejected(reason))),
            _ => None,
        })
    }
}
