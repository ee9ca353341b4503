//! What `pares bench checkpoint` gave, in words.

use pares_text::grouped;

use super::Figures;

/// Prints what the benchmark gave, for people.
pub(super) fn print(figures: &Figures) {
    pares_text::say!(
        "{:.1} MiB of state: {} orders entered in {:.1} s",
        figures.state_mib,
        grouped(figures.orders),
        figures.fill_s
    );
    pares_text::say!("latency us            p50       p99");
    let row = |what, p50: f64, p99: f64| pares_text::say!("{what:<16} {p50:>8.1} {p99:>9.1}");
    row("quiet", figures.quiet_p50_us, figures.quiet_p99_us);
    row("checkpoint", figures.checkpoint_p50_us, figures.checkpoint_p99_us);
    row("join", figures.join_p50_us, figures.join_p99_us);
    pares_text::say!(
        "{} checkpoints seen, {:.1} MiB handed out, {:.0} ms each (median); {} not stored",
        figures.checkpoints,
        figures.checkpoint_mib,
        figures.checkpoint_ms,
        figures.checkpoint_failures
    );
    pares_text::say!(
        "a killed venue had caught up after {:.0} ms (median); meanwhile the host kept {:.0} ms of the processors",
        figures.join_ms,
        figures.join_stolen_ms
    );
    pares_text::say!("requests lost    {}", figures.lost);
}
