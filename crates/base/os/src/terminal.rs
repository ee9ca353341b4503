//! Waiting for the keyboard of a terminal that may be closed meanwhile.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits for a key, at most `wait`, less than a second, and says whether the terminal was closed meanwhile: crossterm 0.29 reads the end of a closed
/// terminal again and again and never returns.
///
/// # Errors
/// If the system does not say.
pub fn is_gone_after(wait: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) => Ok(fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
