//! Disks that are lost, states of some size, settings that differ, and peers that are none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pares_load::{LabError, LabResult, PATIENCE};
use pares_operator::{decide, sites};
use pares_wice::SiteId;

use super::Drill;
use super::faults::{INDECISION, Times};
use super::figures::{BigState, millis, p99_ms, tenth};
use super::load::{Mix, Pace, finish_all};

/// Bytes of an item of the big state: more than a piece of a copy, and less than a client's frame.
const ITEM_BYTES: u64 = 256 << 10;
/// Clients that write it, and how many items each has under way.
const WRITERS: u64 = 4;
/// Longest wait for a site that is filled: a gigabyte takes less than a minute here.
const FILL_PATIENCE: Duration = Duration::from_secs(600);

impl Drill {
    pub(super) fn disks(&mut self) -> LabResult {
        let certifier = self.stage.certifier()?;
        self.fault("lose-one-disk", &[certifier], Self::lose_disk)?;
        let delegate = self.stage.delegate(1)?;
        self.fault("lose-one-disk-there", &[delegate], Self::lose_disk)?;
        let here = self.stage.of(0);
        self.fault("lose-cluster-disks", &here, Self::lose_disks)?;
        let other = self.stage.of(1).into_iter().find(|site| *site != delegate).expect("three sites");
        self.fault("wrong-config", &[other], Self::misconfigure)?;
        self.fault("forged-peer", &[], Self::forge)?;
        self.big_state()
    }

    /// One site's disk is gone; the operator only starts it.
    fn lose_disk(&mut self, victims: &[SiteId]) -> Result<Times, LabError> {
        let (quiet, struck) = (self.quiet(), self.now());
        self.stage.processes.kill_all(victims);
        self.wipe(victims)?;
        let began = self.now();
        self.bring_back(victims)?;
        self.vote(victims, PATIENCE)?;
        let back = self.now() - began;
        std::thread::sleep(self.part);
        Ok(Times { quiet, struck, end: self.now(), resumed: None, back: Some(back) })
    }

    /// All disks of the certifier's cluster are gone, and its sites start before the operator has decided anything: they begin nothing.
    fn lose_disks(&mut self, victims: &[SiteId]) -> Result<Times, LabError> {
        let cluster = victims[0].cluster.0;
        let (quiet, struck) = (self.quiet(), self.now());
        self.stage.processes.kill_all(victims);
        self.wipe(victims)?;
        self.stage.start_sites(victims)?;
        std::thread::sleep(INDECISION);
        let begun = sites::reports(&self.stage.operator).into_iter();
        if begun.filter(|(site, _)| victims.contains(site)).any(|(_, report)| report.apart.is_none()) {
            return Err(LabError::Failed("a cluster on empty disks takes part".into()));
        }
        let decided = self.now();
        decide::lost(&self.stage.operator, cluster, None, PATIENCE)?;
        std::thread::sleep(self.part);
        let (end, began) = (self.now(), self.now());
        self.vote(victims, PATIENCE)?;
        decide::admit(&self.stage.operator, cluster, PATIENCE)?;
        let back = self.now() - began;
        decide::migrate(&self.stage.operator, cluster, PATIENCE)?;
        Ok(Times { quiet, struck, end, resumed: Some(decided), back: Some(back) })
    }

    /// Waits until these sites have everything, and votes.
    fn vote(&self, victims: &[SiteId], patience: Duration) -> LabResult {
        let votes = |site: &SiteId| {
            let report = sites::report(&self.stage.operator, *site);
            report.is_some_and(|report| report.votes && report.apart.is_none() && !report.recalling)
        };
        self.stage.until_within("sites that vote again", patience, |_| victims.iter().all(votes))
    }

    /// A site starts with another certifier in its configuration: it is refused, by name, and comes back when that is right again.
    fn misconfigure(&mut self, victims: &[SiteId]) -> Result<Times, LabError> {
        let (quiet, struck) = (self.quiet(), self.now());
        self.stage.processes.kill_all(victims);
        let file = self.stage.dir().join("sites.toml");
        let io = LabError::io(format!("writing {}", file.display()));
        let right = self.stage.operator.config.to_text();
        let wrong = right.replace("certifier = 0", "certifier = 1");
        assert_ne!(right, wrong, "the drill's certifier is cluster 0");
        let written = std::fs::write(&file, wrong);
        self.stage.start_sites(victims)?;
        self.stage.until("refusals that name the setting", |stage| {
            sites::reports(&stage.operator)
                .iter()
                .any(|(_, report)| report.refused_sites().any(|why| why.contains("`certifier`")))
        })?;
        let restored = std::fs::write(&file, right);
        written.and(restored).map_err(io)?;
        self.stage.processes.kill_all(victims);
        let back = self.bring_back(victims)?;
        Ok(Times { quiet, struck, end: self.now(), resumed: None, back: Some(back) })
    }

    /// A client without a certificate says that it is a site, at the port for sites of every site.
    fn forge(&mut self, _: &[SiteId]) -> Result<Times, LabError> {
        let (quiet, struck) = (self.quiet(), self.now());
        for site in self.stage.all() {
            let place = self.stage.operator.config.place(site).expect("one of its own");
            let mut hello = b"PLNK\x02\x00\x01\x00".to_vec();
            hello.extend(u16::from_be_bytes([site.cluster.0, site.number]).to_le_bytes());
            hello.extend(b"\x05drill\x00");
            let answered = TcpStream::connect(place.peers).and_then(|mut stream| {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.write_all(&[&(hello.len() as u32).to_le_bytes()[..], &hello].concat())?;
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer)?;
                Ok(answer)
            });
            // A connection that is closed at once may be reset.
            self.figures.forged_accepted += u64::from(answered.is_ok_and(|answer| !answer.is_empty()));
        }
        std::thread::sleep(self.part);
        Ok(Times { quiet, struck, end: self.now(), resumed: None, back: None })
    }

    /// A site whose disk is lost is filled with a state of some size, beside a steady load.
    pub(super) fn big_state(&mut self) -> LabResult {
        if self.state_mib == 0 {
            return Ok(());
        }
        self.write_state()?;
        let victim =
            self.stage.of(0).into_iter().find(|site| Ok(*site) != self.stage.certifier().map_err(drop));
        let victim = victim.expect("three sites");
        let others: Vec<SiteId> = self.stage.all().into_iter().filter(|site| *site != victim).collect();
        let loads = self.steady_load(&others)?;
        let quiet = self.now();
        std::thread::sleep(self.part);
        self.stage.processes.kill_all(&[victim]);
        self.wipe(&[victim])?;
        let struck = self.now();
        self.stage.start_sites(&[victim])?;
        self.vote(&[victim], FILL_PATIENCE)?;
        let filled = self.now();
        let told = finish_all(loads);
        let (quiet_p99_ms, fill_p99_ms) = (p99_ms(&told, quiet, struck), p99_ms(&told, struck, filled));
        let p99_ratio = tenth(fill_p99_ms * 100.0 / quiet_p99_ms) / 100.0;
        let filled_ms = millis(filled - struck);
        self.figures.big_state =
            BigState { state_mib: self.state_mib, filled_ms, quiet_p99_ms, fill_p99_ms, p99_ratio };
        self.told.extend(told);
        Ok(())
    }

    fn write_state(&mut self) -> LabResult {
        let items = self.state_mib * (1 << 20) / ITEM_BYTES;
        let mix = Mix::State { items, bytes: ITEM_BYTES };
        let load = self.load(SiteId::new(0, 0), WRITERS, mix, Pace::Open(4))?;
        let count = usize::try_from(items).expect("a few");
        self.stage.until_within("the big state", FILL_PATIENCE, |_| load.done() >= count)?;
        self.told.push(load.finish());
        Ok(())
    }
}
