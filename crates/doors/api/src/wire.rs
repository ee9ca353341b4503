//! A connection to a gateway: frames in, bytes out.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pares_resources::LineTold;
use pares_resources::deeds::EXCHANGE;
use pares_types::{GatewayId, MemberId, Reason, Reply};
use pares_wire::frame::{self, GatewayFrame, Proof, SignOn};
use pares_wire::{GATEWAYS_NAME, Transcript};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::settings::ApiSettings;

/// Read at most at a time.
const INBOX_BYTES: usize = 64 << 10;
/// A gateway that is there answers within this.
const SIGN_ON_MAX: Duration = Duration::from_secs(2);
/// How often each end hears the other.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Of operators: what a gateway reads later than after three of these is not done.
const HEARTBEAT_OF_OPERATORS: Duration = Duration::from_secs(1);

/// What came in and is not decoded yet.
pub(crate) struct Inbox {
    from: Box<dyn AsyncRead + Send + Unpin>,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// What lies there already; nothing follows.
    #[cfg(test)]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { from: Box::new(tokio::io::empty()), bytes: bytes.into(), start: 0, end: bytes.len() }
    }

    /// Reads once.
    pub(crate) async fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match self.from.read(&mut self.bytes[self.end..]).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }

    /// The next frame, once all of it is there.
    pub(crate) fn next(&mut self) -> io::Result<Option<GatewayFrame>> {
        let strange =
            |error: pares_wire::WireError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let Some((kind, body, rest)) = frame::split(&self.bytes[self.start..self.end]).map_err(strange)?
        else {
            return Ok(None);
        };
        let frame = frame::decode_gateway(kind, body).map_err(strange)?;
        self.start = self.end - rest.len();
        Ok(Some(frame))
    }
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) inbox: Inbox,
    pub(crate) to: Box<dyn AsyncWrite + Send + Unpin>,
}

/// What a sign-on has come to.
pub(crate) enum SignedOn {
    /// It is done.
    Done(Agreed),
    /// This is to be proved.
    Challenged(Transcript),
    /// It is refused.
    Refused(Reason),
}

/// What was agreed with a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    pub(crate) gateway: GatewayId,
    pub(crate) in_flight_max: u16,
    pub(crate) heartbeat: Duration,
    /// The member whose streams it receives, if not its own's; else 0.
    pub(crate) copied: u32,
}

impl Wire {
    /// One that says and hears nothing.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Self {
        Self { inbox: Inbox::of(&[]), to: Box::new(tokio::io::sink()) }
    }

    async fn dial(address: SocketAddr, settings: &ApiSettings) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (from, to): (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) =
            match &settings.tls {
                None => {
                    let (from, to) = stream.into_split();
                    (Box::new(from), Box::new(to))
                }
                Some(trust) => {
                    let name = GATEWAYS_NAME.try_into().map_err(io::Error::other)?;
                    let stream = TlsConnector::from(Arc::clone(trust.config())).connect(name, stream).await?;
                    let (from, to) = tokio::io::split(stream);
                    (Box::new(from), Box::new(to))
                }
            };
        Ok(Self { inbox: Inbox { from, bytes: vec![0; INBOX_BYTES].into(), start: 0, end: 0 }, to })
    }

    /// Calls the gateways, beginning with the `first`, until one answers the wish to sign on.
    ///
    /// # Errors
    /// If none does.
    pub(crate) async fn sign_on(
        settings: &ApiSettings,
        first: usize,
        (member, session): (MemberId, u16),
    ) -> io::Result<(Self, SignedOn)> {
        let gateways = (settings.gateways)();
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "no gateway is known");
        for turn in 0..gateways.len() {
            let address = gateways[(first + turn) % gateways.len()];
            let signing_on = async {
                let mut wire = Self::dial(address, settings).await?;
                let told = wire.begin(member, session).await?;
                Ok((wire, told))
            };
            match timeout(SIGN_ON_MAX, signing_on).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => failed = error,
                Err(_) => failed = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(failed)
    }

    async fn begin(&mut self, member: MemberId, session: u16) -> io::Result<SignedOn> {
        let [token, ..] = pares_keys::random().as_chunks().0[..] else { unreachable!("32 bytes") };
        let token = u64::from_le_bytes(token);
        let heartbeat = if member == EXCHANGE { HEARTBEAT_OF_OPERATORS } else { HEARTBEAT };
        let heartbeat_ms = u32::try_from(heartbeat.as_millis()).expect("some seconds");
        let sign_on = SignOn {
            member: member.0.into(),
            session: session.into(),
            token: token.into(),
            heartbeat_ms: heartbeat_ms.into(),
            ..SignOn::default()
        };
        let mut out = Vec::new();
        frame::write(&mut out, &sign_on);
        self.to.write_all(&out).await?;
        self.to.flush().await?;
        self.outcome(|nonce, gateway| Transcript { nonce, gateway, member, session, token }).await
    }

    /// Passes the proof on.
    ///
    /// # Errors
    /// If the connection is lost, or the gateway does not answer.
    pub(crate) async fn prove(&mut self, proof: &[u8; 64], transcript: Transcript) -> io::Result<SignedOn> {
        let (first, second) = proof.split_at(32);
        let proof = Proof {
            first: first.try_into().expect("half of 64 bytes"),
            second: second.try_into().expect("half of 64 bytes"),
        };
        let mut out = Vec::new();
        frame::write(&mut out, &proof);
        self.to.write_all(&out).await?;
        self.to.flush().await?;
        timeout(SIGN_ON_MAX, self.outcome(|_, _| transcript)).await?
    }

    async fn outcome(
        &mut self,
        transcript: impl Fn([u8; 32], GatewayId) -> Transcript,
    ) -> io::Result<SignedOn> {
        loop {
            match self.inbox.next()? {
                Some(GatewayFrame::SignedOn(agreed)) => {
                    return Ok(SignedOn::Done(Agreed {
                        gateway: GatewayId(agreed.gateway.get()),
                        in_flight_max: agreed.in_flight_max.get(),
                        heartbeat: Duration::from_millis(agreed.heartbeat_ms.get().max(100).into()),
                        copied: agreed.copied.get(),
                    }));
                }
                Some(GatewayFrame::Challenge(challenge)) => {
                    let gateway = GatewayId(challenge.gateway.get());
                    return Ok(SignedOn::Challenged(transcript(challenge.nonce, gateway)));
                }
                Some(GatewayFrame::Reply(Reply::Rejected { reason, .. })) => {
                    return Ok(SignedOn::Refused(reason));
                }
                Some(_) => {}
                None => self.inbox.fill().await?,
            }
        }
    }
}

/// Who waits for an answer.
pub(crate) type Waiter = tokio::sync::oneshot::Sender<LineTold>;
