//! Window memory of plain cells, shared by handles in one thread.

use std::cell::Cell;
use std::rc::Rc;

use pares_sequencer::{Memory, Slot};
use pares_types::{Epoch, Position};

/// See module.
#[derive(Clone)]
pub struct Cells {
    slots: Rc<[Cell<Slot>]>,
    recorded: Rc<Cell<Position>>,
    epoch: Epoch,
}

impl Cells {
    pub fn new(capacity: usize, epoch: Epoch, first: Position) -> Self {
        let slots = (0..capacity).map(|_| Cell::new(Slot::EMPTY)).collect();
        Self { slots, recorded: Rc::new(Cell::new(first)), epoch }
    }
}

impl Memory for Cells {
    fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }
    fn load(&self, index: u64) -> Slot {
        self.slots[index as usize].get()
    }
    fn compare_exchange(&self, index: u64, expected: Slot, new: Slot) -> Result<(), Slot> {
        let slot = &self.slots[index as usize];
        if slot.get() != expected {
            return Err(slot.get());
        }
        slot.set(new);
        Ok(())
    }
    fn recorded(&self) -> Position {
        self.recorded.get()
    }
    fn raise_recorded(&self, to: Position) {
        self.recorded.set(self.recorded.get().max(to));
    }
    fn made_for(&self) -> Epoch {
        self.epoch
    }
    fn epoch(&self) -> Epoch {
        self.epoch
    }
}
