//! Measures the log against raw writes on the disk of the current directory.
#![allow(clippy::print_stdout)] // that is what it is for

use pares_log::Durability;
use pares_log::bench::{BenchError, Comparison, Load, compare, round_trip};

fn main() -> Result<(), BenchError> {
    let dir = std::path::Path::new("measure.tmp");
    std::fs::create_dir_all(dir)?;
    let (os, disk) = (Durability::Os, Durability::Disk);
    let load = Load {
        record_bytes: 256,
        batch: 1,
        batches: 400_000,
        segment_bytes: 16 << 20,
        durability: os,
        pause_ns: 3_000,
    };
    print("append 256 B, os", &compare(dir, load)?);
    let load = Load { batch: 64, batches: 4_000, durability: disk, pause_ns: 100_000, ..load };
    print("64 x 256 B and sync, disk", &compare(dir, load)?);
    println!("round trip          {:?}", round_trip(dir, 64, 200_000)?);
    std::fs::remove_dir(dir)?;
    Ok(())
}

fn print(what: &str, found: &Comparison) {
    println!(
        "{what}\n  log   {:?}\n  raw   {:?}\n  rolls {:?} unprepared {}",
        found.log, found.raw, found.rolls, found.rolls_unprepared
    );
}
