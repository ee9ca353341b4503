//! A shard's checkpoint: restored by a venue that joins, from a file that may be anything.

use pares_book::{Book, FastBook, Instrument, NaiveBook, Symbol};
use pares_sequencer::LocalWindow;
use pares_types::{
    ClientOrderId, Command, Entry, Epoch, Event, GatewayId, InstrumentId, Key, MemberId, NewOrder, OrderKind,
    Outcome, Peg, Position, Price, Quantity, Registration, Request, RequestId, ShardId, Side, TimeInForce,
    Timestamp,
};
use pares_venue::{CheckpointError, ResultAt, Shard, VenueSink};

/// Bytes of the checksum, and of the state hash before it.
const SUM_BYTES: usize = 8;

/// Restores the bytes into both books. Checksum and state hash refuse nearly all damage, so both are put right in
/// turn: what lies behind them must hold for whatever a checksum happens to fit.
pub fn restore(bytes: &[u8]) {
    let _as_it_came = restore_into_both(bytes);
    let Some(end) = bytes.len().checked_sub(2 * SUM_BYTES) else { return };
    let summed = with_checksum(bytes[..end + SUM_BYTES].to_vec());
    let Err(CheckpointError::HashDiffers { restored, .. }) = restore_into_both(&summed) else { return };
    let hashed = with_checksum([&bytes[..end], &restored.to_le_bytes()].concat());
    assert_eq!(restore_into_both(&hashed), Ok(restored), "the state has the hash it was said to have");
}

fn restore_into_both(bytes: &[u8]) -> Result<u64, CheckpointError> {
    let fast = restore_into::<FastBook>(bytes);
    assert_eq!(
        fast.is_ok(),
        restore_into::<NaiveBook>(bytes).is_ok(),
        "both books take the same checkpoints"
    );
    fast
}

/// Appends the checksum as `pares_venue::checkpoint` describes it, written a second time on purpose.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let mut sum = 0;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = step(sum, u64::from_le_bytes(word));
    }
    sum = step(sum, bytes.len() as u64);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Whether a repaired checksum is accepted: without that, [`restore`] would test the checksum alone.
#[must_use]
pub fn repairs_checksums() -> bool {
    seeds().iter().all(|seed| with_checksum(seed[..seed.len() - SUM_BYTES].to_vec()) == *seed)
}

/// Whether the bytes are a checkpoint.
#[must_use]
pub fn accepts(bytes: &[u8]) -> bool {
    restore_into::<FastBook>(bytes).is_ok()
}

/// Restores, and says the hash of the state; what was restored is saved as the bytes it came from.
fn restore_into<B: Book>(bytes: &[u8]) -> Result<u64, CheckpointError> {
    let shard = Shard::<B>::restore(SHARD, bytes)?;
    let mut saved = Vec::new();
    let mut again = shard;
    again.checkpoint(&mut saved);
    let twin = Shard::<B>::restore(SHARD, &saved)?;
    assert_eq!(twin.state_hash(), again.state_hash(), "what was restored can be saved and restored");
    assert_eq!(twin.position(), again.position(), "at the same position");
    Ok(again.state_hash())
}

const SHARD: ShardId = ShardId(0);

fn instruments() -> [Instrument; 2] {
    [1, 2].map(|id| Instrument {
        quantity_max: Quantity(1_000),
        price_max: Price(1_000_000),
        orders_max: 64,
        ..Instrument::listed(InstrumentId(id), Symbol::new("FUZZ").expect("a legal name"))
    })
}

/// Checkpoints of an empty shard, one with a few orders, one with many.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    [0, 5, 90].map(checkpoint_after).into()
}

fn checkpoint_after(requests: u64) -> Vec<u8> {
    let mut shard = Shard::<FastBook>::new(SHARD, &instruments());
    let mut window = LocalWindow::new(128, Epoch(1), Position(0));
    for sequence in 1..=requests {
        shard.on_request(&request(sequence));
        shard.step(&mut window, &mut Ignore);
    }
    let mut bytes = Vec::new();
    shard.checkpoint(&mut bytes);
    bytes
}

/// Orders around one price, some of which trade.
fn request(sequence: u64) -> Request {
    let side = if sequence.is_multiple_of(2) { Side::Buy } else { Side::Sell };
    let price = Price(50_000 + 100 * (sequence % 7) as i64);
    let plain = NewOrder::limit(side, price, Quantity(1 + sequence % 5));
    let order = match sequence % 9 {
        0 => NewOrder { quantity: Quantity(10), display: Quantity(2), ..plain },
        1 => NewOrder { trigger: Some(price), ..plain },
        2 => NewOrder { kind: OrderKind::Pegged { to: Peg::Mid, limit: price }, ..plain },
        3 => NewOrder { time_in_force: TimeInForce::Gtd { until: Timestamp(1_000) }, ..plain },
        _ => plain,
    };
    if sequence.is_multiple_of(8) {
        return registration(sequence);
    }
    Request {
        id: RequestId::new(GatewayId((sequence % 2) as u16), sequence),
        stamp: Timestamp(sequence),
        member: MemberId(1),
        client_order_id: ClientOrderId(sequence),
        instrument: InstrumentId(1 + (sequence % 2) as u32),
        shard: ShardId(0),
        command: Command::Enter(order),
    }
}

/// Members and their keys, since the register is in the checkpoint.
fn registration(sequence: u64) -> Request {
    let entry =
        if sequence.is_multiple_of(16) { Entry::SetKey(Key::Ed25519([3; 32])) } else { Entry::AddMember };
    let session = u16::from(sequence.is_multiple_of(16));
    Request {
        id: RequestId::new(GatewayId(0), sequence),
        stamp: Timestamp(sequence),
        member: MemberId(0),
        client_order_id: ClientOrderId(sequence),
        instrument: InstrumentId(0),
        shard: ShardId(0),
        command: Command::Register(Registration { member: MemberId(sequence as u32 / 16), session, entry }),
    }
}

struct Ignore;

impl VenueSink for Ignore {
    fn has_room(&mut self) -> bool {
        true
    }

    fn result(&mut self, _: ResultAt, _: &Request, _: &Outcome, _: &[Event]) {}
}
