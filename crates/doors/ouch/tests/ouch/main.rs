//! OUCH as bytes, from packets to frames and back.

mod anything;
mod entering;
mod rig;
mod sessions;
mod telling;
