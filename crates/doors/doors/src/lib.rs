//! The doors of a gateway, by the port that a connection came to.
//!
//! A gateway knows doors by their interface only (`pares-port`). This is the one place that names all of them, for the
//! programs that start gateways: the command line, the simulator, the laboratory.

use std::sync::Arc;

use pares_door::FixDoor;
use pares_ouch::OuchDoor;
use pares_port::{DoorConfig, DoorFactory, DoorPort, ProtocolDoor, SecretScan, TapDoor};
use pares_tap::Blank;

/// Makes every door that there is: FIX and OUCH.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doors;

impl DoorFactory for Doors {
    fn door(&self, port: DoorPort, config: &Arc<DoorConfig>) -> Box<dyn ProtocolDoor> {
        match port {
            DoorPort::Fix => Box::new(FixDoor::new(Arc::clone(config))),
            DoorPort::Ouch => Box::new(OuchDoor::new(Arc::clone(config))),
        }
    }

    fn secrets(&self, door: TapDoor) -> Box<dyn SecretScan> {
        Box::new(Blank::new(door))
    }
}
