//! stub
use super::*;
pub(crate) struct Wice;
impl Wice { pub(super) fn new() -> Self { Self } }
impl World {
    pub(super) fn begin_protocol(&mut self) {}
    pub(super) fn on_wice_message(&mut self, _: usize, _: pares_wice::Message) {}
    pub(super) fn on_tick(&mut self) {}
    pub(super) fn submit(&mut self, _: &crate::server::Executed) {}
    pub(super) fn certifier_side(&self) -> usize { 0 }
    pub(super) fn move_certifier(&mut self) {}
}
