//! What few orders have, beside the orders.

use super::node::{Node, Special};
use super::store::Store;
use super::terms::Terms;
use pares_table::{IndexTable, Slab, SlabIndex};
use pares_types::{Quantity, TimeInForce};

/// What few orders have, found by the number of the order's node.
#[derive(Clone, Debug)]
pub(super) struct Specials {
    values: Slab<Special>,
    places: IndexTable,
    /// The node of each, by the number of its place.
    owners: Vec<SlabIndex<Node>>,
}

impl Specials {
    pub(super) fn new() -> Self {
        Self { values: Slab::with_capacity(0), places: IndexTable::new(), owners: Vec::new() }
    }

    fn place(&self, node: SlabIndex<Node>) -> SlabIndex<Special> {
        let owner = |special: SlabIndex<Special>| self.owners[special.number() as usize] == node;
        self.places.get(u64::from(node.number()), owner).expect("a special order has its special")
    }

    pub(super) fn get(&self, node: SlabIndex<Node>) -> &Special {
        &self.values[self.place(node)]
    }

    pub(super) fn get_mut(&mut self, node: SlabIndex<Node>) -> &mut Special {
        let place = self.place(node);
        &mut self.values[place]
    }

    pub(super) fn add(&mut self, node: SlabIndex<Node>, special: Special) {
        let place = self.values.insert(special);
        let number = place.number() as usize;
        if number == self.owners.len() {
            self.owners.push(node);
        }
        self.owners[number] = node;
        let owners = &self.owners;
        self.places.insert(u64::from(node.number()), place, |special| {
            u64::from(owners[special.number() as usize].number())
        });
    }

    pub(super) fn remove(&mut self, node: SlabIndex<Node>) {
        let place = self.place(node);
        self.places.remove(u64::from(node.number()), place);
        self.values.remove(place);
    }
}

impl Store {
    /// Changes how long an attached or held order stays and what it shows at most.
    pub(super) fn change_in_place(
        &mut self,
        slot: SlabIndex<Node>,
        time_in_force: TimeInForce,
        display: Quantity,
    ) {
        let order = self.order(slot);
        self.unnote(slot);
        let hidden = self.special(slot).map_or(Quantity::ZERO, |special| special.hidden);
        let terms = Terms { time_in_force, display, ..Terms::of(&order) };
        self.set_terms(slot, &terms);
        if self.nodes[slot].rank.traits().is_special() {
            self.specials.get_mut(slot).hidden = hidden;
        }
        self.hide(slot);
        self.note(slot);
    }

    /// An order on the book that shows more than it is to show hides the rest.
    fn hide(&mut self, slot: SlabIndex<Node>) {
        let (shown, at) = (self.shown(slot), self.nodes[slot].level);
        let display = self.special(slot).map_or(Quantity::ZERO, |special| special.display);
        if display.is_zero() || shown <= display || at == SlabIndex::NONE {
            return;
        }
        let more = shown.minus(display);
        let special = self.specials.get_mut(slot);
        special.hidden = special.hidden.plus(more);
        let level = &mut self.levels[at];
        (level.shown, level.hidden) = (level.shown.minus(more), level.hidden.plus(more));
    }

    /// A detached stop order's trigger is reached.
    pub(super) fn elect(&mut self, slot: SlabIndex<Node>) {
        self.specials.get_mut(slot).elected = true;
    }

    /// Shows as much of a special order as it wants to; says how much that is.
    pub(super) fn show(&mut self, slot: SlabIndex<Node>) -> Quantity {
        let remaining = self.nodes[slot].remaining;
        let special = self.specials.get_mut(slot);
        let shown = if special.display.is_zero() { remaining } else { special.display.min(remaining) };
        special.hidden = remaining.minus(shown);
        shown
    }
}
