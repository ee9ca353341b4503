//! Written trading days in `tests/scenarios`: every request followed by all that it caused.
//!
//! A file is its own expectation: the indented lines are replaced by what happens. After a wanted
//! change of the rules run the tests with `UPDATE_EXPECT=1` and review the difference.

use crate::Other;
use crate::script::Script;
use expect_test::expect_file;
use pares_book::{Book, NaiveBook};

/// The file with every indented line as this book would have it.
fn trace<B: Book>(text: &str) -> String {
    let mut script = Script::<B>::new();
    let mut trace = String::new();
    for line in text.lines().filter(|line| !line.starts_with(' ')) {
        trace.push_str(&format!("{line}\n"));
        if !line.is_empty() && !line.starts_with('#') {
            script.say(line).iter().for_each(|said| trace.push_str(&format!("    {said}\n")));
        }
    }
    trace
}

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("../scenarios/", stringify!($name), ".txt"));
                let expected = expect_file![concat!("../scenarios/", stringify!($name), ".txt")];
                expected.assert_eq(&trace::<NaiveBook>(text));
                assert_eq!(trace::<Other>(text), trace::<NaiveBook>(text));
            }
        )*
    };
}

scenarios!(a_quiet_morning, orders_that_never_rest, amends, mass_cancels, refusals, a_full_book);
