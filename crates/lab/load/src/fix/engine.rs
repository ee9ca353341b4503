//! A session on a connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use pares_client::Credential;
use pares_fix::SOH;
use pares_fix::dictionary::{FIX44, tag};
use pares_fix::framing::{Cut, FixFrame, cut};
use pares_fix::message::FixMessage;
use pares_fix::parser::FixParser;
use pares_fix::time::stamp;
use pares_fix::writer::FixWriter;
use pares_os::clock::now_ns;
use pares_types::ClientRequest;

use super::messages::{self, Ends};
use super::numbers::{Numbers, Turn};

/// Bytes read at once. Less than a message of them is left behind each time, so there is always room.
const READ_BYTES: usize = 64 << 10;
/// Seconds: of a load both ends hear each other all the time.
const HEARTBEAT_S: u64 = 60;

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FixEnd {
    /// It is gone, or the gateway has said goodbye: another gateway may do.
    Lost(String),
    /// One end does not keep to the protocol.
    Broken(String),
}

/// A session on a connection.
#[derive(Debug)]
pub(super) struct FixEngine {
    pub(super) socket: TcpStream,
    parser: FixParser,
    /// Of a fixed length, beyond that of any message.
    input: Vec<u8>,
    /// How much of it came in and is not done with.
    filled: usize,
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
    /// Whether messages were filled as a gap.
    has_filled: bool,
}

impl FixEngine {
    /// Connects, and asks to be logged on under the session's numbers.
    ///
    /// # Errors
    /// If nobody listens there.
    pub(super) fn connect(
        address: SocketAddr,
        ends: &Ends,
        mut numbers: Numbers,
        credential: Option<&Credential>,
    ) -> Result<Self, (std::io::Error, Numbers)> {
        let connected = TcpStream::connect(address).and_then(|socket| {
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = match connected {
            Ok(socket) => socket,
            Err(error) => return Err((error, numbers)),
        };
        numbers.forget_early();
        let output = Vec::with_capacity(READ_BYTES);
        let mut end =
            End { ends: ends.clone(), numbers, output, is_logged_on: false, gaps: 0, has_filled: false };
        end.log_on(credential);
        Ok(Self { socket, parser: FixParser::default(), input: vec![0; READ_BYTES], filled: 0, end })
    }

    /// The numbers, for the next connection.
    pub(super) fn into_numbers(self) -> Numbers {
        self.end.numbers
    }

    pub(super) fn is_logged_on(&self) -> bool {
        self.end.is_logged_on
    }

    /// Buffers a request; `again` says that it may have been sent before.
    pub(super) fn send(&mut self, request: &ClientRequest, again: bool) {
        let Some(kind) = messages::msg_type(request) else { return };
        let now_ns = now_ns();
        self.end.message(kind, now_ns, |writer| {
            if again {
                writer.letter(tag::POSS_RESEND, b'Y');
            }
            messages::body(writer, request, now_ns);
        });
    }

    /// Sends what is buffered, as much of it as the connection takes.
    ///
    /// # Errors
    /// If the connection is gone.
    pub(super) fn flush(&mut self) -> Result<(), FixEnd> {
        let mut sent = 0;
        while sent < self.end.output.len() {
            match self.socket.write(&self.end.output[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(FixEnd::Lost(error.to_string())),
            }
        }
        self.end.output.drain(..sent);
        Ok(())
    }

    /// Hands out what has come in of the application, in the order of its numbers. Says how many messages came.
    ///
    /// # Errors
    /// If the connection is of no more use.
    pub(super) fn poll(&mut self, on: &mut dyn FnMut(&FixMessage<'_>)) -> Result<usize, FixEnd> {
        let is_gone = self.read()?;
        let Self { parser, input, filled, end, .. } = self;
        let (mut at, mut count) = (0, 0);
        loop {
            let (found, used) = cut(&input[at..*filled]);
            match found {
                Cut::Incomplete => break,
                Cut::Whole(frame) => end.on_frame(parser, &frame, on)?,
                Cut::Garbled | Cut::TooLong => return Err(FixEnd::Broken("garbled bytes came".into())),
            }
            count += 1;
            at += used;
        }
        input.copy_within(at..*filled, 0);
        *filled -= at;
        if is_gone { Err(FixEnd::Lost("the gateway closed the connection".into())) } else { Ok(count) }
    }

    /// Reads what is there; whether the connection is at its end.
    fn read(&mut self) -> Result<bool, FixEnd> {
        let read = self.socket.read(&mut self.input[self.filled..]);
        self.filled += read.as_ref().copied().unwrap_or(0);
        match read {
            Ok(count) => Ok(count == 0),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(FixEnd::Lost(error.to_string())),
        }
    }

    /// Takes how many gaps were asked for since this was last called.
    pub(super) fn take_gaps(&mut self) -> u64 {
        std::mem::take(&mut self.end.gaps)
    }

    /// Whether messages were filled as a gap since this was last called: requests may be among them.
    pub(super) fn take_filled(&mut self) -> bool {
        std::mem::take(&mut self.end.has_filled)
    }
}

impl End {
    fn message(&mut self, kind: &[u8], now_ns: u64, body: impl FnOnce(&mut FixWriter<'_>)) {
        let number = self.numbers.take_out();
        let mut writer = self.ends.begin(&mut self.output, kind, (number, now_ns));
        body(&mut writer);
        writer.finish();
    }

    fn log_on(&mut self, credential: Option<&Credential>) {
        let (now_ns, number) = (now_ns(), self.numbers.next_out.to_string());
        let proven =
            [&stamp(now_ns), number.as_bytes(), self.ends.sender.as_bytes(), self.ends.target.as_bytes()];
        let proven: Vec<u8> = proven.into_iter().flat_map(|field| [field, &[SOH]].concat()).collect();
        let proof = credential.map(|credential| credential.secret.prove(&proven));
        self.message(b"A", now_ns, |writer| {
            writer.letter(tag::ENCRYPT_METHOD, b'0');
            writer.number(tag::HEART_BT_INT, HEARTBEAT_S);
            if let Some(proof) = proof {
                let digits: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
                writer.number(tag::RAW_DATA_LENGTH, digits.len() as u64);
                writer.text(tag::RAW_DATA, digits.as_bytes());
            }
        });
    }

    fn on_frame(
        &mut self,
        parser: &mut FixParser,
        frame: &FixFrame<'_>,
        on: &mut dyn FnMut(&FixMessage<'_>),
    ) -> Result<(), FixEnd> {
        let message =
            parser.parse(&FIX44, frame).map_err(|_| FixEnd::Broken("a message is unreadable".into()))?;
        self.at_once(&message)?;
        match self.numbers.turn(&message) {
            Turn::Now => self.in_turn(&message, on)?,
            Turn::Early { asks: true } => self.ask_again(),
            Turn::Early { asks: false } | Turn::Past => {}
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
    fn at_once(&mut self, message: &FixMessage<'_>) -> Result<(), FixEnd> {
        match message.msg_type() {
            b"A" => self.is_logged_on = true,
            b"2" => self.fill(message.number(tag::BEGIN_SEQ_NO).unwrap_or(1)),
            b"5" => {
                let text = String::from_utf8_lossy(message.text(tag::TEXT).unwrap_or(b"")).into_owned();
                let is_ours = text.contains("too low");
                return Err(if is_ours { FixEnd::Broken(text) } else { FixEnd::Lost(text) });
            }
            _ => {}
        }
        Ok(())
    }

    fn in_turn(
        &mut self,
        message: &FixMessage<'_>,
        on: &mut dyn FnMut(&FixMessage<'_>),
    ) -> Result<(), FixEnd> {
        match message.msg_type() {
            b"0" | b"2" | b"4" | b"A" => {}
            b"1" => {
                let id = message.text(tag::TEST_REQ_ID).unwrap_or(b"").to_vec();
                self.message(b"0", now_ns(), |writer| writer.text(tag::TEST_REQ_ID, &id));
            }
            b"3" | b"j" => {
                let said = String::from_utf8_lossy(message.frame().bytes).replace('\x01', "|");
                return Err(FixEnd::Broken(format!("the gateway rejects a message: {said}")));
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
