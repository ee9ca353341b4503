//! One turn after the other, by hand.

mod connections;
mod lists;
mod logs;
mod resuming;
mod rig;
mod sockets;
mod starts;
mod status;
