//! One turn after the other, by hand.

mod connections;
mod fix;
mod late;
mod lists;
mod logs;
mod marks;
mod resuming;
mod rig;
mod set_back;
mod sockets;
mod starts;
mod tap;
