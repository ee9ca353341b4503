//! What the codec costs.
//!
//! One message of each kind, all of it in the nearest cache, as in the figures that others publish: read and validate a NewOrderSingle from its bytes,
//! frame and sum included; write an ExecutionReport. Each figure is the median of 101 batches.

use std::hint::black_box;

use pares_fix::dictionary::{FIX44, tag};
use pares_fix::framing::{Cut, cut};
use pares_fix::parser::FixParser;
use pares_fix::writer::FixWriter;

use super::median_ns;

const BATCH: u32 = 20_000;
const NOW_NS: u64 = 1_790_000_000_123_000_000;

/// Nanoseconds for an order in, and for a report out.
pub(super) fn measure() -> (f64, f64) {
    let (order, mut parser) = (order(), FixParser::default());
    let new_order_ns = median_ns(BATCH, || {
        let (Cut::Whole(frame), _) = cut(black_box(&order)) else { unreachable!("it is one") };
        let message = parser.parse(&FIX44, &frame).expect("it has fields");
        assert!(message.fault().is_none());
        black_box(&message);
    });
    let (mut out, mut number) = (Vec::with_capacity(1_024), 0);
    let report_ns = median_ns(BATCH, || {
        number += 1;
        out.clear();
        report(&mut out, black_box(number));
        black_box(&out);
    });
    (new_order_ns, report_ns)
}

fn header(writer: &mut FixWriter<'_>, number: u64) {
    writer.number(tag::MSG_SEQ_NUM, number);
    writer.text(tag::SENDER_COMP_ID, b"MEMBER7");
    writer.time(tag::SENDING_TIME, NOW_NS);
    writer.text(tag::TARGET_COMP_ID, b"EXCHANGE");
}

fn order() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, "FIX.4.4", b"D");
    header(&mut writer, 12_345);
    writer.text(tag::CL_ORD_ID, b"20260921-000123");
    writer.text(tag::ACCOUNT, b"ACCT01");
    writer.letter(tag::HANDL_INST, b'1');
    writer.text(tag::SYMBOL, b"ALFA");
    writer.letter(tag::SIDE, b'1');
    writer.time(tag::TRANSACT_TIME, NOW_NS);
    writer.text(tag::ORDER_QTY, b"1000");
    writer.letter(tag::ORD_TYPE, b'2');
    writer.text(tag::PRICE, b"182.47");
    writer.letter(tag::TIME_IN_FORCE, b'0');
    writer.finish();
    bytes
}

fn report(out: &mut Vec<u8>, number: u64) {
    let mut writer = FixWriter::begin(out, "FIX.4.4", b"8");
    header(&mut writer, number);
    writer.number(tag::ORDER_ID, 7_205_759_403_792_794);
    writer.text(tag::CL_ORD_ID, b"20260921-000123");
    writer.number(tag::EXEC_ID, number);
    writer.letter(tag::EXEC_TYPE, b'F');
    writer.letter(tag::ORD_STATUS, b'1');
    writer.text(tag::SYMBOL, b"ALFA");
    writer.letter(tag::SIDE, b'1');
    writer.number(tag::ORDER_QTY, 1_000);
    writer.text(tag::PRICE, b"182.47");
    writer.number(tag::LAST_QTY, 100);
    writer.text(tag::LAST_PX, b"182.47");
    writer.number(tag::LEAVES_QTY, 900);
    writer.number(tag::CUM_QTY, 100);
    writer.text(tag::AVG_PX, b"182.47");
    writer.time(tag::TRANSACT_TIME, NOW_NS);
    writer.finish();
}
