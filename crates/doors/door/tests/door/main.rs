//! FIX bytes in, frames out; frames in, FIX bytes out.

mod anything;
mod asking;
mod copies;
mod entering;
mod market;
mod rig;
mod sessions;
mod trades;
