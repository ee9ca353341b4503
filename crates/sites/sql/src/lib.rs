//! PostgreSQL's protocol at a site: ordinary clients, whose transactions are certified among all sites.
//!
//! A database with a protocol of its own needs a driver for every language, and an SQL engine. Here the site's own PostgreSQL server is both: a
//! session passes everything through to it, and intercepts one thing, the end of a transaction.
//!
//! ```text
//!  psql, drivers ==protocol 3==> session --statements as they are--> the site's server, REPEATABLE READ on the store's version
//!                                   |  COMMIT: what was written is read, and taken back there
//!                                   |  Ready { snapshot, reads, writes }
//!                                   v
//!                             the site's duty cycle --certify--> all sites apply it, this one too --> COMMIT, or ERROR 40001
//! ```
//! So reads, functions, plans and types are PostgreSQL's own, and rows change in one way only: by the store's writer, in the commit order.
//!
//! | module | what |
//! |---|---|
//! | `front` | the port, and what all sessions share |
//! | `crowd` | who is connected, and who makes room |
//! | `startup` | how a connection begins |
//! | `client` | a client's connection, plain or TLS |
//! | `session` | a client's session: statements, transactions, the simple protocol; what its client is answered |
//! | `extended` | prepared statements and portals |
//! | `transaction` | where transactions begin and end |
//! | `boundary` | statements that begin and end transactions |
//! | `changes` | changes of the schema, tried until they are ordered |
//! | `commit` | what a transaction wrote |
//! | `settings` | what a transaction set |
//! | `current` | the transaction that a session has open, and cancellations of it |
//! | `link` | the connection to the server |
//! | `statement` | what statements are |
//! | `wire` | messages |

mod boundary;
mod changes;
mod client;
mod commit;
mod crowd;
mod current;
mod extended;
mod front;
mod link;
mod session;
mod settings;
mod startup;
mod statement;
mod transaction;
mod wire;

pub use front::{CLIENTS_MAX, Certified, Executed, Ready, SqlPort, SqlRights, Verdict};
