//! Whether power was lost since the servers ran: the note `boot`.

use std::path::Path;

use pares_config::DurabilitySetting;
use pares_roles::World;

use crate::notes;

/// In which boot of the host servers ran last; not there after a stop in order.
const BOOT: &str = "boot";

/// What is known of the end of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is there.
    Whole,
    /// Power may have taken what was not released.
    Untold,
    /// Power may have taken what was released.
    InDoubt,
    /// What was released is not there.
    Lost,
}

impl End {
    pub(super) fn begins_another(self) -> bool {
        matches!(self, Self::InDoubt | Self::Lost)
    }
}

/// Notes that servers run in this boot of the host, and what being told promises.
pub(super) fn note_boot(
    world: &impl World,
    boot: u128,
    durability: DurabilitySetting,
) -> std::io::Result<()> {
    let runs_in = noted(boot, durability);
    if notes::read(world, BOOT) == Some(runs_in) { Ok(()) } else { notes::write(world, BOOT, runs_in) }
}

/// What the boot says that servers ran in last, if they were not stopped in order.
pub(super) fn end_of_logs(world: &impl World, boot: u128) -> End {
    notes::read(world, BOOT).map_or(End::Whole, |ran_in| after(ran_in, boot))
}

fn after(ran_in: u64, boot: u128) -> End {
    let is_same = boot != 0 && ran_in >> 1 == number_of(boot);
    match (is_same, ran_in & 1) {
        (true, _) => End::Whole,
        (false, 0) => End::Untold,
        (false, _) => End::InDoubt,
    }
}

/// Twice the number of the boot, and 1 if being told does not survive the loss of power.
fn noted(boot: u128, durability: DurabilitySetting) -> u64 {
    number_of(boot) << 1 | u64::from(durability == DurabilitySetting::Os)
}

/// 63 bits of a boot's id.
fn number_of(boot: u128) -> u64 {
    (boot as u64 ^ (boot >> 64) as u64) >> 1
}

/// Notes that all that was written is on disks. Only for who started the servers, after all ended and their logs were synced.
///
/// # Errors
/// As the system says: then the end of the logs is in doubt if the host is started again before the next start.
pub fn end(world: &impl World) -> std::io::Result<()> {
    world.remove_file(Path::new(BOOT))?;
    world.sync_dir(Path::new(""))
}

/// Whether servers ran since the last stop in order.
#[must_use]
pub fn is_running(world: &impl World) -> bool {
    notes::read(world, BOOT).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_ends_in_doubt_after_unknown_or_new_boot() {
        let (one, other) =
            (0x1234_5678_9abc_def0_1111_2222_3333_4444, 0xffff_0000_ffff_0000_5555_6666_7777_8888);
        let ran = |boot| [DurabilitySetting::Disk, DurabilitySetting::Os].map(|promise| noted(boot, promise));
        assert_eq!(ran(one).map(|ran_in| after(ran_in, one)), [End::Whole, End::Whole]);
        assert_eq!(ran(one).map(|ran_in| after(ran_in, other)), [End::Untold, End::InDoubt]);
        assert_eq!(ran(0).map(|ran_in| after(ran_in, 0)), [End::Untold, End::InDoubt]);
    }
}
