//! A cluster in one thread: sites that remember what they were given, over a network and disks that fail by seed.
#![allow(dead_code, reason = "every test uses a part")]

pub(crate) mod site;
pub(crate) mod world;

use pares_cluster::ClusterLog;
use site::Site;

/// A cluster of sites that a test drives.
pub(crate) trait Rig {
    type Log: ClusterLog;
    fn log(&mut self, member: u8) -> &mut Self::Log;
    fn site(&self, member: u8) -> &Site;
    /// The site's state as it is now outlives a kill.
    fn save(&mut self, member: u8);
    fn start(&mut self, member: u8);
    /// It neither receives messages nor sends any.
    fn cut_off(&mut self, member: u8);
    fn heal(&mut self);
}
