//! What proves a secret, found in what comes in on a connection, so that a tap does not have it.
//!
//! Who reads a tap must not be able to sign on as a member. Bytes come in pieces, and a secret may lie across two of them, so this walks along with
//! the stream. It looks at lengths where there are lengths, and at fields only where there are none (FIX): an order costs it next to nothing.
//!
//! | door | blanked |
//! |---|---|
//! | binary | the 64 bytes of a Proof; the key in a ChangeRegister |
//! | FIX | the values of RawData (96), Password (554) and NewPassword (925), in every message |
//! | OUCH | the ten characters of the password of a Login Request |
//!
//! Bytes that are not the door's protocol end the connection there; they are given as they came.

mod fix;

use pares_ouch::PACKET_MAX;
use pares_port::{SecretScan, TapDoor};
use pares_wire::frame::{ChangeRegister, FRAME_MAX, HEAD_BYTES, Message, Proof};

use fix::Fix;

/// Where the value of a ChangeRegister lies in its frame, and where its entry code lies, behind it.
const VALUE: std::ops::Range<usize> = HEAD_BYTES + 8..HEAD_BYTES + 40;
/// The password in a packet with a Login Request, length and type included.
const PASSWORD: std::ops::Range<usize> = 9..19;

/// Where in its peer's stream a connection is.
#[derive(Clone, Copy, Debug)]
pub struct Blank(Walk);

#[derive(Clone, Copy, Debug)]
enum Walk {
    Binary(Framed<HEAD_BYTES>),
    Ouch(Framed<3>),
    Fix(Fix),
    /// It is not the protocol.
    Lost,
}

impl Blank {
    /// At the beginning of a stream.
    #[must_use]
    pub fn new(door: TapDoor) -> Self {
        Self(match door {
            TapDoor::Binary => Walk::Binary(Framed::default()),
            TapDoor::Ouch => Walk::Ouch(Framed::default()),
            TapDoor::Fix => Walk::Fix(Fix::default()),
        })
    }

    /// Continues over these bytes, and counts those of them that are to be blanked, or are.
    pub(crate) fn count(&mut self, bytes: &[u8]) -> u64 {
        let mut count = 0;
        self.pass(bytes, &mut |secret| count += secret.len() as u64);
        count
    }
}

impl SecretScan for Blank {
    fn pass(&mut self, bytes: &[u8], blank: &mut dyn FnMut(std::ops::Range<usize>)) {
        let goes_on = match &mut self.0 {
            Walk::Binary(framed) => framed.pass(bytes, of_binary, blank),
            Walk::Ouch(framed) => framed.pass(bytes, of_ouch, blank),
            Walk::Fix(fix) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if fix.next(*byte) {
                        blank(at..at + 1);
                    }
                }
                true
            }
            Walk::Lost => true,
        };
        if !goes_on {
            self.0 = Walk::Lost;
        }
    }
}

/// A stream of frames whose length stands in their first bytes.
#[derive(Clone, Copy, Debug)]
struct Framed<const HEAD: usize> {
    head: [u8; HEAD],
    /// Bytes of the frame that have passed.
    passed: usize,
}

impl<const HEAD: usize> Default for Framed<HEAD> {
    fn default() -> Self {
        Self { head: [0; HEAD], passed: 0 }
    }
}

/// The length of a frame with that head, and what of it is secret; `None` if there is no such frame.
type Look<const HEAD: usize> = fn(&[u8; HEAD]) -> Option<(usize, std::ops::Range<usize>)>;

impl<const HEAD: usize> Framed<HEAD> {
    /// Says whether it is still the protocol.
    fn pass(
        &mut self,
        bytes: &[u8],
        look: Look<HEAD>,
        blank: &mut dyn FnMut(std::ops::Range<usize>),
    ) -> bool {
        let mut at = 0;
        while at < bytes.len() {
            if self.passed < HEAD {
                self.head[self.passed] = bytes[at];
                self.passed += 1;
                at += 1;
                if self.passed < HEAD {
                    continue;
                }
            }
            let Some((length, secret)) = look(&self.head) else { return false };
            let end = (at + length - self.passed).min(bytes.len());
            // Where in these bytes the frame begins, if that were among them.
            let (from, to) = (secret.start.max(self.passed), secret.end.min(self.passed + end - at));
            if from < to {
                blank(at + from - self.passed..at + to - self.passed);
            }
            self.passed += end - at;
            at = end;
            if self.passed == length {
                self.passed = 0;
            }
        }
        true
    }
}

fn of_binary(head: &[u8; HEAD_BYTES]) -> Option<(usize, std::ops::Range<usize>)> {
    let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
    let secret = match head[2] {
        Proof::KIND => HEAD_BYTES..FRAME_MAX,
        ChangeRegister::KIND => VALUE,
        _ => 0..0,
    };
    (HEAD_BYTES..=FRAME_MAX).contains(&length).then_some((length, secret))
}

fn of_ouch(head: &[u8; 3]) -> Option<(usize, std::ops::Range<usize>)> {
    let length = usize::from(u16::from_be_bytes([head[0], head[1]]));
    let secret = if head[2] == b'L' { PASSWORD } else { 0..0 };
    (1..=PACKET_MAX).contains(&length).then_some((2 + length, secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_fix::SOH;
    use pares_wire::frame;

    /// The stream with its secrets blanked, however it comes in pieces.
    fn blanked(door: TapDoor, stream: &[u8]) -> Vec<u8> {
        let mut results = [1, 2, 7, stream.len()].map(|at_once| {
            let mut blank = Blank::new(door);
            let mut out = Vec::new();
            for piece in stream.chunks(at_once) {
                let mut piece = piece.to_vec();
                let mut secret = Vec::new();
                blank.pass(&piece, &mut |range| secret.push(range));
                secret.into_iter().for_each(|range| piece[range].fill(b'*'));
                out.extend(piece);
            }
            out
        });
        results.sort();
        assert_eq!(results[0], results[3], "pieces make no difference");
        results[0].clone()
    }

    #[test]
    fn of_the_binary_protocol_a_proof_and_a_key_are_blanked() {
        let (first, second) = ([7; 32], [8; 32]);
        let mut stream = Vec::new();
        frame::write(&mut stream, &frame::SignOn { member: 7.into(), ..frame::SignOn::default() });
        let proof_at = stream.len() + HEAD_BYTES;
        frame::write(&mut stream, &Proof { first, second });
        let key_at = stream.len() + HEAD_BYTES + 8;
        let change =
            ChangeRegister { value: [9; 32], member: 5.into(), entry: 4, ..ChangeRegister::default() };
        frame::write(&mut stream, &change);
        frame::write(&mut stream, &frame::Ping { token: 1.into() });
        let mut expected = stream.clone();
        expected[proof_at..proof_at + 64].fill(b'*');
        expected[key_at..key_at + 32].fill(b'*');
        assert_eq!(blanked(TapDoor::Binary, &stream), expected);
    }

    #[test]
    fn of_fix_data_and_passwords_are_blanked_and_nothing_else() {
        let given =
            b"8=FIX.4.4|9=99|35=A|554=secret|95=5|96=a|b=c|925=new|10=000|8=FIX.4.4|35=D|196=x|96=|44=95|";
        let wanted =
            b"8=FIX.4.4|9=99|35=A|554=******|95=5|96=*****|925=***|10=000|8=FIX.4.4|35=D|196=x|96=|44=95|";
        let soh =
            |text: &[u8]| text.iter().map(|byte| if *byte == b'|' { SOH } else { *byte }).collect::<Vec<_>>();
        assert_eq!(blanked(TapDoor::Fix, &soh(given)), soh(wanted));
    }

    /// One of FIX whose BodyLength and sum are right.
    fn message(body: &str) -> String {
        format!("8=FIX.4.4|9={}|{body}10=123|", body.len())
    }

    #[test]
    fn fix_data_field_ends_with_its_message() {
        let order = message("35=D|34=2|44=1.00|");
        let cases = [
            // In a message that is right but for the length of its data.
            (message("35=0|95=8192|96=secret|"), message("35=0|95=8192|96=******|")),
            (message("35=0|95=8192|96=|"), message("35=0|95=8192|96=|")),
            (message("35=0|95=8192|"), message("35=0|95=8192|")),
            // BodyLength is too small, too great, or not there.
            (
                "8=FIX.4.4|9=9|35=0|95=8192|96=secret|10=000|".into(),
                "8=FIX.4.4|9=9|35=0|95=8192|96=******|10=000|".into(),
            ),
            ("8=FIX.4.4|95=8192|96=secret|".into(), "8=FIX.4.4|95=8192|96=*******".into()),
            // No message is around it.
            ("95=8192|96=".into(), "95=8192|96=".into()),
            ("95=8192|96=a88=F".into(), "95=8192|96=*88=F".into()),
            ("554=secret".into(), "554=******".into()),
        ];
        let soh = |text: &str| text.replace('|', "\x01").into_bytes();
        for (given, wanted) in cases {
            let blanked = blanked(TapDoor::Fix, &soh(&format!("{given}{order}{order}")));
            assert_eq!(
                blanked.escape_ascii().to_string(),
                soh(&format!("{wanted}{order}{order}")).escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn of_ouch_the_password_is_blanked() {
        let stream = b"\0\x2fL7     password      1-0                   1\0\x04U123";
        let wanted = b"\0\x2fL7     **********    1-0                   1\0\x04U123";
        assert_eq!(blanked(TapDoor::Ouch, stream), wanted);
    }

    #[test]
    fn what_is_not_the_protocol_is_passed_over() {
        for door in [TapDoor::Binary, TapDoor::Ouch, TapDoor::Fix] {
            for stream in [&[0; 300][..], &[255; 300]] {
                assert_eq!(blanked(door, stream), stream);
            }
        }
    }
}
