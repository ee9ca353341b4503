//! Day trading: users buy and sell stock at quotes of a slow server, by sixteen commands, and every cent is in the log.
//!
//! The obvious form, an account in memory and a log written behind it, loses both or, worse, one of them. Here a command is one transaction of a
//! replicated database: its effect and its entry in the log are items that commit together, or neither. This crate is the function from a request to
//! those items. It reads no clock and asks no server: a request brings its time, its number and its quote.
//!
//! | module | what |
//! |---|---|
//! | `command`, `workload`, `money` | the sixteen commands, and how they are written |
//! | `request`, `reply`, `refusal` | requests and answers as bytes |
//! | `rows`, `ledger` | what lies in which item, and what the rules need of a transaction |
//! | `execute` | one request; `buying`, `triggers`, `lapse` are its parts |
//! | `names`, `sessions` | numbers and names, and what was executed before under them |
//! | `reads`, `summary`, `pages` | what can be read: what a user has; the log, armed triggers, what will lapse |
//! | `orders` | orders on the exchange |
//! | `people` | who may sign in, and who is signed in |
//! | `audit`, `xml` | a request's entry in the log, and the log as the course's XML |
//! | `verify` | the log alone, replayed |
//! | `heads` | what written logs hash to |

mod audit;
mod buying;
mod coded;
mod command;
mod draft;
mod execute;
mod heads;
mod lapse;
mod ledger;
mod money;
mod names;
mod orders;
mod pages;
mod people;
mod reads;
mod refusal;
mod reply;
mod request;
mod rows;
mod sessions;
mod summary;
mod triggers;
mod verify;
mod workload;
mod xml;

pub use audit::{AuditNote, AuditRecord};
pub use command::{
    DUMPS_OF_USERS, FILE_BYTES_MAX, StockSymbol, TradeWay, USER_BYTES_MAX, UserCommand, UserName, Verb,
    dump_path, file_name,
};
pub use execute::execute;
pub use heads::{LogDigest, LogHead};
pub use lapse::RELEASED_MAX;
pub use ledger::{BrokerError, Ledger, Shelf};
pub use money::{CENTS_MAX, cents_of, dollars};
pub use names::{
    COMMANDS_OF_SESSION, CommandName, FRONT_MAX, HitName, NAME_BYTES_MAX, SESSIONS_OF_FRONT, is_order,
    is_session, number_in_session, session_of, session_of_front,
};
pub use orders::{
    Customer, CustomerLimits, CustomerOrderId, Exposure, OPEN_ORDERS_MAX, ORDERS_PAGE_MAX, Order, OrderAsked,
    OrderEvent, OrderHappened, OrderLife, OrderListed, OrderNote, OrderRead, OrderReply, OrderStage,
    OrderTerms, RouterSeat, Settlement,
};
pub use pages::{
    AUDIT_PAGE_MAX, ArmedPage, ArmedTrigger, AuditEntry, AuditPage, LapsingPage, PendingExpiry,
    WATCH_PAGE_MAX, audit_page, audit_place,
};
pub use people::{
    OneTimeCode, PERSON_SESSIONS_MAX, PasswordString, Person, PersonAsked, PersonRead, PersonRight,
    SESSION_IDLE_MS, SESSION_MS, SIGN_IN_WAIT_MAX_MS, SessionDigest, SessionFound, USERS_PAGE_MAX,
    UserListed, UsersPage,
};
pub use reads::{BrokerRead, NamedCommand, answer};
pub use refusal::Refusal;
pub use reply::BrokerReply;
pub use request::{Asked, BrokerRequest, QuoteBrought, StockQuote, WINDOW_MS};
pub use rows::{Account, Armed, BuyTrigger, PENDING_MAX, Pending, SellTrigger, Stack};
pub use summary::{AccountSummary, summary};
pub use verify::{AuditFault, AuditReplay, AuditReport, ReplayedAccount};
pub use workload::WorkloadLine;
pub use xml::{LOG_BEGIN, LOG_END, is_declaration, supervised, tell_log, wished};
