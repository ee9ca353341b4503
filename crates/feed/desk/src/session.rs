//! One connection of a trader: the fate of its submissions, the bytes on their way to it, and whether it still reads.
//!
//! A server writes to a thousand of these. Each has a place in the stream, a little room for answers, and no queue. Answers come between
//! batches, never inside one. One that takes nothing for long is cut off: what waits for it in the kernel is old by then, and when it
//! comes back it continues where it was.

use crate::blocks::StreamCursor;
use crate::frame::{self, CutOff, FrameError, Split};

/// Room for answers, bytes.
const ANSWERS_BYTES_MAX: usize = 64 << 10;
/// A connection that takes nothing for so long is cut off, nanoseconds.
pub const STALL_NS: u64 = 5_000_000_000;

/// A connection's bytes.
#[derive(Clone, Debug)]
pub struct SessionBuffers {
    /// The longest payload it takes.
    payload_bytes_max: usize,
    input: Vec<u8>,
    read: usize,
    answers: Vec<u8>,
    answered: usize,
    /// Where it is in the stream, once it follows.
    pub cursor: Option<StreamCursor>,
    /// Since when it has not taken anything although there is something.
    stalled_ns: Option<u64>,
}

impl SessionBuffers {
    /// A connection on which nothing was said, and which takes frames of that payload at most.
    #[must_use]
    pub fn new(payload_bytes_max: usize) -> Self {
        Self {
            payload_bytes_max,
            input: Vec::new(),
            read: 0,
            answers: Vec::new(),
            answered: 0,
            cursor: None,
            stalled_ns: None,
        }
    }

    /// How many more bytes it takes before frames are [read](SessionBuffers::next_frame).
    #[must_use]
    pub fn room(&self) -> usize {
        let most = 2 * (self.payload_bytes_max + frame::HEAD_BYTES);
        most.saturating_sub(self.input.len() - self.read)
    }

    /// Bytes came.
    pub fn on_input(&mut self, bytes: &[u8]) {
        if self.read == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..self.read);
        }
        self.read = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Whether what came and is not read yet begins with that.
    #[must_use]
    pub fn begins_with(&self, bytes: &[u8]) -> bool {
        self.input[self.read..].starts_with(bytes)
    }

    /// What came and is not read yet, for who reads it otherwise.
    pub fn take_input(&mut self) -> Vec<u8> {
        let input = self.input.split_off(self.read);
        self.input.clear();
        self.read = 0;
        input
    }

    /// The next whole frame that came: its kind and payload.
    ///
    /// # Errors
    /// If what came is no frame.
    pub fn next_frame(&mut self) -> Result<Option<(u8, &[u8])>, FrameError> {
        let Some((kind, payload, rest)): Option<Split<'_>> =
            frame::split(&self.input[self.read..], self.payload_bytes_max)?
        else {
            return Ok(None);
        };
        self.read = self.input.len() - rest.len();
        Ok(Some((kind, payload)))
    }

    /// Answers something. Says whether there was room; without, the trader does not read its answers.
    #[must_use]
    pub fn answer(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        // Moved as a whole only now and then, so that a byte is moved once for each byte sent.
        if self.answered == self.answers.len() || self.answered >= ANSWERS_BYTES_MAX {
            self.answers.drain(..self.answered);
            self.answered = 0;
        }
        let fits = self.answers.len() - self.answered < ANSWERS_BYTES_MAX;
        if fits {
            write(&mut self.answers);
        }
        fits
    }

    /// What is to be sent next. Empty: nothing, unless the cursor is moved on.
    #[must_use]
    pub fn unsent(&self) -> &[u8] {
        let batch = self.cursor.as_ref().map_or(&[][..], StreamCursor::unsent);
        let answers = &self.answers[self.answered..];
        if self.is_inside_batch() || answers.is_empty() { batch } else { answers }
    }

    fn is_inside_batch(&self) -> bool {
        self.cursor.as_ref().is_some_and(StreamCursor::is_inside)
    }

    /// So many bytes of what was unsent went out; none: it takes nothing now.
    pub fn sent(&mut self, bytes: usize, now_ns: u64) {
        if bytes == 0 {
            self.stalled_ns.get_or_insert(now_ns);
            return;
        }
        self.stalled_ns = None;
        match &mut self.cursor {
            Some(cursor) if cursor.is_inside() || self.answered == self.answers.len() => cursor.sent(bytes),
            _ => self.answered += bytes,
        }
    }

    /// Whether it is to be cut off for taking nothing.
    #[must_use]
    pub fn cut_off(&self, now_ns: u64) -> Option<CutOff> {
        let stalled_ns = self.stalled_ns.map_or(0, |since| now_ns.saturating_sub(since));
        (stalled_ns > STALL_NS).then_some(CutOff::TooSlow)
    }

    /// Whether a last word would be understood: nothing is sent in part.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        !self.is_inside_batch() && (self.answered == 0 || self.answered == self.answers.len())
    }
}

#[cfg(test)]
mod tests {
    use pares_feed::publication::Session;

    use super::*;
    use crate::blocks::{BatchBuilder, StreamBatch};
    use crate::frame::{REQUEST_BYTES_MAX, kind};

    fn batch() -> StreamBatch {
        let mut builder = BatchBuilder::new(Session(*b"0000000001"), kind::BLOCK, 0);
        builder.push(b"item");
        builder.finish()
    }

    fn following() -> SessionBuffers {
        let mut session = SessionBuffers::new(REQUEST_BYTES_MAX);
        let mut cursor = StreamCursor::new(0);
        cursor.load(&batch());
        session.cursor = Some(cursor);
        session
    }

    #[test]
    fn frames_are_read_however_they_come_in() {
        let mut frames = Vec::new();
        (1..=3).for_each(|number| frame::write_submit(&mut frames, number, 1, b"x"));
        let mut session = SessionBuffers::new(REQUEST_BYTES_MAX);
        let mut read = 0;
        for byte in &frames {
            session.on_input(&[*byte]);
            while let Some((kind, payload)) = session.next_frame().unwrap() {
                read += 1;
                assert_eq!((kind, payload[0]), (kind::SUBMIT, read));
            }
        }
        assert_eq!(read, 3);
        assert!(session.room() > REQUEST_BYTES_MAX);
    }

    #[test]
    fn an_answer_comes_between_batches_and_never_inside_one() {
        let mut session = following();
        let whole = batch().frames.len();
        session.sent(3, 0);
        assert!(session.answer(|out| frame::write_ended(out, CutOff::TooSlow)));
        assert_eq!((session.unsent().len(), session.is_between_frames()), (whole - 3, false));
        session.sent(whole - 3, 0);
        assert_eq!((session.unsent()[4], session.is_between_frames()), (kind::ENDED, true));
        session.sent(session.unsent().len(), 0);
        assert!(session.unsent().is_empty());
    }

    #[test]
    fn an_answer_that_waits_comes_before_a_batch_that_has_not_begun() {
        let mut session = following();
        assert!(session.answer(|out| frame::write_ended(out, CutOff::None)));
        assert_eq!(session.unsent()[4], kind::ENDED);
        session.sent(session.unsent().len(), 0);
        assert_eq!(session.unsent()[4], kind::BLOCK);
    }

    #[test]
    fn stalled_reader_is_cut_off_any_byte_helps() {
        let mut session = following();
        session.sent(0, 1);
        session.sent(0, STALL_NS);
        assert_eq!(session.cut_off(STALL_NS + 1), None);
        assert_eq!(session.cut_off(STALL_NS + 2), Some(CutOff::TooSlow));
        session.sent(1, STALL_NS + 2);
        assert_eq!(session.cut_off(u64::MAX), None);
    }

    #[test]
    fn answers_that_nobody_reads_are_bounded() {
        let mut session = SessionBuffers::new(REQUEST_BYTES_MAX);
        let answered = (0..10_000).take_while(|_| session.answer(|out| out.extend([0; 100]))).count();
        assert_eq!(answered, ANSWERS_BYTES_MAX.div_ceil(100));
    }
}
