//! Two servers and their traders, over real logs, a real window and real sockets; servers are threads that can be made to vanish.

mod packets;
mod rig;
mod slow;
mod streams;
mod web;
