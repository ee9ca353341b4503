//! `pares bench fix`: orders over FIX through a whole exchange, beside the exchange's own protocol and beside echoes.
//!
//! ```text
//!   codec                one NewOrderSingle parsed and validated, one ExecutionReport written
//!   the exchange         FIX and binary by turns: at 1,000/s, and as fast as it answers, one gateway
//!   an echo              our acceptor alone, QuickFIX/J's alone: at 1,000/s
//! ```
//! All of them get the same orders from the same generator, in pairs that trade with each other. Latency counts from the scheduled send time to the
//! first report of the order; each part has a system or process of its own.

mod codec;
mod echo;

use std::path::PathBuf;

use pares_load::{FixPlan, LabError, LabResult, LoadPlan, LoadProtocol, Rate, setup};
use pares_node::SystemConfig;
use pares_node::config::SignOnSetting;
use serde::Serialize;

use super::end_to_end;
use super::fronts::{self, Compared, RATE, Spoken};

pub(crate) use echo::serve;

/// Arguments of `pares bench fix`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    #[command(flatten)]
    load: fronts::Args,
    /// Where `cargo xtask setup` has built QuickFIX/J; without it there is no figure of it
    #[arg(long, default_value = "target/quickfixj")]
    quickfixj: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    /// Nanoseconds to cut, parse and validate a NewOrderSingle.
    new_order_ns: f64,
    /// Nanoseconds to write an ExecutionReport.
    report_ns: f64,
    #[serde(flatten)]
    compared: Compared,
    /// At 1,000/s, our acceptor alone, which sends each order back.
    echo_p50_us: f64,
    /// The same of QuickFIX/J's acceptor; null where that is not built.
    quickfixj_echo_p50_us: Option<f64>,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a system does not come up, or something was lost.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    let times = [
        ("NewOrderSingle: cut, parse, validate", figures.new_order_ns),
        ("ExecutionReport: write", figures.report_ns),
    ];
    let what = ("FIX", &args.load, args.json);
    fronts::tell(what, &figures, (times, &figures.compared), || print_echoes(args, &figures))
}

fn measure(args: &Args) -> Result<Figures, LabError> {
    let (new_order_ns, report_ns) = codec::measure();
    let mut compared = Compared::measure(&args.load, &config(), Spoken::Fix)?;
    let own = echo::Echo::own(args.load.connections)?;
    let echo = at_echo(args, &own)?;
    drop(own);
    let quickfixj = echo::Echo::quickfixj(&args.quickfixj, args.load.connections)?;
    let quickfixj = quickfixj.map(|echo| at_echo(args, &echo)).transpose()?;
    [&echo].into_iter().chain(&quickfixj).for_each(|echo| compared.count(echo));
    Ok(Figures {
        new_order_ns,
        report_ns,
        compared,
        echo_p50_us: echo.p50_us,
        quickfixj_echo_p50_us: quickfixj.map(|echo| echo.p50_us),
    })
}

/// The exchange as it ships: sessions prove who they are, venues and recorders are two.
fn config() -> SystemConfig {
    SystemConfig {
        durability: pares_node::config::DurabilitySetting::Os,
        sign_on: SignOnSetting::Required,
        instruments: (1..=10).map(setup::instrument).collect(),
        ..SystemConfig::default()
    }
}

fn at_echo(args: &Args, echo: &echo::Echo) -> Result<end_to_end::Figures, LabError> {
    let plan = LoadPlan::new(&config(), vec![echo.address], Rate::PerSecond(RATE));
    fronts::load(&args.load, LoadPlan { protocol: LoadProtocol::Fix(FixPlan::default()), ..plan }, || {})
}

fn print_echoes(args: &Args, figures: &Figures) {
    pares_text::say!("no exchange, the order comes straight back, at 1,000/s");
    pares_text::say!("  this session layer                     {:>8.1} us", figures.echo_p50_us);
    match figures.quickfixj_echo_p50_us {
        Some(p50_us) => pares_text::say!("  QuickFIX/J                             {p50_us:>8.1} us"),
        None => pares_text::say!(
            "  QuickFIX/J is not in {}: `cargo xtask setup` builds it where Java and Maven are",
            args.quickfixj.display()
        ),
    }
}
