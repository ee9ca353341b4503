//! stub
#[derive(Clone, Debug)]
pub(crate) enum Message {}
impl super::World {
    pub(super) fn on_entry_logged(&mut self, _: usize, _: u64) {}
    pub(super) fn on_log_message(&mut self, _: usize, _: usize, _: Message) {}
}
