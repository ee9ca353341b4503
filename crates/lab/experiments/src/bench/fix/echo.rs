//! Acceptors without an exchange behind them, each in a process of its own: what the session layer costs alone.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pares_acceptor::acceptor::EchoAcceptor;
use pares_acceptor::echo;
use pares_acceptor::sockets::AcceptorSockets;
use pares_fix::dictionary::FIX44;
use pares_fix::session::FixSettings;
use pares_load::{LabError, LabResult, own_program};

use crate::bench::peer;

/// Sends each order back to sessions `M1-1` and so on; is killed when it is dropped.
pub(super) struct Echo {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Echo {
    /// The session layer of this exchange.
    pub(super) fn own(sessions: u32) -> Result<Self, LabError> {
        let mut command = Command::new(own_program()?);
        command.args(["bench", "peer", "fix-echo"]);
        Self::start(command, sessions)
    }

    /// QuickFIX/J, if it was built there and there is Java.
    pub(super) fn quickfixj(built: &Path, sessions: u32) -> Result<Option<Self>, LabError> {
        let is_built = built.join("lib").is_dir() && built.join("classes/pares/Echo.class").exists();
        let java = || Command::new("java").arg("--version").stdout(Stdio::null()).status();
        if !is_built || !java().is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let mut command = Command::new("java");
        command.args(["-cp", &format!("{0}/classes:{0}/lib/*", built.display()), "pares.Echo"]);
        Self::start(command, sessions).map(Some)
    }

    fn start(mut command: Command, sessions: u32) -> Result<Self, LabError> {
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let address = free.map_err(LabError::io("looking for a free port"))?;
        let child = command
            .args([address.port().to_string(), sessions.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(LabError::io("starting an echo"))?;
        let mut echo = Self { child, address };
        let (mut line, out) = (String::new(), echo.child.stdout.take().expect("its output was asked for"));
        BufReader::new(out).read_line(&mut line).map_err(LabError::io("waiting for an echo"))?;
        match line.trim() {
            "ready" => Ok(echo),
            _ => Err(LabError::Failed("an echo did not start".into())),
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // Both fail only for a process that is gone, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays the echo of this exchange's session layer until killed.
///
/// # Errors
/// If the port cannot be had.
pub(crate) fn serve(port: u16, sessions: u32) -> LabResult {
    let settings = (1..=sessions).map(|session| FixSettings {
        application_types: echo::Echo::TYPES,
        begins_anew: true,
        ..FixSettings::new(&FIX44, "PARES", &format!("M{session}-1"))
    });
    let listening = AcceptorSockets::listen(([127, 0, 0, 1], port).into(), EchoAcceptor::new(settings));
    let mut sockets = listening.map_err(LabError::io("listening"))?;
    peer::ready()?;
    sockets.run().map_err(LabError::io("serving FIX"))
}
