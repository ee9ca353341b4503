//! Lists the pages.

#[path = "../../base/http/build/list.rs"]
mod list;

fn main() {
    list::write("pages", "../../base/http/pages");
}
