//! `pares web` as processes beside a system of the laboratory's: the program that ships, since who is killed must be what members meet.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pares_node::Layout;

use crate::error::LabError;
use crate::system::own_program;

/// How long one may take to say where it listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of the exchange over HTTP; it is killed when this is dropped.
pub struct WebProcess {
    child: Child,
    address: SocketAddr,
}

impl WebProcess {
    /// Starts one for the exchange in that directory; port 0 takes a free one.
    ///
    /// # Errors
    /// If the program `pares` is not beside this one, or it does not come up.
    pub fn start(layout: &Layout, listen: SocketAddr) -> Result<Self, LabError> {
        let program = own_program()?.with_file_name("pares");
        let told = layout.run().join(format!("web-of-laboratory-{}.addr", listen.port()));
        // It is there if one was started for that port before.
        let _ = std::fs::remove_file(&told);
        let mut command = Command::new(&program);
        command.arg("web").arg("--exchange").arg(layout.root()).args(["--listen", &listen.to_string()]);
        command.arg("--announce").arg(&told).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => LabError::Skipped(format!(
                "{} is missing: build both programs with `cargo build --release -p pares -p pares-lab`",
                program.display()
            )),
            _ => LabError::io(format!("starting {}", program.display()))(error),
        })?;
        // As `pares up` starts it.
        pares_os::scheduling::start_in_background(child.id());
        let mut server = Self { child, address: listen };
        server.address = server.announced(&told)?;
        Ok(server)
    }

    fn announced(&mut self, told: &Path) -> Result<SocketAddr, LabError> {
        let begun = Instant::now();
        loop {
            if let Some(address) =
                std::fs::read_to_string(told).ok().and_then(|text| text.trim().parse().ok())
            {
                return Ok(address);
            }
            if self.has_died() {
                return Err(LabError::Failed("a server of the exchange over HTTP ended as it began".into()));
            }
            if begun.elapsed() > PATIENCE {
                return Err(LabError::Failed("a server of the exchange over HTTP does not come up".into()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether its process has ended.
    pub fn has_died(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it (SIGKILL), and waits until it is gone.
    pub fn kill(&mut self) {
        // Both fail only for a process that is gone, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for WebProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
