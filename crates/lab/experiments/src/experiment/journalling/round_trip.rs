//! Round trips through two logs: one asks, one answers, both spin.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pares_log::{Config, Offset, ReadError, Reader, Writer};
use pares_os::clock::mono_ns;

use super::contest::{BenchError, Distribution, histogram};

/// Measures round trips to another process or thread that runs [`echo`] on the same directory.
/// Ends early when the echo is `gone`. The logs are removed.
///
/// # Errors
/// [`BenchError`] when the disk refuses.
pub fn ask(
    dir: &Path,
    record_bytes: usize,
    rounds: usize,
    gone: impl FnMut() -> bool,
) -> Result<Distribution, BenchError> {
    let (ping, pong) = (dir.join("ping"), dir.join("pong"));
    let (mut writer, _) = Writer::open(&ping, round_trip_config())?;
    let measured = match await_log(&pong) {
        Some(reader) => exchange(&mut writer, &mut reader?, &vec![0x5a; record_bytes], rounds, gone),
        None => Ok(Distribution::default()),
    };
    drop(writer);
    std::fs::remove_dir_all(ping)?;
    std::fs::remove_dir_all(pong)?;
    measured
}

/// Answers every record until told to stop.
///
/// # Errors
/// [`BenchError`] when the disk refuses.
pub fn echo(dir: &Path, stop: &AtomicBool) -> Result<(), BenchError> {
    let (mut answers, _) = Writer::open(&dir.join("pong"), round_trip_config())?;
    let Some(requests) = await_log(&dir.join("ping")) else { return Ok(()) };
    let mut requests = requests?;
    while !stop.load(Ordering::Relaxed) {
        match requests.next()? {
            Some(request) => {
                answers.append(request.payload)?;
                answers.publish();
            }
            None => std::hint::spin_loop(),
        }
    }
    Ok(())
}

fn round_trip_config() -> Config {
    Config::default().segment_bytes(16 << 20)
}

/// A reader at the start of a log that another thread or process is about to create; `None` if it does not.
fn await_log(dir: &Path) -> Option<Result<Reader, ReadError>> {
    const PATIENCE_NS: u64 = 10_000_000_000;
    let start = mono_ns();
    while mono_ns() - start < PATIENCE_NS {
        match Reader::open(dir, Offset::START) {
            Err(ReadError::NotYet { .. }) => std::thread::yield_now(),
            reader => return Some(reader),
        }
    }
    None
}

fn exchange(
    writer: &mut Writer,
    reader: &mut Reader,
    payload: &[u8],
    rounds: usize,
    mut gone: impl FnMut() -> bool,
) -> Result<Distribution, BenchError> {
    let mut trips = histogram();
    for _ in 0..rounds {
        let start = mono_ns();
        writer.append(payload)?;
        writer.publish();
        let mut looks = 0u32;
        while reader.next()?.is_none() {
            std::hint::spin_loop();
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1 << 20) && gone() {
                return Ok(Distribution::of(&trips));
            }
        }
        trips.saturating_record(mono_ns() - start);
    }
    Ok(Distribution::of(&trips))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_trip_is_counted() {
        let (dir, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let measured = std::thread::scope(|scope| {
            let echo = scope.spawn(|| echo(dir.path(), &stop));
            let measured = ask(dir.path(), 64, 100, || echo.is_finished());
            stop.store(true, Ordering::Relaxed);
            echo.join().unwrap().unwrap();
            measured
        });
        assert_eq!(measured.unwrap().count, 100);
    }
}
