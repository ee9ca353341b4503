//! A session on a connection.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use pares_client::Secret;
use pares_fix::dictionary::{FIX44, tag};
use pares_fix::framing::{Cut, FixFrame, cut};
use pares_fix::message::FixMessage;
use pares_fix::parser::FixParser;
use pares_fix::writer::FixWriter;
use pares_os::clock::now_ns;
use pares_types::{ClientRequest, MemberId};

use super::FixCaller;
use super::messages::{self, Ends};
use super::numbers::{Numbers, Turn};
use crate::front::{FrontEnd, FrontEngine, FrontTold, Heard, Line, READ_BYTES};

/// A session on a connection.
#[derive(Debug)]
pub(crate) struct FixEngine {
    line: Line,
    member: MemberId,
    told: Option<Arc<FrontTold>>,
    parser: FixParser,
    end: End,
}

/// Our end of the session: everything but what comes in.
#[derive(Debug)]
struct End {
    ends: Ends,
    numbers: Numbers,
    output: Vec<u8>,
    is_logged_on: bool,
    /// Gaps of the gateway's numbers that were asked for.
    gaps: u64,
    /// Messages under a number that was used, which do not say that they come again.
    low: u64,
    /// Whether messages were filled as a gap.
    has_filled: bool,
}

impl FrontEngine for FixEngine {
    type Caller = FixCaller;
    type Numbers = Numbers;

    fn name(caller: &FixCaller) -> &str {
        &caller.ends.sender
    }

    fn can_say(request: &ClientRequest) -> bool {
        messages::msg_type(request).is_some()
    }

    fn call(
        address: SocketAddr,
        caller: &FixCaller,
        mut numbers: Numbers,
    ) -> Result<Self, (std::io::Error, Numbers)> {
        let line = match Line::connect(address) {
            Ok(line) => line,
            Err(error) => return Err((error, numbers)),
        };
        numbers.forget_early();
        let (ends, output) = (caller.ends.clone(), Vec::with_capacity(READ_BYTES));
        let mut end = End { ends, numbers, output, is_logged_on: false, gaps: 0, low: 0, has_filled: false };
        end.log_on(caller.proof(address));
        let (member, told) = (caller.member, caller.told.clone());
        Ok(Self { line, member, told, parser: FixParser::default(), end })
    }

    fn into_numbers(self) -> Numbers {
        self.end.numbers
    }

    fn socket(&self) -> &TcpStream {
        &self.line.socket
    }

    fn is_logged_on(&self) -> bool {
        self.end.is_logged_on
    }

    fn send(&mut self, request: &ClientRequest, again: bool) {
        let Some(kind) = messages::msg_type(request) else { return };
        let now_ns = now_ns();
        self.end.message(kind, now_ns, |writer| {
            if again {
                writer.letter(tag::POSS_RESEND, b'Y');
            }
            messages::body(writer, request, now_ns);
        });
    }

    fn flush(&mut self) -> Result<(), FrontEnd> {
        self.line.flush(&mut self.end.output)
    }

    fn poll(&mut self, on: &mut dyn FnMut(Heard)) -> Result<usize, FrontEnd> {
        let (member, told) = (self.member, self.told.clone());
        let polled = self.poll_messages(&mut |message| hear(message, member, told.as_deref(), on));
        let gaps = std::mem::take(&mut self.end.gaps);
        let low = std::mem::take(&mut self.end.low);
        if let Some(told) = told {
            (0..gaps).for_each(|_| told.note_gap());
            (0..low).for_each(|_| told.note_low());
        }
        polled
    }

    /// Messages were filled as a gap: requests may be among them.
    fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.end.has_filled)
    }
}

/// What a message of the application says.
fn hear(message: &FixMessage<'_>, member: MemberId, told: Option<&FrontTold>, on: &mut dyn FnMut(Heard)) {
    let exec_id = message.text(tag::EXEC_ID).unwrap_or(b"");
    let is_refused_at_once = exec_id.starts_with(b"R");
    if let Some(told) = told.filter(|_| !exec_id.is_empty() && !is_refused_at_once) {
        let exec_id = String::from_utf8_lossy(exec_id).into_owned();
        told.note(member, exec_id, message.flag(tag::POSS_RESEND) || message.flag(tag::POSS_DUP_FLAG));
    }
    let kind = message.text(tag::EXEC_TYPE).unwrap_or(b"");
    if kind == b"F" {
        on(Heard::Traded);
    }
    // The gateway reports an order as taken before all else that happens to it. An echo has no kind.
    let is_answer = matches!(kind, b"" | b"0" | b"4" | b"5" | b"8");
    let Some(name) = message.number(tag::CL_ORD_ID).filter(|_| is_answer) else { return };
    if let Some(told) = told.filter(|_| message.msg_type() == b"9") {
        told.note_refused(name);
    }
    on(if is_refused_at_once { Heard::Rejected(name) } else { Heard::Answered(name) });
}

impl FixEngine {
    /// Hands out what has come in of the application, in the order of its numbers. Says how many messages came.
    fn poll_messages(&mut self, on: &mut dyn FnMut(&FixMessage<'_>)) -> Result<usize, FrontEnd> {
        let Self { parser, line, end, .. } = self;
        line.poll(|rest| match cut(rest) {
            (Cut::Incomplete, _) => Ok(None),
            (Cut::Whole(frame), length) => end.on_frame(parser, &frame, on).map(|()| Some(length)),
            (Cut::Garbled | Cut::TooLong, _) => Err(FrontEnd::Broken("garbled bytes came".into())),
        })
    }
}

impl End {
    fn message(&mut self, kind: &[u8], now_ns: u64, body: impl FnOnce(&mut FixWriter<'_>)) {
        let number = self.numbers.take_out();
        let mut writer = self.ends.begin(&mut self.output, kind, (number, now_ns));
        body(&mut writer);
        writer.finish();
    }

    fn log_on(&mut self, by: Option<(&Secret, usize)>) {
        let head = (self.numbers.take_out(), now_ns());
        self.ends.log_on(&mut self.output, head, by);
    }

    fn on_frame(
        &mut self,
        parser: &mut FixParser,
        frame: &FixFrame<'_>,
        on: &mut dyn FnMut(&FixMessage<'_>),
    ) -> Result<(), FrontEnd> {
        let message =
            parser.parse(&FIX44, frame).map_err(|_| FrontEnd::Broken("a message is unreadable".into()))?;
        self.at_once(&message)?;
        match self.numbers.turn(&message) {
            Turn::Now => self.in_turn(&message, on)?,
            Turn::Early { asks: true } => self.ask_again(),
            Turn::Past => self.low += u64::from(!message.flag(tag::POSS_DUP_FLAG)),
            Turn::Early { asks: false } => {}
        }
        while let Some(bytes) = self.numbers.take_next() {
            let (Cut::Whole(frame), _) = cut(&bytes) else { unreachable!("it was whole when it came") };
            let message = parser.parse(&FIX44, &frame).expect("it was read when it came");
            let turn = self.numbers.turn(&message);
            assert_eq!(turn, Turn::Now, "it was taken because it is its turn");
            self.in_turn(&message, on)?;
        }
        Ok(())
    }

    /// What does not wait for what is missing before it.
    fn at_once(&mut self, message: &FixMessage<'_>) -> Result<(), FrontEnd> {
        match message.msg_type() {
            b"A" => self.is_logged_on = true,
            b"2" => self.fill(message.number(tag::BEGIN_SEQ_NO).unwrap_or(1)),
            b"5" => {
                let text = String::from_utf8_lossy(message.text(tag::TEXT).unwrap_or(b"")).into_owned();
                let is_ours = text.contains("too low");
                return Err(if is_ours { FrontEnd::Broken(text) } else { FrontEnd::Lost(text) });
            }
            _ => {}
        }
        Ok(())
    }

    fn in_turn(
        &mut self,
        message: &FixMessage<'_>,
        on: &mut dyn FnMut(&FixMessage<'_>),
    ) -> Result<(), FrontEnd> {
        match message.msg_type() {
            b"0" | b"2" | b"4" | b"A" => {}
            b"1" => {
                let id = message.text(tag::TEST_REQ_ID).unwrap_or(b"").to_vec();
                self.message(b"0", now_ns(), |writer| writer.text(tag::TEST_REQ_ID, &id));
            }
            b"3" | b"j" => {
                let said = String::from_utf8_lossy(message.frame().bytes).replace('\x01', "|");
                return Err(FrontEnd::Broken(format!("the gateway rejects a message: {said}")));
            }
            _ => on(message),
        }
        Ok(())
    }

    /// Asks for everything from the first that is missing.
    fn ask_again(&mut self) {
        self.gaps += 1;
        let first = self.numbers.next_in;
        self.message(b"2", now_ns(), |writer| {
            writer.number(tag::BEGIN_SEQ_NO, first);
            writer.number(tag::END_SEQ_NO, 0);
        });
    }

    /// What the gateway lacks is filled as a gap: what is unanswered goes out again as new messages.
    fn fill(&mut self, from: u64) {
        let (now_ns, next) = (now_ns(), self.numbers.next_out);
        self.has_filled = true;
        let mut writer = self.ends.begin(&mut self.output, b"4", (from, now_ns));
        writer.letter(tag::POSS_DUP_FLAG, b'Y');
        writer.time(tag::ORIG_SENDING_TIME, now_ns);
        writer.letter(tag::GAP_FILL_FLAG, b'Y');
        writer.number(tag::NEW_SEQ_NO, next);
        writer.finish();
    }
}
