//! The same deeds by mouse or by keyboard alone.
//!
//! By keyboard an element counts as reached only if Tab comes to it, and if one sees that it has the focus.

use fantoccini::key::Key;
use serde_json::{Value, json};

use crate::Tab;

/// Presses of Tab after which an element counts as out of reach: more than any page has stops.
const TABS_MAX: u32 = 150;
/// Tries to click something that is being drawn.
const CLICKS_MAX: u32 = 50;

/// By what a person does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// Clicks.
    Mouse,
    /// Tab, Enter, arrows and letters.
    Keyboard,
}

impl Hand {
    /// Presses a button or follows a link.
    pub async fn press(self, page: &Tab, css: &str) {
        match self {
            Self::Mouse => click(page, css).await,
            Self::Keyboard => {
                reach(page, css).await;
                keys(page, &[char::from(Key::Enter)]).await;
            }
        }
    }

    /// Writes into a field, over what is there.
    pub async fn write(self, page: &Tab, css: &str, text: &str) {
        match self {
            Self::Mouse => {
                let field = page.find(css).await;
                field.click().await.unwrap();
                field.clear().await.unwrap();
                field.send_keys(text).await.unwrap();
            }
            Self::Keyboard => {
                reach(page, css).await;
                page.script("document.activeElement.select()", Value::Null).await;
                keys(page, &text.chars().collect::<Vec<_>>()).await;
            }
        }
    }

    /// Chooses between buying and selling.
    pub async fn side(self, page: &Tab, side: &str) {
        match self {
            Self::Mouse => page.find(&format!("label[for=side-{side}]")).await.click().await.unwrap(),
            Self::Keyboard => {
                reach(page, "input[name=side]:checked").await;
                let arrow = if side == "sell" { Key::Right } else { Key::Left };
                if !is_at(page, &format!("#side-{side}")).await {
                    keys(page, &[char::from(arrow)]).await;
                }
                assert!(is_at(page, &format!("#side-{side}:checked")).await, "an arrow chooses {side}");
            }
        }
    }
}

// What the page redraws between finding and clicking is found again; what lies under a notice is scrolled to the middle, as a person does.
async fn click(page: &Tab, css: &str) {
    for _ in 0..CLICKS_MAX {
        if page.find(css).await.click().await.is_ok() {
            return;
        }
        let scroll = "document.querySelector(arguments[0])?.scrollIntoView({ block: 'center' })";
        page.script(scroll, json!(css)).await;
    }
    panic!("{css} cannot be clicked; the page: {}", page.text().await);
}

async fn is_at(page: &Tab, css: &str) -> bool {
    page.script("return document.activeElement.matches(arguments[0])", json!(css)).await == Value::Bool(true)
}

async fn reach(page: &Tab, css: &str) {
    page.find(css).await;
    for _ in 0..TABS_MAX {
        if is_at(page, css).await {
            assert!(is_seen(page).await, "one sees that {css} has the focus");
            return;
        }
        keys(page, &[char::from(Key::Tab)]).await;
    }
    panic!("Tab never comes to {css}; the page: {}", page.text().await);
}

async fn is_seen(page: &Tab) -> bool {
    let script = "const drawn = getComputedStyle(document.activeElement); return drawn.outlineStyle !== 'none' && parseFloat(drawn.outlineWidth) >= 2";
    page.script(script, Value::Null).await == Value::Bool(true)
}

async fn keys(page: &Tab, keys: &[char]) {
    let strokes: Vec<Value> = keys
        .iter()
        .flat_map(|key| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        })
        .collect();
    page.send("actions", json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] }))
        .await;
}
