//! Codes and words agree with their variants.

use super::*;
use crate::{List, OrderChange, OrderState, Peg, Role, SelfTrade};

/// `UnknownOrder` is `unknown_order`.
fn snake(variant: &str) -> String {
    let word = variant.chars().flat_map(|letter| [letter.is_uppercase().then_some('_'), Some(letter)]);
    word.flatten().collect::<String>().trim_start_matches('_').to_lowercase()
}

macro_rules! check {
    ($($name:ident)*) => {$(
        assert!($name::ALL.is_sorted_by_key(|one| *one as u8), stringify!($name));
        for one in $name::ALL {
            assert_eq!(($name::of(one as u8), one.word()), (Some(one), snake(&format!("{one:?}")).as_str()));
        }
    )*};
}

#[test]
fn everything_coded_stands_at_its_code() {
    check!(Reason Status CancelCause IncomingCause RestCause Phase Side Peg SelfTrade Role OrderChange OrderState List);
    assert_eq!(Status::ALL.map(|status| status as usize), [1, 2, 3, 4, 5, 6, 7]);
}
