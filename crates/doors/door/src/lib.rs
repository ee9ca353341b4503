//! FIX order entry as a codec between FIX messages and the gateway's frames.
//!
//! A FIX engine in front of an exchange usually owns what it speaks of: a book of orders to report from, a store of what it sent, the session's numbers.
//! Then it is one more thing that can be lost, and no other process can continue in its place. A door owns none of it. Each message of a member becomes the
//! frame that a client of the binary protocol would have sent, and each frame for that client becomes a message; rights, names and the order of news are the
//! gateway's. What reports say is made of the member's stream, which every gateway can send from any point; ExecIDs are places in it. So another gateway
//! continues a session from two numbers and a place in each shard's stream, the [`SessionMark`](pares_port::SessionMark).
//!
//! ```text
//!  socket --bytes--> FixDoor --ClientFrame--> gateway
//!  socket <--bytes-- FixDoor <--GatewayFrame- gateway
//! ```
//!
//! | module | what |
//! |---|---|
//! | `door`, `line` | one connection: the session layer and the application, put together |
//! | `logon` | from the first message to the answer to the Logon |
//! | `streams`, `kept` | what the member was sent, and what can be sent again |
//! | `desk`, `requests`, `request`, `pending` | the application: messages become frames; what waits for its answer |
//! | `reports`, `answers`, `refusals`, `statuses`, `securities`, `securities_told`, `outbound`, `types` | frames become messages |
//! | `market`, `market_told` | what the session has asked of the market, and was sent last; the messages |
//! | `trades`, `trades_told` | what the session has asked of its trades; the messages |
//! | `orders`, `ended`, `instruments`, `codes`, `decimal` | what it knows, and how the two say the same |

mod answers;
mod blank;
mod codes;
mod decimal;
mod desk;
mod door;
mod ended;
mod instruments;
mod kept;
mod line;
mod logon;
mod market;
mod market_told;
mod orders;
mod outbound;
mod pending;
mod refusals;
mod reports;
mod request;
mod requests;
mod securities;
mod securities_told;
mod statuses;
mod streams;
mod trades;
mod trades_told;
mod types;

pub use door::{EARLY_BYTES_MAX, FixDoor};
pub use logon::read_logon;
pub use request::client_order_id;
