//! The published acceptance files of a FIX engine, spoken to the acceptor without sockets and in virtual time.
//!
//! One file is one test: a line says what the tester sends, what it expects, and who connects and disconnects. Waiting for a
//! message lets time pass up to the acceptor's next deadline, so the files about heartbeats take no longer than the others.
//! Texts are compared to the letter.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // clippy lets tests unwrap and print, but not what they share

mod compare;
mod tester;

use std::path::PathBuf;

use pares_exercise::shared_data;
use tester::Tester;

/// The files of a folder, where the shared data is at hand.
fn files(folder: &str) -> Option<Vec<PathBuf>> {
    let Some(folder) = shared_data(&format!("data/fix/{folder}")) else {
        println!("skipped: no acceptance files of FIX; set PARES_SHARED to the folder of the shared data");
        return None;
    };
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    Some(files)
}

fn all_pass(folder: &str, count: usize) {
    let Some(files) = files(folder) else { return };
    let failed: Vec<String> = files.iter().filter_map(|file| run(file).err()).collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), files.len(), failed.join("\n"));
    assert_eq!(files.len(), count);
}

fn run(file: &PathBuf) -> Result<(), String> {
    let mut tester = Tester::default();
    let text = std::fs::read(file).unwrap();
    let mut lines = text.split(|byte| *byte == b'\n').enumerate();
    let passed = lines.try_for_each(|(index, line)| {
        tester.line(line).map_err(|why| format!("{} line {}: {why}", file.display(), index + 1))
    });
    passed.and_then(|()| tester.finish().map_err(|why| format!("{}: {why}", file.display())))
}

#[test]
fn all_files_for_fix_4_2_pass() {
    all_pass("fix42", 58);
}

#[test]
fn all_files_for_fix_4_4_pass() {
    all_pass("fix44", 59);
}
