//! The record of a task in a checkpoint: the name of its server in the configuration, and its own name there. Under another
//! name, a server is another one, and a task's name means nothing to it.

/// For a task of this server.
pub(super) fn of(upstream: &str, task: &str) -> String {
    format!("{upstream}/{task}")
}

/// The task, if it is this server's.
pub(super) fn task<'a>(cursor: &'a str, upstream: &str) -> Option<&'a str> {
    cursor.strip_prefix(upstream)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_at_its_own_server_only() {
        let cursor = of("github", "a/b");
        assert_eq!(task(&cursor, "github"), Some("a/b"));
        assert_eq!(task(&cursor, "git"), None);
        assert_eq!(task(&cursor, "gitlab"), None);
    }
}
