//! Progress bars: on standard error, and only when somebody is looking.

use indicatif::{ProgressBar, ProgressBarIter, ProgressFinish, ProgressStyle};

/// A bar over `seconds` seconds, to be set in milliseconds.
#[must_use]
pub fn seconds(what: &'static str, seconds: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} [{bar:40}] {elapsed} ").expect("a constant template is valid");
    ProgressBar::new(seconds * 1_000).with_style(style).with_message(what)
}

/// A bar over `count` steps.
#[must_use]
pub fn steps(what: &'static str, count: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} {eta}")
        .expect("a constant template is valid");
    ProgressBar::new(count).with_style(style).with_message(what)
}

/// The items, with a bar that counts those that are done and is cleared in the end.
pub fn over<I: IntoIterator>(what: &'static str, items: I) -> ProgressBarIter<I::IntoIter> {
    let items = items.into_iter();
    let bar = steps(what, items.size_hint().0 as u64).with_finish(ProgressFinish::AndClear);
    bar.wrap_iter(items)
}

/// A bar over bytes.
#[must_use]
pub fn bytes(what: &'static str, count: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {bytes}/{total_bytes} {eta}")
        .expect("a constant template is valid");
    ProgressBar::new(count).with_style(style).with_message(what)
}

/// A bar over `count` steps, with how many of them there are a second.
#[must_use]
pub fn rate(what: &'static str, count: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} {per_sec} {eta}")
        .expect("a constant template is valid");
    ProgressBar::new(count).with_style(style).with_message(what)
}

/// How many bytes there are so far, and how many a second, where nobody knows how many there will be.
#[must_use]
pub fn growing(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bytes} {bytes_per_sec} {elapsed}")
        .expect("a constant template is valid");
    ProgressBar::no_length().with_style(style).with_message(what)
}
