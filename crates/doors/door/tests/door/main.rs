//! FIX bytes in, frames out; frames in, FIX bytes out.

mod anything;
mod asking;
mod entering;
mod rig;
mod sessions;
