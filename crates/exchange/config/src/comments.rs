//! The comment on each setting in the configuration file of a new system: what it is, its unit, its legal range, its default.
//!
//! `cargo xtask tidy` checks that every setting has one. docs/operations/settings.md says more of each.

/// Setting and comment, one a line.
fn comments() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("comments.txt").lines().filter_map(|line| line.split_once(": "))
}

/// The comment on a setting.
fn comment(setting: &str) -> Option<&'static str> {
    comments().find(|(name, _)| *name == setting).map(|(_, comment)| comment)
}

/// A configuration file with a comment before each setting; of a list of tables before the first.
pub(crate) fn with_comments(text: &str) -> String {
    let mut commented = String::from(
        "# Configuration of a Pares system. Stop all nodes before you change this file.\n# `pares check-config` checks it, and lists what to consider before production.\n\n",
    );
    let (mut last, mut table) = (String::new(), "");
    for line in text.lines() {
        let key = line.split(" = ").next().unwrap_or_default();
        let setting = if line.starts_with('[') {
            table = line.trim_start_matches('[').trim_end_matches(']');
            table.to_owned()
        } else if table.is_empty() {
            key.to_owned()
        } else {
            format!("{table}.{key}")
        };
        if let Some(comment) = comment(&setting).filter(|_| setting != last) {
            commented.push_str(&format!("# {comment}\n"));
            last = setting;
        }
        commented.push_str(line);
        commented.push('\n');
    }
    commented
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FeedConfig, SystemConfig};

    /// A new system's file does not have them.
    fn is_optional(setting: &str) -> bool {
        ["operator_key", "hosts", "lanes", "mirror"].contains(&setting) || setting.starts_with("feed")
    }

    #[test]
    fn new_config_comments_every_setting_and_is_default() {
        let fresh = SystemConfig::fresh();
        let text = fresh.text();
        assert_eq!(SystemConfig::parse(&text).unwrap(), fresh);
        for (setting, comment) in comments().filter(|(setting, _)| !is_optional(setting)) {
            let named = text.contains(&format!("\n# {comment}\n{setting} = "))
                || text.contains(&format!("\n# {comment}\n[{setting}]\n"))
                || text.contains(&format!("\n# {comment}\n[[{setting}]]"));
            assert!(named, "{setting}");
            assert_eq!(text.matches(comment).count(), 1, "{setting}");
        }
    }

    #[test]
    fn what_a_feed_is_told_has_comments_of_its_own() {
        let with_feed = SystemConfig { feed: Some(FeedConfig::default()), ..SystemConfig::fresh() };
        let text = with_feed.text();
        assert_eq!(SystemConfig::parse(&text).unwrap(), with_feed);
        let (gateways, feed) = text.split_once("[feed]\n").unwrap();
        assert!(gateways.contains("# \"on\": all gateway ports"));
        for line in feed.lines().take_while(|line| !line.starts_with('[')) {
            let Some((setting, value)) = line.split_once(" = ") else { continue };
            let comment = comment(&format!("feed.{setting}")).unwrap_or_else(|| panic!("{setting}"));
            assert!(feed.contains(&format!("# {comment}\n{line}\n")), "{setting}");
            let default = comment.rsplit_once("Default ").map(|(_, default)| default.trim_end_matches('.'));
            let default = default.map(|default| default.split(", ").next().unwrap_or_default());
            assert!(default.is_none_or(|default| default == value), "{line}: {comment}");
        }
    }

    #[test]
    fn a_comments_default_is_that_of_a_new_system() {
        let text = toml::to_string(&SystemConfig::fresh()).unwrap();
        let with_default = comments()
            .filter(|(setting, _)| !["instruments", "day"].contains(setting) && !is_optional(setting));
        for (setting, comment) in with_default {
            let (_, default) = comment.rsplit_once("Default ").unwrap();
            let line = format!("{setting} = {}\n", default.trim_end_matches('.'));
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
