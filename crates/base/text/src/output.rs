//! Standard output of a command: the one place that writes it.
//!
//! Output that nobody takes any more (`pares stat | head -1`) ends a command: it unwinds, so that what the command started is
//! stopped and removed, and says nothing.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

/// What shells say of a program that a closed pipe ended: 128 and the number of SIGPIPE.
const CLOSED: u8 = 141;

/// What a command unwinds with whose output cannot be written.
struct Unwritable(std::io::Error);

/// Prints a text and ends the line. Unwinds to [`run`] if it cannot.
pub fn print(text: &str) {
    print_line(format_args!("{}", text.trim_end()));
}

/// As `println!`, but for output that cannot be written: see [`run`].
#[macro_export]
macro_rules! say {
    () => { $crate::output::print_line(::core::format_args!("")) };
    ($($words:tt)*) => { $crate::output::print_line(::core::format_args!($($words)*)) };
}

/// As [`say!`](crate::say), for programs that run until they are stopped: a line that cannot be written is lost, and nothing else.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => { $crate::output::tell_line(::core::format_args!($($words)*)) };
}

/// A line on standard error, beside what programs read. One that cannot be written is lost, and nothing else: standard error may be a
/// file on a full disk, where `eprintln!` would panic.
#[macro_export]
macro_rules! aside {
    ($($words:tt)*) => { $crate::output::aside_line(::core::format_args!($($words)*)) };
}

/// Says a line on standard error if that can be done. For [`aside!`](crate::aside).
pub fn aside_line(line: Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints a line if that can be done. For [`tell!`](crate::tell).
pub fn tell_line(line: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Prints a line. For [`say!`](crate::say).
pub fn print_line(line: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
        drop(out);
        resume_unwind(Box::new(Unwritable(error)));
    }
}

/// Runs a command, which may [`print()`]. Ends with 141 if its output was closed, and with 1 if it could not be written otherwise (a
/// full disk behind it).
pub fn run(command: impl FnOnce() -> ExitCode) -> ExitCode {
    let panic = match catch_unwind(AssertUnwindSafe(command)) {
        Ok(code) => return code,
        Err(panic) => panic,
    };
    match panic.downcast::<Unwritable>() {
        Ok(error) if error.0.kind() == ErrorKind::BrokenPipe => ExitCode::from(CLOSED),
        Ok(error) => {
            // If that cannot be written either, there is nobody to tell.
            aside_line(format_args!("printing: {}", error.0));
            ExitCode::FAILURE
        }
        Err(panic) => resume_unwind(panic),
    }
}
