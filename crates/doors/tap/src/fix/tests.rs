//! What became of requests, by what was said. The same against the gateway's door: the fuzz target `tap_fix`.

use super::*;

const NOW_NS: u64 = 1_790_000_000_000_000_000;
const HEADER: &str = "49=M7|52=20260921-14:13:20|56=PARES|";
const AGAIN: &str = "43=Y|122=20260921-14:13:20|";

/// `D 2 11=1|`: a message that came in, with that number; `<` before one that went out, `!` behind one whose sum is wrong.
fn message(text: &str) -> TapedMessage {
    let (is_in, is_right) = (!text.starts_with('<'), !text.ends_with('!'));
    let mut words = text.trim_matches(['<', '!']).splitn(3, ' ');
    let (kind, number) = (words.next().unwrap(), words.next().unwrap());
    let fields = words.next().unwrap_or_default();
    let rest = match kind {
        "A" => "98=0|108=30|",
        "D" => "55=ACME|54=1|60=20260921-14:13:20|40=2|38=1|44=1.00|",
        _ => "",
    };
    let body = format!("35={kind}|34={number}|{HEADER}{fields}{rest}");
    let message = format!("8=FIX.4.4|9={}|{body}", body.len()).replace('|', "\x01");
    let sum = message.bytes().fold(u8::from(!is_right), u8::wrapping_add);
    let bytes = format!("{message}10={sum:03}\x01").into_bytes();
    TapedMessage { wall_ns: NOW_NS, mono_ns: 0, is_in, at: 0, bytes, is_whole: true }
}

/// Of these messages, the names of requests that the session takes, of those that it does not, and of those that wait to the end.
fn became<'a>(messages: impl IntoIterator<Item = &'a str>) -> [Vec<u64>; 3] {
    let (mut talk, mut names) = (FixTalk::default(), [const { Vec::new() }; 3]);
    let mut said = |one: TapedMeaning| match one.role {
        TapedRole::Request => names[0].extend(one.name),
        TapedRole::Ignored => names[1].extend(one.name),
        TapedRole::Waiting => names[2].extend(one.name),
        role => assert_eq!(role, TapedRole::Other),
    };
    messages.into_iter().for_each(|text| talk.take(message(text), &mut said));
    talk.finish(&mut said);
    names
}

/// The same behind a Logon.
fn looked_at(messages: &[&str]) -> [Vec<u64>; 3] {
    became(["A 1", "<A 1"].into_iter().chain(messages.iter().copied()))
}

#[test]
fn wrong_checksum_or_old_number_ignored_resend_is_not() {
    let again = |number: u64, name: u64| format!("D {number} {AGAIN}11={name}|");
    let (filled, old, older) = (again(3, 2), again(2, 1), again(1, 9));
    let said = ["D 2 11=1|", "D 3 11=2|!", "D 4 11=3|", "<2 2 7=3|16=0|", &filled, &old, &older];
    assert_eq!(looked_at(&said), [vec![1, 2, 3], vec![2, 1, 9], vec![]]);
}

#[test]
fn what_the_session_rejects_moves_its_numbers_as_at_the_gateway() {
    // Counted, and without effect: such a message has no Symbol.
    assert_eq!(looked_at(&["4 2 123=Y|36=1000000|55=X|", "D 3 11=1|"]), [vec![1], vec![], vec![]]);
    // Not counted.
    let order = "D 2 11=1|";
    assert_eq!(looked_at(&["4 2 123=N|36=1000000|55=X|", order]), [vec![1], vec![], vec![]]);
    // A request that is rejected is counted, also if it ends in no field.
    for rejected in ["D 2 11=9|36=1|", "D 2 11=9|foo|"] {
        assert_eq!(looked_at(&[rejected, "D 3 11=1|"]), [vec![1], vec![9], vec![]]);
    }
}

#[test]
fn numbers_go_on_behind_a_gap_fill_that_came_early() {
    let early = format!("4 3 {AGAIN}123=Y|36=9|");
    let said = [&early[..], "<2 2 7=2|16=0|", "0 2", "D 9 11=1|"];
    assert_eq!(looked_at(&said), [vec![1], vec![], vec![]]);
    assert_eq!(looked_at(&["4 2 123=Y|36=9|", "D 9 11=2|"]), [vec![2], vec![], vec![]]);
}

#[test]
fn where_numbers_begin_follows_from_the_answer_to_the_logon() {
    let again = |number: u64, name: u64| format!("D {number} {AGAIN}11={name}|");
    let (late, filled, fill) = (again(29, 2), again(30, 1), format!("4 31 {AGAIN}123=Y|36=40|"));
    // The Logon was ahead of what the gateway had, and keeps its place.
    for [logon, answer] in [["A 40", "<A 7"], ["A 40 789=7|", "<A 7 789=30|"]] {
        let mut said =
            vec![logon, answer, "<2 8 7=30|16=0|", &filled, &late, "D 41 11=3|", &fill, "D 42 11=4|"];
        if logon.contains("789") {
            said.remove(2);
        }
        assert_eq!(became(said), [vec![1, 3, 4], vec![2], vec![]]);
    }
    // What came before the answer waits for it.
    assert_eq!(became(["A 40", "D 41 11=1|", "<A 7", "<0 8"]), [vec![1], vec![], vec![]]);
    assert_eq!(became(["A 40", "D 41 11=1|", "<5 1"]), [vec![], vec![], vec![1]]);
    // A later gap is none before the Logon.
    assert_eq!(became(["A 40", "<A 7", "D 42 11=1|", "<2 8 7=41|16=0|", "D 41 11=2|"])[0], [2, 1]);
}

#[test]
fn what_follows_a_gap_waits_until_it_is_filled() {
    let gap = ["D 3 11=1|", "D 4 11=2|", "<2 2 7=2|16=0|"];
    assert_eq!(looked_at(&gap), [vec![], vec![], vec![1, 2]]);
    let filled = [&gap[..], &["D 2 11=3|", "D 5 11=4|"]].concat();
    assert_eq!(looked_at(&filled), [vec![3, 1, 2, 4], vec![], vec![]]);
    let reset = [&gap[..], &["4 3 36=3|"]].concat();
    assert_eq!(looked_at(&reset), [vec![1, 2], vec![], vec![]]);
    let reset = [&gap[..], &["4 1 36=9|", "D 9 11=3|"]].concat();
    assert_eq!(looked_at(&reset), [vec![3], vec![1, 2], vec![]]);
}

#[test]
fn a_logon_that_resets_the_numbers_clears_what_waits() {
    let said = ["D 5 11=1|", "<2 2 7=2|16=0|", "A 1 141=Y|", "<A 1 141=Y|"];
    let on = ["D 2 11=2|", "D 3 11=3|", "D 4 11=4|", "D 5 11=5|"];
    assert_eq!(looked_at(&[&said[..], &on].concat()), [vec![2, 3, 4, 5], vec![1], vec![]]);
}

#[test]
fn behind_a_logout_nothing_is_looked_at() {
    assert_eq!(looked_at(&["<5 2", "D 2 11=1|"]), [vec![], vec![1], vec![]]);
    // The session ends by itself: a number that is too low.
    assert_eq!(looked_at(&["D 1 11=1|", "D 2 11=2|"]), [vec![], vec![1, 2], vec![]]);
}

#[test]
fn behind_missing_or_blanked_bytes_nothing_is_known() {
    let unsure = |said: &[&str], loses: bool| {
        let (mut talk, mut names) = (FixTalk::default(), Vec::new());
        let mut told = |one: TapedMeaning| names.extend(one.name.filter(|_| one.role == TapedRole::Unsure));
        said.iter().for_each(|text| talk.take(message(text), &mut told));
        if loses {
            talk.lose(&mut told);
        }
        talk.take(message("D 7 11=9|"), &mut told);
        names
    };
    assert_eq!(unsure(&["A 1", "<A 1"], true), [9]);
    assert_eq!(unsure(&["A 1", "D 2 11=1|"], true), [1, 9]);
    // Whether its sum was right is not known, so nothing is known of the numbers.
    assert_eq!(unsure(&["A 1", "<A 1", "D 2 11=1|554=***|!"], false), [1, 9]);
    // But what was answered was right.
    assert!(unsure(&["A 1 95=3|96=***|!", "<A 1"], false).is_empty());
}

#[test]
fn a_sending_time_that_is_right_by_a_moment_is_not_judged() {
    let at = |wall_ns: u64| {
        let (mut talk, mut roles) = (FixTalk::default(), Vec::new());
        let mut said = |one: TapedMeaning| roles.extend((one.kind == "D").then_some(one.role));
        ["A 1", "<A 1"].iter().for_each(|text| talk.take(message(text), &mut said));
        talk.take(TapedMessage { wall_ns, ..message("D 2 11=1|") }, &mut said);
        roles
    };
    let off_ns = 120_000_000_000;
    assert_eq!(at(NOW_NS + off_ns - 2 * TURN_NS_MAX), [TapedRole::Request]);
    assert_eq!(at(NOW_NS + off_ns + 5), [TapedRole::Unsure]);
    assert_eq!(at(NOW_NS + off_ns + 2 * TURN_NS_MAX), [TapedRole::Ignored]);
}
