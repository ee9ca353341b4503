//! Records of the mapped logs.
//!
//! ```text
//! gateway log    [Request]   [MarkHead | MarkedShard * shards | MarkedLogon?]   [SpentLogonRecord]
//! venue log      [ResultHead | Request | EventRecord * events]   [CheckpointChunk | bytes]
//! orders log     [Request]   [a state: docs/protocols/orders.md]
//! recorder log   the venue's records as they came                [CheckpointStored]
//!
//! Request        RequestRecord, and for those that say more, TermsRecord, OperandsRecord or BustRecord
//! ```
//! A result carries its request, so a recorder's log alone is enough to rebuild everything
//! (paper 1 section 4 step 3: "the reply from HR includes a copy of the original trade request").

mod checkpoint;
mod event;
mod mark;
mod request;
mod result;
mod spent;

pub use crate::code::{reason, status};
pub use checkpoint::{CheckpointChunk, CheckpointStored};
pub use event::EventRecord;
pub use mark::{MarkHead, MarkedLogon, MarkedShard, SessionMark, SessionMarkRecord};
pub use request::{
    BustRecord, OperandsRecord, REQUEST_BYTES_MAX, RequestRecord, TermsRecord, request_bytes, request_shard,
    write_request,
};
pub use result::{ResultHead, ResultPlace, ResultRecord, result_bytes, result_place, write_result};
pub use spent::SpentLogonRecord;

use crate::WireError;

/// `schema` of a [`RequestRecord`].
pub const REQUEST: u8 = 1;
/// `schema` of a [`ResultHead`].
pub const RESULT: u8 = 2;
/// `schema` of a [`CheckpointChunk`].
pub const CHECKPOINT_CHUNK: u8 = 3;
/// `schema` of a [`CheckpointStored`].
pub const CHECKPOINT_STORED: u8 = 4;
/// `schema` of a [`MarkHead`].
pub const SESSION_MARK: u8 = 5;
/// `schema` of a [`SpentLogonRecord`].
pub const SPENT_LOGON: u8 = 6;
/// First byte of a state in an orders log; [`VERSION`] is the second.
pub const ORDERS_STATE: u8 = 7;
/// The version of all schemas in this build, the only one that it reads.
pub const VERSION: u8 = 2;

/// The first byte of a record: which schema it follows.
#[must_use]
pub fn schema(bytes: &[u8]) -> Option<u8> {
    bytes.first().copied()
}

/// Whether it is of a FIX session, and no request.
#[must_use]
pub fn is_of_fix_session(bytes: &[u8]) -> bool {
    matches!(schema(bytes), Some(SESSION_MARK | SPENT_LOGON))
}

fn check(schema: u8, version: u8, expected: u8) -> Result<(), WireError> {
    if schema == expected && version == VERSION {
        Ok(())
    } else {
        Err(WireError::UnknownSchema { schema, version })
    }
}
