//! A checker of isolation from the outside: what clients did and read, and no word from the database.
//!
//! A test that knows how the database orders transactions believes it about that order. Sums that stay the same, and notes that are counted,
//! see a part of what can go wrong; a read of a state that never was can keep every sum. The idea: clients append elements, each used
//! once, to lists. Who reads `[4, 9, 2]` knows who wrote the value, and every version before it. From such reads follow the order
//! of the versions of each list, and from these who must come before whom:
//!
//! ```text
//!   T1 -ww-> T2    T2 appended right behind T1's element
//!   T1 -wr-> T2    T2 read a list that ends with T1's element
//!   T1 -rw-> T2    T1 read the version before the one that T2 made
//! ```
//! A cycle is a history that no serial order explains, and which dependencies it is made of says which level of isolation is broken.
//!
//! | found | which is | under snapshot isolation |
//! |---|---|---|
//! | G0 | a cycle of ww | forbidden |
//! | G1a, G1b | a read of what was never committed; of what its writer replaced himself | forbidden |
//! | G1c | a cycle of ww and wr | forbidden |
//! | G-single | a cycle with one rw: read skew, lost updates | forbidden |
//! | G-nonadjacent | a cycle in which no two rw follow each other | forbidden |
//! | G2-item | any other: write skew | allowed |
//!
//! That a history without the first five is one of snapshot isolation, and none with them, is the theorem of Cerone and Gotsman.
//!
//! | module | what |
//! |---|---|
//! | [`history`] | operations, and their form as text |
//! | `versions` | what each list says: orders, aborted and intermediate reads |
//! | `dependencies`, `cycles` | the graph, and what is wrong in it |
//! | `sessions` | what a session may expect of its own reads |
//! | [`bank`] | transfers: what every snapshot must have |
//!
//! Sources: Kingsbury and Alvaro, *Elle: Inferring Isolation Anomalies from Experimental Observations*, VLDB 2020 (lists, what follows
//! from reads); Adya, *Weak Consistency*, MIT 1999 (G0 to G2); Cerone and Gotsman, *Analysing Snapshot Isolation*, PODC 2016.

pub mod bank;
mod check;
mod cycles;
mod dependencies;
pub mod history;
mod sessions;
mod versions;

pub use check::{Anomalies, Anomaly, check};
