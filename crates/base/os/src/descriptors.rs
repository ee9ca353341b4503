//! How many files and connections a process may have open.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Whether a file was not opened because this process, or the host, has as many open as it may have. No file was touched.
pub fn are_out(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error())).contains(&error.raw_os_error())
}

/// The limit on descriptors, raised as far as the system allows; `None` if there is none.
pub fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// How many of `wanted` connections that many descriptors are enough for, `reserve` left out; at least one.
pub fn connections_within(limit: Option<u64>, reserve: u64, wanted: usize) -> usize {
    let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(reserve).max(1));
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_a_reserve_of_descriptors() {
        let limits = [Some(0), Some(1_024), Some(10_127), Some(10_128), None];
        let taken = limits.map(|limit| connections_within(limit, 128, 10_000));
        assert_eq!(taken, [1, 896, 9_999, 10_000, 10_000]);
    }

    #[test]
    fn a_limit_is_raised_to_the_most_that_the_system_allows() {
        let most = getrlimit(Resource::Nofile).maximum;
        assert_eq!((raise_limit(), getrlimit(Resource::Nofile).current), (most, most));
    }
}
