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
use pares_text::grouped;
use serde::Serialize;

use super::end_to_end;
use super::fronts::{self, RATE, Spoken};

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
    /// Highest sustained rate over FIX, one gateway.
    orders_per_s: u64,
    /// At 1,000/s over FIX, microseconds.
    p50_us: f64,
    p99_us: f64,
    /// The same three over the exchange's own protocol.
    binary_orders_per_s: u64,
    binary_p50_us: f64,
    binary_p99_us: f64,
    /// At 1,000/s, our acceptor alone, which sends each order back.
    echo_p50_us: f64,
    /// The same of QuickFIX/J's acceptor; null where that is not built.
    quickfixj_echo_p50_us: Option<f64>,
    /// Orders without an answer, in all parts.
    lost: u64,
    /// Orders that were not taken in, in all parts.
    rejected: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a system does not come up, or something was lost.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    if args.json {
        pares_text::say!("{}", serde_json::to_string(&figures).expect("plain numbers"));
    } else {
        print(args, &figures);
    }
    match (figures.lost, figures.rejected) {
        (0, 0) => Ok(()),
        (lost, rejected) => Err(LabError::Failed(format!("{lost} lost, {rejected} rejected"))),
    }
}

fn measure(args: &Args) -> Result<Figures, LabError> {
    let (new_order_ns, report_ns) = codec::measure();
    let parts = [
        (Spoken::Fix, Rate::PerSecond(RATE)),
        (Spoken::Binary, Rate::PerSecond(RATE)),
        (Spoken::Fix, Rate::Max),
        (Spoken::Binary, Rate::Max),
    ];
    let [fix, binary, fix_max, binary_max] = parts.map(|part| fronts::exchange(&args.load, config(), part));
    let (fix, binary, fix_max, binary_max) = (fix?, binary?, fix_max?, binary_max?);
    let own = echo::Echo::own(args.load.connections)?;
    let echo = at_echo(args, &own)?;
    drop(own);
    let quickfixj = echo::Echo::quickfixj(&args.quickfixj, args.load.connections)?;
    let quickfixj = quickfixj.map(|echo| at_echo(args, &echo)).transpose()?;
    let all = [&fix, &binary, &fix_max, &binary_max, &echo].into_iter().chain(&quickfixj);
    let (lost, rejected) =
        all.fold((0, 0), |(lost, rejected), one| (lost + one.lost, rejected + one.rejected));
    Ok(Figures {
        new_order_ns,
        report_ns,
        orders_per_s: fix_max.throughput,
        p50_us: fix.p50_us,
        p99_us: fix.p99_us,
        binary_orders_per_s: binary_max.throughput,
        binary_p50_us: binary.p50_us,
        binary_p99_us: binary.p99_us,
        echo_p50_us: echo.p50_us,
        quickfixj_echo_p50_us: quickfixj.map(|echo| echo.p50_us),
        lost,
        rejected,
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

fn print(args: &Args, figures: &Figures) {
    let Figures { p50_us, p99_us, binary_p50_us, binary_p99_us, .. } = figures;
    pares_text::say!("the codec, one message of each kind in the nearest cache");
    pares_text::say!("  NewOrderSingle: cut, parse, validate   {:>8.0} ns", figures.new_order_ns);
    pares_text::say!("  ExecutionReport: write                 {:>8.0} ns", figures.report_ns);
    pares_text::say!("the whole exchange, one gateway, {} connections", args.load.connections);
    pares_text::say!("  at 1,000/s, order to report over FIX   {p50_us:>8.1} us (p99 {p99_us:.1})");
    pares_text::say!(
        "              over its own protocol      {binary_p50_us:>8.1} us (p99 {binary_p99_us:.1})"
    );
    pares_text::say!("  highest rate over FIX                  {:>8}/s", grouped(figures.orders_per_s));
    pares_text::say!(
        "               over its own protocol     {:>8}/s",
        grouped(figures.binary_orders_per_s)
    );
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
