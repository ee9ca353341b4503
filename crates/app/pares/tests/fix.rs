//! `pares fix at-echo`, spoken to over TCP.
#![allow(clippy::unwrap_used)] // a test

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// An acceptor that ends with the test.
struct Acceptor(Child, String);

impl Acceptor {
    fn start() -> Self {
        Self::start_by(&[])
    }

    /// Started by a program with these arguments, to which the acceptor's own are added.
    fn start_by(by: &[&str]) -> Self {
        let words = [by, &[env!("CARGO_BIN_EXE_pares")]].concat();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .args(["fix", "at-echo", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().strip_prefix("listening on ").unwrap().to_owned())
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files that touch each way a connection ends, where shared data and Python are at hand; elsewhere says what is not.
#[test]
fn acceptance_files_pass_over_tcp() {
    let Some(folder) = pares_exercise::shared_data("data/fix") else {
        println!("skipped: no acceptance files of FIX; set PARES_SHARED to the folder of the shared data");
        return;
    };
    let acceptor = Acceptor::start();
    let (host, port) = acceptor.1.split_once(':').unwrap();
    let names = [
        "1b_DuplicateIdentity",
        "2d_GarbledMessage",
        "2k_CompIDDoesNotMatchProfile",
        "8_OnlyApplicationMessages",
    ];
    let files =
        ["fix42", "fix44"].into_iter().flat_map(|version| names.map(|name| format!("{version}/{name}.def")));
    let mut command = Command::new("python3");
    command.arg(folder.join("fixat.py")).args([host, port]).args(files).current_dir(&folder);
    let Ok(output) = command.output() else {
        println!("skipped: no python3");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("passed 8 of 8"), "{said}");
}

#[test]
fn bytes_that_are_no_fix_end_the_connection_and_nothing_else() {
    let acceptor = Acceptor::start();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"8=FIX.4.4\x019=99999999\x01", &[0; 100_000]] {
        let mut stream = TcpStream::connect(&acceptor.1).unwrap();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        // The rest of the bytes was not read, so the system may say that the connection was reset.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    assert!(TcpStream::connect(&acceptor.1).is_ok());
}

/// More peers than there are descriptors, which say nothing: the next one is served once they are gone.
#[test]
fn acceptor_out_of_descriptors_serves_again() {
    let acceptor = Acceptor::start_by(&["sh", "-c", "ulimit -n 24; exec \"$@\"", "sh"]);
    let idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&acceptor.1).unwrap()).collect();
    drop(idle);
    let mut stream = TcpStream::connect(&acceptor.1).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    assert_eq!(stream.read_to_end(&mut answer).unwrap(), 0, "it was read, and the connection closed");
}
