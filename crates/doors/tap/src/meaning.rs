//! What messages mean, as far as one is to be found, timed, or held against the record.

use pares_types::{ClientOrderId, ClientRequest, Position, Reply, ShardId};
use pares_wire::WireError;
use pares_wire::frame::{self, ClientFrame, GatewayFrame, Message};

use crate::fix::FixTalk;
use crate::ouch::{self, OuchSession};
use pares_port::TapDoor;

use crate::{Blank, TapedMessage, TapedPiece, TapedStream};

/// A message, and what it means.
#[derive(Clone, Debug)]
pub struct TapedMeaning {
    /// The message.
    pub message: TapedMessage,
    /// Its type, as its protocol calls it.
    pub kind: String,
    /// All of it, as text.
    pub text: String,
    /// The name of the request, or of the order or request concerned.
    pub name: Option<u64>,
    /// Another name in it: of the order that a request is to change.
    pub about: Option<u64>,
    /// What it does.
    pub role: TapedRole,
}

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapedRole {
    /// Asks for something that is to be recorded.
    Request,
    /// Asks for something, and its session did not take it: a wrong sum, a field that is rejected, an old number, behind a Logout.
    Ignored,
    /// Asks for something, and its session did not take it before messages that should have come first, and did not come.
    Waiting,
    /// Asks for something on a connection of which bytes are missing: its session took it or not.
    Unsure,
    /// Answers a request, which is recorded there.
    Answer(ShardId, Position),
    /// Answers a request without a word of the record: if that is not recorded, it is refused at once.
    Refusal,
    /// Tells something that is recorded there.
    Told(ShardId, Position),
    /// None of these.
    Other,
}

/// What is said on a connection, as it passes.
pub struct TapedTalk {
    stream: TapedStream,
    door: DoorTalk,
}

/// What its protocol has to be known of.
enum DoorTalk {
    /// Whether the gateway has closed it for a frame of a kind that it does not know: what follows is not read. `None` where bytes are
    /// missing: what looks like such a frame may be the middle of another.
    Binary(Option<bool>),
    Fix(FixTalk),
    Ouch(OuchSession),
}

impl TapedTalk {
    /// Nothing yet.
    #[must_use]
    pub fn new(door: TapDoor) -> Self {
        let talk = match door {
            TapDoor::Binary => DoorTalk::Binary(Some(false)),
            TapDoor::Fix => DoorTalk::Fix(FixTalk::default()),
            TapDoor::Ouch => DoorTalk::Ouch(OuchSession::default()),
        };
        Self { stream: TapedStream::new(door), door: talk }
    }

    /// Continues over a piece, and gives the messages of which it is known now what they mean: such as end with it, and of FIX such as waited.
    pub fn take(&mut self, piece: &TapedPiece<'_>, mut said: impl FnMut(TapedMeaning)) {
        let Self { door, stream } = self;
        if !stream.is_followed_by(piece) {
            match door {
                DoorTalk::Fix(fix) => fix.lose(&mut said),
                DoorTalk::Binary(is_over) => *is_over = is_over.filter(|over| *over),
                DoorTalk::Ouch(_) => {}
            }
        }
        stream.take(piece, |message| match door {
            DoorTalk::Fix(fix) => fix.take(message, &mut said),
            DoorTalk::Binary(is_over) => said(binary_in_turn(is_over, &message).of_message(message)),
            DoorTalk::Ouch(_) if !message.is_whole => said(Meant::no_message(&message).of_message(message)),
            DoorTalk::Ouch(session) => said(ouch::mean(session, &message).of_message(message)),
        });
    }

    /// Nothing more follows: gives the messages that wait.
    pub fn finish(&mut self, mut said: impl FnMut(TapedMeaning)) {
        if let DoorTalk::Fix(fix) = &mut self.door {
            fix.finish(&mut said);
        }
    }

    /// Bytes of which no message is made yet.
    #[must_use]
    pub fn rest(&self) -> u64 {
        self.stream.rest()
    }
}

impl TapedMeaning {
    /// Bytes that are blanked though the message signs nobody on, and changes no key.
    #[must_use]
    pub fn blanked_bytes(&self, door: TapDoor) -> u64 {
        let message = &self.message;
        let may = message.is_whole
            && ["A", "Proof", "ChangeRegister", "LoginRequest"].contains(&self.kind.as_str());
        if message.is_in && !may { Blank::new(door).count(&message.bytes) } else { 0 }
    }
}

/// What is found out about a message.
pub(crate) struct Meant {
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) name: Option<u64>,
    pub(crate) about: Option<u64>,
    pub(crate) role: TapedRole,
}

impl Meant {
    pub(crate) fn of_message(self, message: TapedMessage) -> TapedMeaning {
        let Self { kind, text, name, about, role } = self;
        TapedMeaning { message, kind, text, name, about, role }
    }

    pub(crate) fn no_message(message: &TapedMessage) -> Self {
        let (length, bytes) = (message.bytes.len(), message.bytes.escape_ascii());
        Self::other("?", format!("{length} bytes that form no message: {bytes}"))
    }

    pub(crate) fn other(kind: &str, text: String) -> Self {
        let kind = kind.to_owned();
        Self { kind, text, name: None, about: None, role: TapedRole::Other }
    }

    /// A value as text, called by its variant.
    fn of(value: &impl std::fmt::Debug) -> Self {
        let text = format!("{value:?}");
        let end = text.find(|one: char| !one.is_ascii_alphanumeric()).unwrap_or(text.len());
        let kind = text[..end].to_owned();
        Self::other(&kind, text)
    }
}

/// A message behind others of its connection; one that ends the session leaves its mark in `is_over`.
fn binary_in_turn(is_over: &mut Option<bool>, message: &TapedMessage) -> Meant {
    let meant = if message.is_whole { binary(message) } else { Meant::no_message(message) };
    match is_over {
        Some(true) if meant.role == TapedRole::Request => Meant { role: TapedRole::Ignored, ..meant },
        Some(is_over) => {
            *is_over |= message.is_in && ends_session(message);
            meant
        }
        None => meant,
    }
}

/// Whether a gateway closes the connection that sends it: it is no frame, or of a kind that no client sends. What else it cannot read it
/// refuses.
fn ends_session(message: &TapedMessage) -> bool {
    match frame::split(&message.bytes) {
        Ok(Some((kind, body, _))) => {
            matches!(frame::decode_client(kind, body), Err(WireError::UnknownSchema { .. }))
        }
        _ => true,
    }
}

fn binary(message: &TapedMessage) -> Meant {
    let bytes = || message.bytes.escape_ascii().to_string();
    let Ok(Some((kind, body, _))) = frame::split(&message.bytes) else { return Meant::other("?", bytes()) };
    let name_of_kind = || request_kind(kind).map_or_else(|| format!("kind {kind}"), str::to_owned);
    let unread = || Meant::other(&name_of_kind(), bytes());
    if !message.is_in {
        return match frame::decode_gateway(kind, body) {
            Ok(GatewayFrame::Reply(reply)) => of_reply(&reply),
            Ok(other) => Meant::of(&other),
            Err(_) => unread(),
        };
    }
    match frame::decode_client(kind, body) {
        Ok(ClientFrame::Request(request)) => {
            let about = match request {
                ClientRequest::Amend { target, .. } | ClientRequest::Cancel { target, .. } => Some(target.0),
                _ => None,
            };
            let (name, meant) = (Some(request.client_order_id().0), Meant::of(&request));
            let is_of_exchange = matches!(request, ClientRequest::Exchange { .. });
            let kind = if is_of_exchange { name_of_kind() } else { meant.kind.clone() };
            Meant { kind, name, about, role: TapedRole::Request, ..meant }
        }
        // It is blanked.
        Ok(ClientFrame::Proof(_)) => Meant::other("Proof", "Proof".into()),
        Ok(other) => Meant::of(&other),
        Err(_) if request_kind(kind).is_none() => unread(),
        Err(_) => {
            let name = Some(frame::request_name(kind, body).0).filter(|name| *name > 0);
            Meant { name, role: TapedRole::Request, ..unread() }
        }
    }
}

/// How the protocol calls a request whose variant does not tell, or that cannot be read.
fn request_kind(kind: u8) -> Option<&'static str> {
    Some(match kind {
        frame::EnterOrder::KIND | frame::EnterOrderExtended::KIND => "Enter",
        frame::AmendOrder::KIND | frame::AmendOrderExtended::KIND => "Amend",
        frame::CancelOrder::KIND => "Cancel",
        frame::MassCancel::KIND => "MassCancel",
        frame::SetPhase::KIND => "SetPhase",
        frame::SetRule::KIND => "SetRule",
        frame::AddInstrument::KIND => "AddInstrument",
        frame::RemoveInstrument::KIND => "RemoveInstrument",
        frame::BlockMember::KIND => "BlockMember",
        frame::UnblockMember::KIND => "UnblockMember",
        frame::BustTrade::KIND => "BustTrade",
        frame::TellTime::KIND => "TellTime",
        frame::ChangeRegister::KIND => "ChangeRegister",
        frame::BeginDay::KIND => "BeginDay",
        frame::EndDay::KIND => "EndDay",
        _ => return None,
    })
}

fn of_reply(reply: &Reply) -> Meant {
    let told = |name: ClientOrderId, shard, position| (Some(name.0), TapedRole::Told(shard, position));
    let (name, role) = match reply {
        Reply::Journalled { client_order_id, .. } => (Some(client_order_id.0), TapedRole::Other),
        Reply::Rejected { client_order_id, .. } if client_order_id.0 == 0 => (None, TapedRole::Other),
        Reply::Rejected { client_order_id, .. } => (Some(client_order_id.0), TapedRole::Refusal),
        Reply::Answer(answer) => {
            (Some(answer.client_order_id.0), TapedRole::Answer(answer.shard, answer.position))
        }
        Reply::Trade(trade) => told(trade.client_order_id, trade.shard, trade.position),
        Reply::Cancelled(one) => told(one.client_order_id, one.shard, one.position),
        Reply::News(news) => told(news.client_order_id, news.shard, news.position),
        Reply::Busted(bust) => told(bust.client_order_id, bust.shard, bust.position),
    };
    Meant { name, role, ..Meant::of(reply) }
}
