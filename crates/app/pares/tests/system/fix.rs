//! `pares fix at-echo`, spoken to over TCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::PROGRAM;
use crate::common::process::Running;

/// An acceptor that ends with the test, and its address. The shell that starts it does `first`.
fn acceptor(first: &str) -> (Running, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\""), PROGRAM]);
    let mut acceptor = Running::start(shell.args(["fix", "at-echo", "--listen", "127.0.0.1:0"]));
    let line = acceptor.lines().next().unwrap();
    (acceptor, line.strip_prefix("listening on ").unwrap().to_owned())
}

/// Files that touch each way a connection ends, where shared data and Python are at hand; elsewhere says what is not.
#[test]
fn acceptance_files_pass_over_tcp() {
    let Some(folder) = pares_exercise::shared_data("data/fix") else {
        println!("skipped: no acceptance files of FIX; set PARES_SHARED to the folder of the shared data");
        return;
    };
    let (_acceptor, address) = acceptor(":");
    let (host, port) = address.split_once(':').unwrap();
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
    let (_acceptor, address) = acceptor(":");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"8=FIX.4.4\x019=99999999\x01", &[0; 100_000]] {
        let mut stream = TcpStream::connect(&address).unwrap();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        // The rest of the bytes was not read, so the system may say that the connection was reset.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    assert!(TcpStream::connect(&address).is_ok());
}

/// More peers than there are descriptors, which say nothing: the next one is served once they are gone.
#[test]
fn acceptor_out_of_descriptors_serves_again() {
    let (_acceptor, address) = acceptor("ulimit -n 24");
    let idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    drop(idle);
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    assert_eq!(stream.read_to_end(&mut answer).unwrap(), 0, "it was read, and the connection closed");
}
