//! People: who may sign in, as whom, and who is signed in.
//!
//! The obvious place for sessions is the memory of the server that was asked, and then each of many fronts knows other people. Here a person and a session are items like an
//! account: any front serves any person, and what one front ends is ended for all. No password and no session's token comes here: a front turns the one into a
//! string of argon2id and the other into a digest.
//!
//! A try to sign in is counted **before** the password is looked at: a hundred fronts at once give no more tries than one.

mod asked;
mod execute;
mod reads;
mod row;

pub use asked::PersonAsked;
pub(crate) use execute::{execute, is_supervisor};
pub(crate) use reads::answer;
pub use reads::{PersonRead, SessionFound, USERS_PAGE_MAX, UserListed, UsersPage};
pub use row::{
    OneTimeCode, PERSON_SESSIONS_MAX, PasswordString, Person, PersonRight, SESSION_IDLE_MS, SESSION_MS,
    SIGN_IN_WAIT_MAX_MS, SessionDigest,
};
