//! Orders over FIX: what the codec costs, what a whole exchange gives, and what session layers alone do, ours and QuickFIX/J's.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use pares_acceptor::acceptor::EchoAcceptor;
use pares_acceptor::echo;
use pares_acceptor::sockets::AcceptorSockets;
use pares_fix::dictionary::FIX44;
use pares_fix::session::FixSettings;
use pares_load::{FixPlan, LabError, LabResult, LoadPlan, LoadProtocol, Rate};
use serde::Serialize;

use super::{Args, Compared, RATE, codec};
use crate::bench::end_to_end;
use crate::bench::peer::{self, PeerProcess};

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    /// Nanoseconds to cut, parse and validate a NewOrderSingle.
    new_order_ns: f64,
    /// Nanoseconds to write an ExecutionReport.
    report_ns: f64,
    #[serde(flatten)]
    pub(super) compared: Compared,
    /// At 1,000/s, our acceptor alone, which sends each order back.
    echo_p50_us: f64,
    /// The same of QuickFIX/J's acceptor; null where that is not built.
    quickfixj_echo_p50_us: Option<f64>,
}

pub(super) fn measure(args: &Args) -> Result<Figures, LabError> {
    let (new_order_ns, report_ns) = codec::measure();
    let mut compared = Compared::measure(args)?;
    let address = peer::free_address()?;
    let ports = [address.port().to_string(), args.connections().to_string()];
    let own = PeerProcess::start(&["fix-echo", &ports[0], &ports[1]])?;
    let echo = at_echo(args, address)?;
    drop(own);
    let quickfixj = match quickfixj(args) {
        Some(mut command) => {
            command.args(&ports).stderr(Stdio::null());
            let _killed_in_the_end = PeerProcess::ready(&mut command)?;
            Some(at_echo(args, address)?)
        }
        None => {
            let built = args.quickfixj.display();
            pares_text::aside!(
                "QuickFIX/J is not in {built}: `cargo xtask setup` builds it where Java and Maven are"
            );
            None
        }
    };
    [&echo].into_iter().chain(&quickfixj).for_each(|echo| compared.count(echo));
    let (echo_p50_us, quickfixj_echo_p50_us) = (echo.p50_us, quickfixj.map(|echo| echo.p50_us));
    Ok(Figures { new_order_ns, report_ns, compared, echo_p50_us, quickfixj_echo_p50_us })
}

/// An acceptor without an exchange behind it sends each order of sessions `M1-1` and so on back.
fn at_echo(args: &Args, address: SocketAddr) -> Result<end_to_end::Figures, LabError> {
    let plan = LoadPlan::new(&args.config(), vec![address], Rate::PerSecond(RATE));
    super::load(args, LoadPlan { protocol: LoadProtocol::Fix(FixPlan::default()), ..plan }, || {})
}

/// QuickFIX/J's, if it was built there and there is Java.
fn quickfixj(args: &Args) -> Option<Command> {
    let built = &args.quickfixj;
    let is_built = built.join("lib").is_dir() && built.join("classes/pares/Echo.class").exists();
    let java = || Command::new("java").arg("--version").stdout(Stdio::null()).status();
    (is_built && java().is_ok_and(|status| status.success())).then(|| {
        let mut command = Command::new("java");
        command.args(["-cp", &format!("{0}/classes:{0}/lib/*", built.display()), "pares.Echo"]);
        command
    })
}

/// Plays the echo of this exchange's session layer until killed.
///
/// # Errors
/// If the port cannot be had.
pub(crate) fn serve_echo(port: u16, sessions: u32) -> LabResult {
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
