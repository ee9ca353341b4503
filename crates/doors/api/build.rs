//! Lists the pages.

fn main() {
    pares_pages::write("pages", "../../base/http/pages");
}
