//! A door, the engine that calls it, and a gateway that says what the test says.

use std::sync::Arc;

use pares_door::FixDoor;
use pares_exercise::replies::{self, order_id};
pub(crate) use pares_exercise::replies::{ACME, SHARD};
use pares_fix::dictionary::{FIX42, FIX44, FixDictionary};
use pares_fix::framing::{Cut, cut};
use pares_fix::parser::FixParser;
use pares_fix::writer;
use pares_port::{DoorAction, DoorConfig, DoorTime, LogonProof, ProtocolDoor, SessionMark, Sink};
use pares_types::{
    Answer, CancelCause, Cancelled, ClientRequest, GatewayId, InstrumentId, ListEnd, MemberId, Position,
    Price, Quantity, Reason, Reply, RequestId, Role, Status, Symbol, Trade, TradeBusted,
};
use pares_wire::frame::{ClientFrame, GatewayFrame, SignOn, SignedOn};

pub(crate) const NOON_NS: u64 = 1_790_000_000_000_000_000;
/// The door's gateway.
const GATEWAY: GatewayId = GatewayId(3);

pub(crate) fn config() -> Arc<DoorConfig> {
    Arc::new(DoorConfig {
        comp_id: "PARES".into(),
        gateway: GATEWAY,
        instruments: vec![(ACME, Symbol::new("ACME").expect("a symbol"))],
        shards: vec![SHARD],
        has_market: false,
        orders_max: 100,
    })
}

pub(crate) struct Rig {
    pub(crate) door: FixDoor,
    pub(crate) dictionary: &'static FixDictionary,
    pub(crate) at: DoorTime,
    /// The member whose streams it receives, if not its own's.
    pub(crate) copied: Option<MemberId>,
    /// The engine's next number.
    pub(crate) number: u64,
    pub(crate) asked: Vec<ClientFrame>,
    pub(crate) logon: Option<(SignOn, Option<LogonProof>)>,
    pub(crate) sent: Vec<u8>,
    pub(crate) marks: Vec<SessionMark>,
    pub(crate) finds: Vec<Symbol>,
    pub(crate) is_closed: bool,
}

impl Rig {
    pub(crate) fn new(dictionary: &'static FixDictionary) -> Self {
        Self::with(dictionary, config())
    }

    pub(crate) fn with(dictionary: &'static FixDictionary, config: Arc<DoorConfig>) -> Self {
        Self {
            door: FixDoor::new(config),
            dictionary,
            at: DoorTime { utc_ns: NOON_NS, mono_ns: 5 },
            copied: None,
            number: 1,
            asked: Vec::new(),
            logon: None,
            sent: Vec::new(),
            marks: Vec::new(),
            finds: Vec::new(),
            is_closed: false,
        }
    }

    /// Member 7's session 1, logged on with FIX 4.4.
    pub(crate) fn logged_on() -> Self {
        Self::logged_on_as(&FIX44)
    }

    pub(crate) fn logged_on_with_42() -> Self {
        Self::logged_on_as(&FIX42)
    }

    fn logged_on_as(dictionary: &'static FixDictionary) -> Self {
        let mut rig = Self::new(dictionary);
        rig.logs_on(None, Some(1));
        assert_eq!(rig.sent(), ["A 98=0 108=30"]);
        rig.logon = None;
        rig
    }

    /// Logs on from a mark; the stream is live from a number on, or comes from the record first.
    pub(crate) fn logs_on(&mut self, mark: Option<&SessionMark>, live: Option<u64>) {
        self.says("A", "98=0|108=30|");
        self.signs_on(mark);
        self.ends_list();
        if let Some(next) = live {
            self.resumed(next);
        }
        self.asked.clear();
    }

    /// The gateway takes the member, and gives the session.
    pub(crate) fn signs_on(&mut self, mark: Option<&SessionMark>) {
        let copied = self.copied.map_or(0, |member| member.0).into();
        self.hears(GatewayFrame::SignedOn(SignedOn { copied, ..SignedOn::default() }));
        self.claims(mark);
    }

    fn claims(&mut self, mark: Option<&SessionMark>) {
        let at = self.at;
        self.acts(|door, sink| door.on_claimed(at, mark, sink));
    }

    /// The gateway has used up a Logon that was sent within the session.
    pub(crate) fn proves(&mut self) {
        let at = self.at;
        self.acts(|door, sink| door.on_proven(at, sink));
    }

    pub(crate) fn ends_list(&mut self) {
        let Some(ClientFrame::ListRequest(request)) = self.asked.last() else { panic!("{:?}", self.asked) };
        let end = ListEnd { request: *request, count: 0, reason: Reason::None };
        self.hears(GatewayFrame::ListEnd(end));
    }

    /// The gateway says which instrument has the symbol that is sought.
    pub(crate) fn found(&mut self, instrument: Option<InstrumentId>) {
        let at = self.at;
        self.acts(|door, sink| door.on_found(at, instrument, sink));
    }

    pub(crate) fn resumed(&mut self, next: u64) {
        self.hears(GatewayFrame::Resumed { shard: SHARD, next, reason: Reason::None });
    }

    /// The engine sends a message with its next number.
    pub(crate) fn says(&mut self, msg_type: &str, fields: &str) {
        let bytes = self.message(msg_type, fields);
        self.gives(&bytes);
    }

    pub(crate) fn gives(&mut self, bytes: &[u8]) {
        let at = self.at;
        self.acts(|door, sink| assert_eq!(door.on_bytes(at, bytes, sink), bytes.len()));
    }

    pub(crate) fn message(&mut self, msg_type: &str, fields: &str) -> Vec<u8> {
        let head = (self.number, "M7-1", self.at.utc_ns, "PARES");
        self.number += 1;
        writer::message(self.dictionary.begin_string, msg_type.as_bytes(), head, fields.as_bytes())
    }

    /// The engine asks for something that it dates itself.
    pub(crate) fn asks(&mut self, msg_type: &str, fields: &str) {
        let handling = if self.dictionary.begin_string == "FIX.4.2" { "21=1|" } else { "" };
        let handling = if matches!(msg_type, "D" | "G") { handling } else { "" };
        self.says(msg_type, &format!("{fields}{handling}60=20260921-12:00:00|"));
    }

    pub(crate) fn hears(&mut self, frame: GatewayFrame) {
        let at = self.at;
        self.acts(|door, sink| door.on_frame(at, &frame, sink));
    }

    pub(crate) fn told(&mut self, reply: Reply) {
        self.hears(GatewayFrame::Reply(reply));
    }

    pub(crate) fn waits(&mut self, ns: u64) {
        self.at = DoorTime { utc_ns: self.at.utc_ns + ns, mono_ns: self.at.mono_ns + ns };
        let at = self.at;
        self.acts(|door, sink| door.on_time(at, sink));
    }

    pub(crate) fn acts(&mut self, act: impl FnOnce(&mut FixDoor, Sink<'_>)) {
        let Self { door, asked, sent, marks, is_closed, logon, finds, .. } = self;
        act(door, &mut |action| {
            assert!(!*is_closed, "after the end: {action:?}");
            match action {
                DoorAction::Send(bytes) => {
                    covered(bytes, marks.last());
                    sent.extend_from_slice(bytes);
                }
                DoorAction::Ask(frame) => asked.push(frame),
                DoorAction::LogOn { sign_on, proof } => *logon = Some((sign_on, proof.cloned())),
                DoorAction::Claim { member, session } => assert_eq!((member, session), (MemberId(7), 1)),
                DoorAction::Find(symbol) => finds.push(symbol),
                DoorAction::Mark(mark) => marks.push(mark.clone()),
                DoorAction::Close => *is_closed = true,
            }
        });
    }

    /// What was sent since the last time, each message in order: its type, and its fields but for numbers, ids and times.
    pub(crate) fn sent(&mut self) -> Vec<String> {
        self.sent_with(&["8", "9", "10", "34", "35", "49", "52", "56", "60", "6", "122"])
    }

    pub(crate) fn sent_with(&mut self, hidden: &[&str]) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        let show = |frame: &[u8]| shown(frame, hidden);
        frames(self.dictionary, &sent).iter().map(|frame| show(frame)).collect()
    }

    /// As many messages were sent since the last time, each with these pieces, ` .. ` between them: behind `^` what it begins with,
    /// before `$` what it ends with, behind `!` what it lacks.
    pub(crate) fn sends(&mut self, wanted: &[&str]) {
        let sent = self.sent();
        assert_eq!(sent.len(), wanted.len(), "{sent:?}");
        for (sent, wanted) in sent.iter().zip(wanted) {
            for piece in wanted.split(" .. ") {
                let holds = match (piece.strip_prefix('^'), piece.strip_suffix('$'), piece.strip_prefix('!'))
                {
                    (Some(first), ..) => sent.starts_with(first),
                    (_, Some(last), _) => sent.ends_with(last),
                    (.., Some(lacking)) => !sent.contains(lacking),
                    _ => sent.contains(piece),
                };
                assert!(holds, "{piece}: {sent}");
            }
        }
    }

    /// What was asked of the gateway since the last time, which is one request.
    pub(crate) fn request(&mut self) -> ClientRequest {
        let asked = std::mem::take(&mut self.asked);
        let [ClientFrame::Request(request)] = asked[..] else { panic!("{asked:?}") };
        request
    }
}

/// Every number that goes out is covered by a mark; who is not signed on is refused under the number 1, which is no session's.
fn covered(bytes: &[u8], mark: Option<&SessionMark>) {
    let out_max = mark.map_or(1, |mark| mark.out_max);
    for frame in cuts(bytes) {
        let number =
            shown(frame, &[]).split(' ').find_map(|field| field.strip_prefix("34=")?.parse::<u64>().ok());
        assert!(number.expect("a number") <= out_max, "{number:?} is beyond {out_max}");
    }
}

fn cuts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut cuts = Vec::new();
    while !bytes.is_empty() {
        let (Cut::Whole(frame), used) = cut(bytes) else {
            panic!("whole messages: {}", bytes.escape_ascii())
        };
        cuts.push(frame.bytes);
        bytes = &bytes[used..];
    }
    cuts
}

/// The messages in the bytes, each right by its dictionary.
pub(crate) fn frames(dictionary: &'static FixDictionary, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut parser = FixParser::default();
    for frame in cuts(bytes) {
        let (Cut::Whole(frame), _) = cut(frame) else { unreachable!() };
        let message = parser.parse(dictionary, &frame).expect("fields");
        assert_eq!(message.fault(), None, "{}", frame.bytes.escape_ascii());
    }
    cuts(bytes).into_iter().map(<[u8]>::to_vec).collect()
}

fn shown(frame: &[u8], hidden: &[&str]) -> String {
    let text = String::from_utf8_lossy(frame).into_owned();
    let fields: Vec<&str> = text.trim_end_matches('\x01').split('\x01').collect();
    let msg_type = fields.iter().find_map(|field| field.strip_prefix("35=")).expect("a type").to_owned();
    let is_shown = |field: &&&str| !hidden.contains(&field.split('=').next().expect("a tag"));
    let shown: Vec<&str> = fields.iter().filter(is_shown).copied().collect();
    format!("{msg_type} {}", shown.join(" ")).trim_end().to_owned()
}

pub(crate) fn request_id(sequence: u64) -> RequestId {
    order_id(sequence).0
}

/// The answer to the entry of an order, whose name is its sequence.
pub(crate) fn answer(name: u64, number: u64, status: Status, executed: u64, remaining: u64) -> Answer {
    let (executed, remaining) = (Quantity(executed), Quantity(remaining));
    Answer { status, executed, remaining, ..replies::answer(name, number) }
}

/// The answer to a mass cancel.
pub(crate) fn mass(name: u64, number: u64, executed: u64) -> Answer {
    answer(name, number, Status::MassCancelled, executed, 0)
}

/// The answer to a change of an order.
pub(crate) fn changed(
    name: u64,
    of: u64,
    number: u64,
    status: Status,
    executed: u64,
    remaining: u64,
) -> Answer {
    Answer { order: order_id(of), ..answer(name, number, status, executed, remaining) }
}

pub(crate) fn trade(name: u64, number: u64, role: Role, quantity: u64, remaining: u64) -> Trade {
    let (price, quantity, remaining) = (Price(2_238_200), Quantity(quantity), Quantity(remaining));
    Trade { role, price, quantity, remaining, ..replies::trade(name, number) }
}

/// The trade of the position is void.
pub(crate) fn busted(name: u64, number: u64, traded_at: u64, quantity: u64) -> TradeBusted {
    let (price, quantity, traded_at) = (Price(2_238_200), Quantity(quantity), Position(traded_at));
    TradeBusted { traded_at, price, quantity, ..replies::busted(name, number) }
}

pub(crate) fn cancelled(name: u64, number: u64, cause: CancelCause, quantity: u64) -> Cancelled {
    Cancelled { cause, quantity: Quantity(quantity), ..replies::cancelled(name, number) }
}
