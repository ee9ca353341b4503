//! Cases beyond the acceptance files: groups in groups, data, fields that nobody knows.

use super::*;
use crate::dictionary::{FIX42, FIX44, tag};
use crate::framing::{Cut, cut};
use crate::writer::FixWriter;
use FixRejectReason::{InvalidTag, TagNotDefined, TagOutOfOrder};

const HEADER: &str = "34=2|49=A|52=20260921-12:00:00|56=B|";
const ORDER: &str = "11=a|55=X|54=1|60=20260921-12:00:00|40=1|38=1|";

fn bytes(msg_type: &str, fields: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, "FIX.4.4", msg_type.as_bytes());
    writer.fields(fields.replace('|', "\x01").as_bytes());
    writer.finish();
    bytes
}

/// What is wrong with a message of that type.
fn fault(msg_type: &str, fields: &str) -> Option<(FixRejectReason, i32)> {
    let bytes = bytes(msg_type, &(HEADER.to_owned() + fields));
    let (Cut::Whole(frame), _) = cut(&bytes) else { panic!("a message") };
    let mut parser = FixParser::default();
    let fault = parser.parse(&FIX44, &frame).unwrap().fault();
    fault.map(|fault| (fault.reason, fault.tag.unwrap_or_default()))
}

fn order(fields: &str) -> Option<(FixRejectReason, i32)> {
    fault("D", &(ORDER.to_owned() + fields))
}

#[test]
fn group_count_and_first_fields_are_enforced() {
    assert_eq!(order("453=2|448=p|447=D|452=1|448=q|452=3|"), None);
    assert_eq!(order("453=0|59=0|"), None);
    assert_eq!(order("453=2|448=p|59=0|"), Some((FixRejectReason::GroupCountIncorrect, 453)));
    assert_eq!(order("453=1|448=p|448=q|"), Some((FixRejectReason::GroupCountIncorrect, 453)));
    assert_eq!(order("453=1|447=D|448=p|"), Some((FixRejectReason::GroupOutOfOrder, 447)));
    assert_eq!(order("453=1|448=p|452=1|452=2|"), Some((FixRejectReason::TagAppearsTwice, 452)));
    assert_eq!(order("448=p|"), Some((FixRejectReason::TagNotDefined, 448)), "outside of its group");
}

#[test]
fn groups_lie_in_groups() {
    assert_eq!(order("453=2|448=p|802=2|523=s|803=1|523=t|448=q|452=3|59=0|"), None);
    assert_eq!(order("453=1|448=p|802=2|523=s|59=0|"), Some((FixRejectReason::GroupCountIncorrect, 802)));
    assert_eq!(order("453=1|448=p|802=1|523=s|452=3|"), None, "the outer entry goes on");
}

#[test]
fn data_may_hold_anything_and_is_as_long_as_it_says() {
    assert_eq!(fault("A", "98=0|108=1|95=7|96=a|1=|10|"), None);
    assert_eq!(fault("A", "98=0|108=1|95=9|96=abc|"), Some((FixRejectReason::FormatIncorrect, 96)));
    assert_eq!(fault("A", "98=0|108=1|96=abc|"), Some((FixRejectReason::FormatIncorrect, 96)), "no length");
    assert_eq!(
        fault("A", "95=3|98=0|108=1|96=abc|"),
        Some((FixRejectReason::FormatIncorrect, 96)),
        "not before"
    );
}

#[test]
fn a_tag_is_the_standard_s_or_it_is_invalid() {
    assert_eq!(order("956=x|"), Some((FixRejectReason::TagNotDefined, 956)), "defined, and not served");
    assert_eq!(order("957=x|"), Some((FixRejectReason::InvalidTag, 957)));
    assert_eq!(order("8=FIX.4.4|"), Some((FixRejectReason::TagAppearsTwice, 8)));
    assert_eq!(order("10=123|11=b|"), Some((FixRejectReason::TagAppearsTwice, 10)));
}

#[test]
fn the_first_fault_is_told_and_the_number_is_read_all_the_same() {
    let bytes = bytes("D", "55=X|34=77|54=z|40=w|");
    let (Cut::Whole(frame), _) = cut(&bytes) else { panic!("a message") };
    let mut parser = FixParser::default();
    let message = parser.parse(&FIX44, &frame).unwrap();
    assert_eq!(message.fault(), Some(FixFault::of(FixRejectReason::TagOutOfOrder, 34)));
    assert_eq!(message.number(tag::MSG_SEQ_NUM), Some(77));
}

#[test]
fn a_type_that_is_not_served_has_its_header_checked_only() {
    assert_eq!(fault("B", "58=x|11=y|"), None, "a News has no ClOrdID");
    assert_eq!(fault("B", "148=x|33=1|58=y|"), None, "nor has any message that is served its Headline");
    assert_eq!(fault("B", "148=|"), Some((FixRejectReason::NoValue, 148)));
    assert_eq!(fault("B", "957=x|"), Some((FixRejectReason::InvalidTag, 957)));
    assert_eq!(fault("ZZ", ""), Some((FixRejectReason::InvalidMsgType, 0)));
}

#[test]
fn what_has_no_fields_is_unreadable() {
    let mut parser = FixParser::default();
    for fields in ["34", "=1|", "x=1|34=2|", "-=1|"] {
        let bytes = bytes("0", &format!("{fields}|"));
        let (Cut::Whole(frame), _) = cut(&bytes) else { panic!("a message") };
        assert_eq!(parser.parse(&FIX42, &frame).err(), Some(Unreadable), "{fields}");
    }
}

#[test]
fn the_number_counts_whatever_stands_behind_it() {
    for fields in ["34=2|x=1", "34=2|", "34=2|1234567890=1", "34=2|58=a|b=c|50=d", "34=2|58=a|b"] {
        let bytes = bytes("0", &format!("{fields}|"));
        let (Cut::Whole(frame), _) = cut(&bytes) else { panic!("a message") };
        let mut parser = FixParser::default();
        let message = parser.parse(&FIX42, &frame).expect("a number");
        assert_eq!(message.number(tag::MSG_SEQ_NUM), Some(2), "{fields}");
        let reason = message.fault().map(|fault| fault.reason);
        let expected = if fields.contains("58") { TagNotDefined } else { InvalidTag };
        assert_eq!(reason, Some(expected), "{fields}");
    }
}

/// Every data field of the standard, with a value that would be other fields.
#[test]
fn data_are_read_by_their_lengths_in_every_message() {
    let all = [(93, 89), (90, 91), (95, 96), (212, 213), (354, 355), (445, 446), (618, 619), (621, 622)];
    let encoded = (348..=364).step_by(2).map(|length| (length, length + 1));
    for (length, data) in all.into_iter().chain(encoded) {
        for (msg_type, body) in [("D", ORDER), ("B", "148=x|"), ("0", "")] {
            let fields = format!("{body}{length}=11|{data}=a|34=9|11=b|");
            let found = fault(msg_type, &fields);
            let is_right = found.is_none() || matches!(found, Some((TagNotDefined | TagOutOfOrder, _)));
            assert!(is_right, "{msg_type} {fields}: {found:?}");
            let (served, at) = ([90, 93, 212, 354].contains(&length), Some((TagNotDefined, length)));
            assert!(served || msg_type == "B" || found == at, "{msg_type} {fields}: {found:?}");
        }
    }
}

#[test]
fn a_parser_forgets_the_message_before() {
    let (with, without) = (bytes("0", &(HEADER.to_owned() + "112=x|")), bytes("0", HEADER));
    let mut parser = FixParser::default();
    for (bytes, expected) in [(&with, Some(&b"x"[..])), (&without, None), (&with, Some(b"x"))] {
        let (Cut::Whole(frame), _) = cut(bytes) else { panic!("a message") };
        assert_eq!(parser.parse(&FIX44, &frame).unwrap().text(tag::TEST_REQ_ID), expected);
    }
}
