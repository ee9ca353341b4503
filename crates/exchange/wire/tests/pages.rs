//! The protocol pages say what the code does: every table is compared with the layouts.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use pares_types::{
    Answer, CancelCause, ClientOrderId, ClientRequest, GatewayId, InstrumentId, NewOrder, OrderChange,
    OrderId, Phase, Position, Price, Quantity, Reason, Refuser, Reply, RequestId, ShardId, Side, Status,
};
use pares_wire::frame::{self, FRAME_MAX, Message, SignOn};
use pares_wire::record;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/protocols").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows under a heading, their first three columns: offset, field, type.
fn table(page: &str, heading: &str) -> String {
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading:?}"));
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|')).fold(String::new(), |mut table, row| {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        writeln!(table, "{} {} {}", columns[1], columns[2].trim_matches('`'), columns[3])
            .expect("a string takes all");
        table
    })
}

/// The same from the code: types that follow each other without padding.
fn layout(fields: &[(&str, &str)]) -> String {
    let mut offset = 0;
    fields.iter().fold(String::new(), |mut table, (name, ty)| {
        let ty = ty.to_lowercase();
        writeln!(table, "{offset} {name} {ty}").expect("a string takes all");
        offset += bytes_of(&ty);
        table
    })
}

fn bytes_of(ty: &str) -> usize {
    match ty {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        "u64" | "i64" => 8,
        array => {
            let count = array.trim_start_matches("[u8; ").trim_end_matches(']');
            count.parse().unwrap_or_else(|_| panic!("no such type: {array}"))
        }
    }
}

macro_rules! check_frames {
    ($page:expr, $($name:ident)*) => {$(
        let heading = format!(
            "### {} {} ({} bytes)", frame::$name::KIND, stringify!($name), size_of::<frame::$name>()
        );
        assert_eq!(table($page, &heading), layout(frame::$name::FIELDS), "{heading}");
    )*};
}

macro_rules! check_records {
    ($page:expr, $($name:ident)*) => {$(
        let heading = format!("### {} ({} bytes)", stringify!($name), size_of::<record::$name>());
        assert_eq!(table($page, &heading), layout(record::$name::FIELDS), "{heading}");
    )*};
}

#[test]
fn the_order_entry_page_lays_frames_out_as_the_code_does() {
    let page = page("order-entry.md");
    check_frames!(
        &page,
        SignOn EnterOrder AmendOrder CancelOrder MassCancel Ping EnterOrderExtended AmendOrderExtended
        SetPhase SetRule AddInstrument RemoveInstrument BlockMember UnblockMember BustTrade TellTime
        BeginDay EndDay
        OrderNews TradeBusted
        OrderNews TradeBusted ChangeRegister Proof Challenge
        SignedOn Journalled Answer Trade Cancelled Rejected Pong
        Resume Resumed CancelAfter OrderStatusRequest OrderStatus
        ListRequest LimitsRequest ListEnd InstrumentStatus TickRow OwnLimits
    );
    assert!(page.contains(&format!("is at most {FRAME_MAX}")));
    assert!(page.starts_with(&format!("# Order entry, version {}\n", frame::VERSION)));
}

/// Who refuses for a reason, and what becomes of the name, as columns.
fn refused_by(reason: Reason) -> &'static str {
    match (reason.refuser(), reason.uses_name()) {
        (None, _) => " | |",
        (Some(Refuser::Gateway), _) => " gateway | free |",
        (Some(Refuser::Shard), true) => " shard | used up |",
        (Some(Refuser::Either), true) => " either | free, used up |",
        (Some(Refuser::Shard), false) if reason == Reason::TooManySeries => " shard | free |",
        (Some(Refuser::Shard), false) => " shard | used before |",
        (Some(Refuser::Either), false) => " either | used before |",
    }
}

#[test]
fn the_order_entry_page_lists_every_code() {
    let page = page("order-entry.md");
    for reason in Reason::ALL {
        let row = format!("\n| {} | {reason} | {} |{}", reason as u8, reason.meaning(), refused_by(reason));
        let (_, rest) = page.split_once(&row).unwrap_or_else(|| panic!("no {row:?}"));
        let what_to_do = rest.split('|').next().expect("a row ends");
        assert_eq!(what_to_do.trim().is_empty(), reason.refuser().is_none(), "what to do: {row}");
        let by_a_gateway_alone = reason.refuser() == Some(Refuser::Gateway);
        let says_so = reason.meaning().starts_with("Gateway: ");
        assert_eq!(says_so, by_a_gateway_alone, "{reason}");
    }
    for status in Status::ALL {
        assert!(page.contains(&format!("\n| {} | {status}: ", status as u8)), "{status}");
    }
    for cause in CancelCause::ALL {
        assert!(page.contains(&format!("\n| {} | {cause}: ", cause as u8)), "{cause}");
    }
    for phase in Phase::ALL {
        assert!(page.contains(&format!("\n| {} | {phase:?} |", phase as u8)), "{phase:?}");
    }
    for change in OrderChange::ALL {
        assert!(page.contains(&format!("\n| {} | {change:?}: ", change as u8)), "{change:?}");
    }
}

#[test]
fn the_pages_spell_reasons_as_the_exchange_does() {
    for name in [
        "protocols/order-entry.md",
        "protocols/records.md",
        "rules.md",
        "operations/failures.md",
        "operations/market.md",
        "reliability.md",
    ] {
        let page = page(&format!("../{name}"));
        let words: Vec<&str> =
            page.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').collect();
        for reason in Reason::ALL.into_iter().filter(|reason| reason.word().contains('_')) {
            assert!(!words.contains(&format!("{reason:?}").as_str()), "{name} says {reason:?}, not {reason}");
        }
    }
}

#[test]
fn the_records_page_lays_records_out_as_the_code_does() {
    let page = page("records.md");
    check_records!(
        &page,
        RequestRecord ResultHead EventRecord TermsRecord BustRecord OperandsRecord CheckpointChunk CheckpointStored
        MarkHead MarkedShard MarkedLogon SpentLogonRecord
    );
    assert!(page.starts_with(&format!("# Records of the logs, version {}\n", record::VERSION)));
}

#[test]
fn the_order_entry_page_s_example_is_what_is_sent() {
    let page = page("order-entry.md");
    let mut sent = Vec::new();
    frame::write(&mut sent, &SignOn { member: 7.into(), ..SignOn::default() });
    let order = NewOrder::limit(Side::Buy, Price(2_238_200), Quantity(100));
    let (client_order_id, instrument) = (ClientOrderId(1), InstrumentId(1));
    let enter = ClientRequest::Enter { client_order_id, instrument, order };
    frame::write_request(&mut sent, &enter);
    assert!(page.contains(&dump(&sent)), "{}", dump(&sent));

    let request = RequestId::new(GatewayId(1), 1);
    let answer = Answer {
        client_order_id,
        request,
        order: OrderId(request),
        shard: ShardId(0),
        position: Position(0),
        instrument,
        status: Status::Resting,
        reason: Reason::None,
        executed: Quantity(0),
        remaining: Quantity(100),
        events: 0,
        repeat: false,
        number: 1,
        asked: enter.asked(),
    };
    let mut answered = Vec::new();
    frame::write_reply(&mut answered, &Reply::Answer(answer));
    assert!(page.contains(&dump(&answered)), "{}", dump(&answered));
}

fn dump(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).enumerate().map(|(at, bytes)| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:04x}  {}\n", at * 16, hex.join(" "))
    });
    format!("```text\n{}```\n", lines.collect::<String>())
}
