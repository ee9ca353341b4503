//! What a process says whose log takes nothing: the disk has no room, and that is what it has to say.
//!
//! It comes through a pipe to who watches the process, who keeps the end of it. Nobody waits at either end: what the pipe does not hold is lost.

use std::io::{self, PipeReader, PipeWriter, Read};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// At most this is kept, and read at once.
const BYTES_MAX: usize = 4_096;
/// So often at once: what a pipe holds.
const READS_MAX: usize = 16;

/// The end of what a process says.
#[derive(Debug)]
pub(super) struct Heard {
    pipe: PipeReader,
    end: Vec<u8>,
}

impl Heard {
    /// And where the process writes.
    pub(super) fn open() -> io::Result<(Self, PipeWriter)> {
        let (pipe, writer) = io::pipe()?;
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        fcntl_setfl(&writer, fcntl_getfl(&writer)? | OFlags::NONBLOCK)?;
        Ok((Self { pipe, end: Vec::new() }, writer))
    }

    /// Makes room in the pipe.
    pub(super) fn listen(&mut self) {
        let mut bytes = [0; BYTES_MAX];
        for _ in 0..READS_MAX {
            let Ok(read @ 1..) = self.pipe.read(&mut bytes) else { return };
            self.end.extend_from_slice(&bytes[..read]);
            self.end.drain(..self.end.len().saturating_sub(BYTES_MAX));
        }
    }

    pub(super) fn end(&self) -> &[u8] {
        &self.end
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_end_of_what_is_said_is_kept_and_nobody_waits() {
        let (mut heard, mut writer) = Heard::open().unwrap();
        heard.listen();
        assert_eq!(heard.end(), b"");
        while writer.write(&[b'x'; BYTES_MAX]).is_ok() {}
        heard.listen();
        writer.write_all(b"last").unwrap();
        heard.listen();
        assert!(heard.end().len() == BYTES_MAX && heard.end().ends_with(b"xlast"));
    }
}
