//! The rules of a robots.txt (RFC 9309) for this program.

use url::Url;

/// The name by which a robots.txt addresses this program.
const AGENT: &str = "outlast";

/// The part of the file that is read.
const MAX_BYTES: usize = 500 << 10;

/// The rules that apply to this program; without rules everything is allowed.
#[derive(Debug, Default)]
pub(super) struct Robots(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    allows: bool,
    pattern: String,
}

impl Robots {
    /// Reads the groups that name this program or, if there are none, those for every program.
    pub(super) fn parse(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let (mut own, mut general) = (Vec::new(), Vec::new());
        let (mut names_us, mut names_all, mut is_named) = (false, false, false);
        // True while the lines that name the programs of a group follow one another.
        let mut in_names = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or("");
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            let allows = match key.as_str() {
                "user-agent" => {
                    if !in_names {
                        (names_us, names_all, in_names) = (false, false, true);
                    }
                    names_us |= value.eq_ignore_ascii_case(AGENT);
                    names_all |= value == "*";
                    is_named |= names_us;
                    continue;
                }
                "allow" => true,
                "disallow" => false,
                _ => continue,
            };
            in_names = false;
            if value.is_empty() {
                continue;
            }
            let rule = || Rule { allows, pattern: value.to_owned() };
            if names_us {
                own.push(rule());
            }
            if names_all {
                general.push(rule());
            }
        }
        Self(if is_named { own } else { general })
    }

    /// Returns true unless the longest pattern that matches the address disallows it.
    pub(super) fn allow(&self, url: &Url) -> bool {
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let matching = self.0.iter().filter(|rule| matches(&rule.pattern, &path));
        matching.max_by_key(|rule| (rule.pattern.len(), rule.allows)).is_none_or(|rule| rule.allows)
    }
}

/// Compares in linear time: each part between stars is searched once, from the left.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return !to_the_end || rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    if to_the_end { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4: the examples of RFC 9309, and the group that applies.
    #[test]
    fn the_longest_rule_of_the_own_group_decides() {
        let general = "User-agent: *\nDisallow: /private # not here\nAllow: /private/open\nDisallow: /*.gif$\nDisallow:\n";
        let named = format!(
            "{general}\nuser-agent: Bot\nUser-Agent: OUTLAST\ncrawl-delay: 5\nDisallow: /a*b\n"
        );
        let cases = [
            (general, "/", true),
            (general, "/private", false),
            (general, "/private/x", false),
            (general, "/private/open?x=1", true),
            (general, "/x/y.gif", false),
            (general, "/x/y.gif?z", true),
            (&named, "/private", true),
            (&named, "/a/x/b/c", false),
            (&named, "/b", true),
            ("User-agent: outlast\n\nUser-agent: *\nDisallow: /\n", "/x", false),
            ("User-agent: outlast\nAllow: /\nUser-agent: *\nDisallow: /\n", "/x", true),
            ("<html>not found</html>", "/x", true),
        ];
        for (text, path, allowed) in cases {
            let url = Url::parse(&format!("https://a.example{path}")).unwrap();
            assert_eq!(Robots::parse(text).allow(&url), allowed, "{path} by {text}");
        }
        let stars = format!("User-agent: *\nDisallow: /{}z", "*a".repeat(2_000));
        let url = Url::parse(&format!("https://a.example/{}", "a".repeat(100_000))).unwrap();
        assert!(Robots::parse(&stars).allow(&url));
    }
}
