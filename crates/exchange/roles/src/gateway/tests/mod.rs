//! One turn after the other, by hand.

mod connections;
mod logs;
mod rig;
mod sockets;
mod starts;
