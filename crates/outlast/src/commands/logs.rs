//! `outlast logs`: the log of the workers that run in the background.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use crate::cli::{Global, LogsArgs};
use crate::detached::log;
use crate::error::{CommandResult, DONE};
use crate::ui;

/// The interval between looks at the file.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) async fn run(global: &Global, args: LogsArgs) -> CommandResult {
    let config = super::load_config(global, &[])?;
    let path = log::path(&config.data_dir);
    let mut lines = Vec::new();
    // A log that was started again continues the previous one.
    for path in [path.with_added_extension("1"), path.clone()] {
        lines.extend(read(&path)?.lines().map(str::to_owned));
    }
    if lines.is_empty() {
        ui::remark(&format!("No worker has logged anything to {}.", path.display()));
    }
    let from = lines.len().saturating_sub(args.lines);
    lines.iter().skip(from).for_each(|line| ui::text(line));
    if args.follow {
        follow(&path).await?;
    }
    DONE
}

/// Prints what is added to the file, until Ctrl-C.
async fn follow(path: &Path) -> CommandResult<()> {
    let mut open: Option<File> = None;
    let mut part = String::new();
    let mut is_first = true;
    loop {
        let is_same = |file: &File| {
            let now = std::fs::metadata(path).ok().map(|now| now.ino());
            file.metadata().ok().map(|then| then.ino()) == now
        };
        // The rest of a file that was started again is read before the new one.
        if let Some(file) = &mut open {
            let mut added = Vec::new();
            file.read_to_end(&mut added).with_context(|| format!("read {}", path.display()))?;
            part.push_str(&String::from_utf8_lossy(&added));
            while let Some((line, rest)) = part.split_once('\n') {
                ui::text(line);
                part = rest.to_owned();
            }
        }
        if open.as_ref().is_none_or(|file| !is_same(file)) {
            open = File::open(path).ok();
            if let Some(file) = open.as_mut().filter(|_| is_first) {
                // The lines so far were printed before.
                std::io::Seek::seek(file, std::io::SeekFrom::End(0))?;
            }
        }
        is_first = false;
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Returns the text of a log; nothing if there is none.
fn read(path: &Path) -> CommandResult<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("read {}", path.display())).into())
        }
    }
}
