//! Window memory of plain cells, shared by handles in one thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pares_sequencer::{Memory, Slot, Vouched};
use pares_types::{Epoch, Position};

/// See module.
#[derive(Clone)]
pub struct Cells {
    slots: Rc<[Cell<Slot>]>,
    recorded: Rc<Cell<Position>>,
    vouched: Rc<Cell<Vouched>>,
    voids: Rc<RefCell<Vec<Position>>>,
    epoch: Epoch,
}

impl Cells {
    pub fn new(capacity: usize, epoch: Epoch, first: Position) -> Self {
        let slots = (0..capacity).map(|_| Cell::new(Slot::EMPTY)).collect();
        Self {
            slots,
            recorded: Rc::new(Cell::new(first)),
            vouched: Rc::new(Cell::new(Vouched::good(first))),
            voids: Rc::default(),
            epoch,
        }
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
    fn vouched(&self) -> Vouched {
        self.vouched.get()
    }
    fn compare_exchange_vouched(&self, expected: Vouched, new: Vouched) -> Result<(), Vouched> {
        match self.vouched.get() {
            found if found == expected => {
                self.vouched.set(new);
                Ok(())
            }
            found => Err(found),
        }
    }
    fn voids(&self) -> usize {
        self.voids.borrow().len()
    }
    fn void(&self, index: usize) -> Position {
        self.voids.borrow()[index]
    }
    fn add_void(&self, index: usize, position: Position) {
        let mut voids = self.voids.borrow_mut();
        if voids.len() == index {
            voids.push(position);
        }
    }
    fn made_for(&self) -> Epoch {
        self.epoch
    }
    fn epoch(&self) -> Epoch {
        self.epoch
    }
}
