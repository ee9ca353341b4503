//! Progress bars: on standard error, and only when a person is looking.

use indicatif::{ProgressBar, ProgressBarIter, ProgressFinish, ProgressStyle};

fn bar(what: &'static str, count: Option<u64>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a constant template is valid");
    count.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style).with_message(what)
}

/// A bar over `seconds` seconds, to be set in milliseconds.
#[must_use]
pub fn seconds(what: &'static str, seconds: u64) -> ProgressBar {
    bar(what, Some(seconds * 1_000), "{msg} [{bar:40}] {elapsed} ")
}

/// A bar over `count` steps.
#[must_use]
pub fn steps(what: &'static str, count: u64) -> ProgressBar {
    bar(what, Some(count), "{msg} [{bar:40}] {pos}/{len} {eta}")
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
    bar(what, Some(count), "{msg} [{bar:40}] {bytes}/{total_bytes} {eta}")
}

/// A bar over `count` steps, with how many of them there are a second.
#[must_use]
pub fn rate(what: &'static str, count: u64) -> ProgressBar {
    bar(what, Some(count), "{msg} [{bar:40}] {pos}/{len} {per_sec} {eta}")
}

/// How many bytes there are so far, and how many a second, where it is not known how many there will be.
#[must_use]
pub fn growing(what: &'static str) -> ProgressBar {
    bar(what, None, "{msg} {bytes} {bytes_per_sec} {elapsed}")
}
