//! How a node takes its turns on the processor.
//!
//! With more processes than cores the scheduler lets each run for a slice, a few milliseconds by default, and
//! a process that wakes with work waits for the end of another's slice. A node does microseconds of work per wake-up,
//! so it asks for short slices ([`short_slices`]): under EEVDF (Linux 6.12 and later) that also lets it preempt
//! processes with long ones. It takes no more of the processor by this, only sooner, and needs no privilege.
//!
//! A node that is starting is the opposite: milliseconds of work that no process waits for. [`Background`] lets it run
//! only where the others leave room.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Resource, getpriority_process, getrlimit};

/// Slices a node asks for.
const SLICE_NS: u64 = 200_000;
const NORMAL: u32 = 0;
const ROUND_ROBIN: u32 = 2;
const IDLE: u32 = 5;
/// Which of a thread's clocks: the lowest three bits of `clockid_t`, the rest is the complement of its id.
const CLOCK_OF_THREAD: libc::clockid_t = 6;

/// `struct sched_attr` of `sched_setattr(2)`, its first version.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    sched_policy: u32,
    sched_flags: u64,
    sched_nice: i32,
    sched_priority: u32,
    /// For [`NORMAL`]: the slice in nanoseconds; 0 leaves the choice to the kernel, and old kernels ignore it.
    sched_runtime: u64,
    sched_deadline: u64,
    sched_period: u64,
}
const _: () = assert!(size_of::<SchedAttr>() == 48);

/// Sets policy and slice of a thread, keeping its nice value. Says whether the kernel took it.
fn set(thread: i32, policy: u32, slice_ns: u64) -> bool {
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        sched_policy: policy,
        sched_priority: u32::from(policy == ROUND_ROBIN),
        sched_nice: getpriority_process(None).unwrap_or(0),
        sched_runtime: slice_ns,
        ..SchedAttr::default()
    };
    // SAFETY: the kernel reads `size` bytes of a live, fully initialised struct laid out as it expects, and writes
    // nothing; a thread id that is gone is an error, and flags are 0 as required.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(&attr), 0) == 0 }
}

/// Asks for short slices for the calling thread. Says whether the kernel took it.
pub fn short_slices() -> bool {
    set(0, NORMAL, SLICE_NS)
}

/// Gives the calling thread the normal policy: a thread inherits the background from the one that starts it. Says whether the
/// kernel took it.
pub fn ordinary() -> bool {
    set(0, NORMAL, 0)
}

/// Has the calling thread run before all ordinary ones whenever it has work: for one that does microseconds of work and sleeps, and for which
/// many wait. Takes a privilege (`CAP_SYS_NICE`). Says whether the kernel took it.
pub fn real_time() -> bool {
    set(0, ROUND_ROBIN, 0)
}

/// How long a thread of this process has had the processor. The kernel counts what the thread is at just now too; what it says in
/// `/proc` is as of the last tick, milliseconds ago.
///
/// # Errors
/// If there is no such thread.
pub fn time_on_processor(thread: i32) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one live timespec and nothing else; a clock that is not there is an error.
    match unsafe { libc::clock_gettime(!thread << 3 | CLOCK_OF_THREAD, &raw mut time) } {
        0 => Ok(Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts a process just started into the background from its first instruction: loading a program costs milliseconds
/// too. It leaves by itself, through [`Background`]. Says whether it was put there.
pub fn start_in_background(process: u32) -> bool {
    i32::try_from(process).is_ok_and(|process| may_leave() && set(process, IDLE, 0))
}

/// Takes a process out of the background if its first thread is still there: on a busy machine even loading a program takes
/// seconds in it. Says whether it was there.
pub fn end_background(process: u32) -> bool {
    let Ok(process) = i32::try_from(process) else { return false };
    // SAFETY: the call reads its one integer; a process that is gone is an error.
    let policy = unsafe { libc::sched_getscheduler(process) };
    u32::try_from(policy).is_ok_and(|policy| policy == IDLE) && set(process, NORMAL, 0)
}

/// The calling thread runs only when no other wants the processor, until this is dropped or `patience` is over:
/// on a machine that is never idle it would otherwise never come to an end.
pub struct Background {
    thread: i32,
    over: Arc<AtomicBool>,
}

impl Background {
    /// Enters the background, if leaving it again is allowed: that takes a privilege, and catching up fast
    /// beats staying slow for ever.
    #[must_use]
    pub fn enter(patience: Duration) -> Option<Self> {
        let thread = rustix::thread::gettid().as_raw_pid();
        // The thread that ends it must not be in the background itself, where a thread begins if the one that starts it is there.
        if !may_leave() || !ordinary() {
            return None;
        }
        let background = Self { thread, over: Arc::new(AtomicBool::new(false)) };
        let over = Arc::clone(&background.over);
        let watch = move || {
            std::thread::sleep(patience);
            if !over.swap(true, Ordering::AcqRel) {
                set(thread, NORMAL, 0);
            }
        };
        // Without the watcher the thread could starve: then rather not enter at all.
        std::thread::Builder::new().name("patience".into()).spawn(watch).ok()?;
        // If its patience is over by now, leaving comes too late: it leaves again.
        if !set(thread, IDLE, 0) || background.over.load(Ordering::Acquire) {
            set(thread, NORMAL, 0);
            return None;
        }
        Some(background)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            set(self.thread, NORMAL, 0);
        }
    }
}

/// Whether this process may go back to normal from the idle policy.
fn may_leave() -> bool {
    // The limit is given as 20 - nice; the superuser is above it.
    let floor = 20 - getrlimit(Resource::Nice).current.map_or(40, |limit| limit.min(40) as i32);
    rustix::process::geteuid().is_root() || getpriority_process(None).is_ok_and(|nice| nice >= floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> String {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit(' ').nth(11).unwrap().to_owned()
    }

    #[test]
    fn short_slices_are_granted_to_anybody() {
        assert!(short_slices());
    }

    #[test]
    fn a_thread_has_had_the_processor_for_as_long_as_it_ran() {
        let thread = rustix::thread::gettid().as_raw_pid();
        let before = time_on_processor(thread).unwrap();
        let begun = std::time::Instant::now();
        let mut ran = before;
        while ran < before + Duration::from_millis(5) {
            ran = time_on_processor(thread).unwrap();
        }
        assert!(ran - before <= begun.elapsed() + Duration::from_millis(1));
        assert!(time_on_processor(1).is_err(), "it is of another process");
    }

    #[test]
    fn a_thread_comes_back_from_the_background() {
        let before = policy();
        let background = Background::enter(Duration::from_secs(60));
        if background.is_some() {
            assert_eq!(policy(), IDLE.to_string());
        }
        drop(background);
        assert_eq!(policy(), before);
    }

    #[test]
    fn a_process_in_the_background_is_taken_out_of_it_once() {
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        if start_in_background(sleeper.id()) {
            assert!(end_background(sleeper.id()));
        }
        assert!(!end_background(sleeper.id()));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }

    #[test]
    fn what_a_thread_starts_in_the_background_can_leave_it() {
        let before = policy();
        let background = Background::enter(Duration::from_secs(60));
        let helper = || ordinary().then(policy);
        assert_eq!(std::thread::spawn(helper).join().unwrap(), Some(before));
        drop(background);
    }

    #[test]
    fn patience_has_an_end() {
        let before = policy();
        let background = Background::enter(Duration::from_millis(1));
        let begun = std::time::Instant::now();
        while policy() != before && begun.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        assert_eq!(policy(), before);
        drop(background);
    }
}
