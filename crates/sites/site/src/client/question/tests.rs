//! What a question without an answer ends with.

use pares_wice::SiteId;

use super::*;
use crate::protocol::Horizon;

#[test]
fn read_in_vain_says_why_although_a_site_was_silent_once() {
    let (read, change) = (Ask::Latest(1, Horizon::default(), vec![]), Ask::Remove(1, SiteId::new(0, 0)));
    for (ask, says_why) in [(&read, true), (&change, false)] {
        let mut question = Question::new(ask, false);
        let elsewhere =
            Reply { to: 1, code: Code::Elsewhere, horizon: Horizon::default(), body: b"new".to_vec() };
        assert!(matches!(question.heard(elsewhere), Ok(Heard::Elsewhere)));
        question.failed(true, io::ErrorKind::TimedOut.into(), 1).unwrap();
        let error = question.in_vain(Duration::from_secs(30)).to_string();
        assert_eq!(error.contains("new"), says_why, "{error}");
    }
}
