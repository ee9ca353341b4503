//! Codes and words agree with their variants.

use super::*;

/// `UnknownOrder` is `unknown_order`.
fn snake(variant: &str) -> String {
    let word = variant.chars().flat_map(|letter| [letter.is_uppercase().then_some('_'), Some(letter)]);
    word.flatten().collect::<String>().trim_start_matches('_').to_lowercase()
}

#[test]
fn every_reason_stands_at_its_code() {
    assert!(Reason::ALL.is_sorted_by_key(|reason| *reason as u8));
    for reason in Reason::ALL {
        assert_eq!(Reason::of(reason as u8), Some(reason));
        assert_eq!(reason.word(), snake(&format!("{reason:?}")));
    }
}

#[test]
fn every_status_and_cause_stands_at_its_code() {
    for (index, status) in Status::ALL.into_iter().enumerate() {
        assert_eq!(status as usize, index + 1);
        assert_eq!(status.word(), snake(&format!("{status:?}")));
    }
    for cause in CancelCause::ALL {
        assert_eq!(CancelCause::of(cause as u8), Some(cause));
        assert_eq!(cause.word(), snake(&format!("{cause:?}")));
    }
}
