//! What tests of several crates exercise books, and sessions of members, with. For tests: what finds something wrong panics.
//!
//! | module | what |
//! |---|---|
//! | [`replies`] | what a gateway may tell a member |
//! | [`requests`] | any bytes as requests to a book or a market |
//! | [`checked`], [`rebuilt`], [`accounts`] | a book whose every step is checked, one rebuilt from its record, and what became of all shares |
//! | [`compare`] | two books, or two markets, side by side |
//! | [`wrong`] | books with a defect each, to show that a comparison finds it |
//! | [`ordering`] | followers of one order, and the model they are held to |
//! | [`script`], [`script_parser`], [`telling`] | requests as text, and what became of them as text |

#![allow(clippy::unwrap_used)] // a panic is how an exercise says that something is wrong

use std::path::PathBuf;

pub mod accounts;
pub mod checked;
pub mod compare;
pub mod ordering;
pub mod rebuilt;
pub mod replies;
pub mod requests;
pub mod script;
pub mod script_parser;
pub mod telling;
pub mod wrong;

/// A file or folder of the shared data, where that is at hand: in the folder that `PARES_SHARED` names, or in `shared` beside a folder above.
#[must_use]
pub fn shared_data(path: &str) -> Option<PathBuf> {
    let named = std::env::var_os("PARES_SHARED").map(PathBuf::from);
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let above = here.ancestors().map(|folder| folder.join("shared"));
    named.into_iter().chain(above).map(|folder| folder.join(path)).find(|path| path.exists())
}
