//! FIX bytes in, frames out; frames in, FIX bytes out.

mod anything;
mod copies;
mod entering;
mod logons;
mod market;
mod names;
mod queries;
mod rig;
mod sessions;
mod trades;
