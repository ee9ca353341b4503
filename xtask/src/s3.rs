//! `cargo xtask s3`: the tests of archives, in a bucket instead of directories.
//!
//! Archives at `s3://` must be tested against a server of that protocol, not against a stand-in in the same process. The server is
//! moto's (from PyPI), installed in its own folder under `target`, on a loopback port; the tests are those of directories.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::report::Report;
use crate::{cargo, setup, target_dir};

/// The server, at the version that was tried.
const SERVER: &str = "moto[server]==5.2.1";
const BUCKET: &str = "pares-test";

/// Runs the tests of archives, those that the arguments name, and the one of a whole system.
///
/// # Errors
/// If there is no server, or a test fails.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    setup::check()?;
    let server = Server::start()?;
    for mut tests in [server.tests(), server.system()] {
        let status = tests.args(arguments).status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("the tests ended with {status}"));
        }
    }
    Ok(())
}

/// The tests of archives as a step of `--all`, without the whole system; left out, with the reason, where no server can be installed.
pub(crate) fn test(report: &mut Report) {
    match Server::start() {
        Ok(server) => _ = report.command("archives in a bucket", &mut server.tests()),
        Err(why) => report.leave_out(format!("archives in a bucket: {why}")),
    }
}

/// The server's program, installed if it is not there yet.
fn program() -> Result<PathBuf, String> {
    let dir = target_dir().join("moto");
    let program = dir.join("bin").join("moto_server");
    if setup::answers(Command::new(&program).arg("--help")) {
        return Ok(program);
    }
    println!("setup: installing {SERVER} in {}", dir.display());
    let made = setup::answers(Command::new("python3").args(["-m", "venv"]).arg(&dir));
    if made && setup::answers(Command::new(dir.join("bin").join("pip")).args(["install", "--quiet", SERVER]))
    {
        return Ok(program);
    }
    Err(format!("setup: {SERVER} cannot be installed; it needs Python 3 with venv, and PyPI"))
}

/// A server with an empty bucket; dropping this ends it.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Result<Self, String> {
        let program = program()?;
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        // A port that was free a moment ago.
        let address =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).map_err(failed)?;
        let mut command = Command::new(&program);
        command.args(["-H", "127.0.0.1", "-p", &address.port().to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(failed)?;
        let server = Self { process, address };
        for _ in 0..300 {
            if server.make_bucket().is_ok_and(|answer| answer.contains(" 200 ")) {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("{} did not make a bucket within 30 s", program.display()))
    }

    /// The tests of archives.
    fn tests(&self) -> Command {
        self.of(&["-p", "pares-archive", "--features", "s3", "--"])
    }

    /// The test of a whole system that archives, drops and reads again.
    fn system(&self) -> Command {
        self.of(&["-p", "pares", "--features", "s3", "--test", "system", "--", "what_is_archived"])
    }

    fn of(&self, which: &[&str]) -> Command {
        let mut command = cargo();
        command.args(["test", "--locked"]).args(which);
        command.env("PARES_TEST_BUCKET", format!("s3://{BUCKET}")).envs([
            ("AWS_ENDPOINT", format!("http://{}", self.address).as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ]);
        command
    }

    /// The first line of its answer.
    fn make_bucket(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        let host = self.address;
        write!(stream, "PUT /{BUCKET} HTTP/1.0\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.lines().next().unwrap_or_default().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_before = self.process.kill();
        let _nothing_to_wait_for = self.process.wait();
    }
}
