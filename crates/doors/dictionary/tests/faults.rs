//! A dictionary with a fault is refused while it is built, by its file and with the reason.

const SOUND: &str = include_str!("sound.txt");

/// Why a dictionary is refused in which the first text is the second.
fn refused(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from} is there");
    pares_dictionary::tables(&[("own.txt", &SOUND.replacen(from, to, 1))]).expect_err("a fault")
}

#[test]
fn a_sound_dictionary_becomes_tables() {
    let code = pares_dictionary::tables(&[("own.txt", SOUND)]).expect("no fault");
    assert!(
        code.contains("pub static OWN: FixDictionary") && code.contains("DEPTH_MAX: usize = 2;"),
        "{code}"
    );
}

#[test]
fn a_tag_that_stands_twice_is_refused() {
    assert_eq!(refused("field 55", "field 8"), "own.txt: line 10: field 8 stands twice");
    assert_eq!(refused("group 386", "group 146"), "own.txt: line 14: group 146 stands twice");
    assert_eq!(
        refused("V MarketDataRequest 146*", "V A 146* 146"),
        "own.txt: message V: a field stands twice"
    );
    assert_eq!(refused("336 TradingSessionID", "336 Symbol"), "own.txt: Symbol names two tags");
}

#[test]
fn group_and_count_must_come_together() {
    let why = "own.txt: group 146: no field 146 of the form NUMINGROUP counts it";
    assert_eq!(refused("NoRelatedSym NUMINGROUP", "NoRelatedSym INT"), why);
    assert_eq!(refused("group 386 336\n", ""), "own.txt: field 386 counts a group that is not there");
}

#[test]
fn a_group_that_may_begin_with_a_third_field_is_refused() {
    let why = "own.txt: line 13: group 146: an entry begins with one of 2 fields at most";
    assert_eq!(refused("group 146 55|386", "group 146 55|386|336"), why);
}

#[test]
fn an_unknown_type_is_refused() {
    assert_eq!(refused("Symbol CHAR A B", "Symbol TEXT"), "own.txt: line 10: TEXT: no such form");
    assert_eq!(refused("types 0 V", "types 0"), "own.txt: message V: not among the types");
}

#[test]
fn data_without_a_length_are_refused() {
    assert_eq!(refused("data 93:89 348:349", ""), "own.txt: field 89: no line says its length");
    assert_eq!(refused("data 93:89", "data 94:89"), "own.txt: data 89: 94 is no field");
    assert_eq!(refused("348:349", "348:89"), "own.txt: line 15: data 89 stand twice");
    assert_eq!(refused("348:349", "349"), "own.txt: line 15: 349: not a pair of tags");
    assert_eq!(refused("348:349", "8:336"), "own.txt: data 336: the field has another form");
}

#[test]
fn wrong_required_or_foreign_field_is_refused() {
    assert_eq!(refused("Request 146*", "Request 146* 99*"), "own.txt: message V: 99 is no field");
    assert_eq!(refused("trailer 93 89 10*", "trailer 93 89"), "own.txt: field 10 is of no message");
    assert_eq!(
        refused("field 55", "field 957"),
        "own.txt: field 957: a tag is the standard's, or from 20001 on"
    );
}

#[test]
fn a_group_within_itself_is_refused() {
    assert_eq!(
        refused("group 386 336", "group 386 336 146"),
        "own.txt: group 146 holds itself, through [146, 386]"
    );
}

#[test]
fn a_line_that_is_broken_is_refused() {
    assert_eq!(
        refused("field 55 Symbol CHAR A B", "field 55"),
        "own.txt: line 10: `field 55` is no line of a dictionary"
    );
    assert_eq!(refused("field 55", "field x"), "own.txt: line 10: x: not a tag");
    assert_eq!(refused("version FIX.4.4\n", ""), "own.txt: it lacks its version, fields or messages");
    let why = "own.txt: line 1: `<fix` is no line of a dictionary";
    assert_eq!(pares_dictionary::tables(&[("own.txt", "<fix\n")]).expect_err("another form"), why);
}
