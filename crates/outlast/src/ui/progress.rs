//! A line that moves while something runs; on a terminal only. Elsewhere each change is a line of its own.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{remark, watched};

/// A progress bar.
pub(crate) struct Bar {
    bar: ProgressBar,
    last: String,
}

impl Bar {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "  {spinner:.cyan} {bar:28.cyan/dim} {pos:>3} %  {wide_msg}",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("\u{2501}\u{2578}\u{2500}"));
        }
        if watched() {
            bar.enable_steady_tick(Duration::from_millis(90));
        }
        Self { bar, last: String::new() }
    }

    /// Shows how far it has come.
    pub(crate) fn at(&mut self, percent: u64, message: &str) {
        self.bar.set_position(percent);
        self.bar.set_message(message.to_owned());
        if !watched() && message != self.last {
            remark(&format!("  {percent:>3} %  {message}"));
            message.clone_into(&mut self.last);
        }
    }

    /// Takes it away.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}
