//! `outlast upgrade --check`: how to upgrade this program. Asks no network: the tool that installed it knows the newest
//! version.

use crate::error::{CommandResult, DONE};
use crate::installed::InstalledProgram;
use crate::ui;

pub(super) fn check() -> CommandResult {
    let InstalledProgram { path, way } = InstalledProgram::find()?;
    let version = env!("CARGO_PKG_VERSION");
    ui::line(&format!("outlast {version}, {}: {}", way.name(), path.display()));
    ui::line(&format!("To upgrade: {}", way.upgrade()));
    DONE
}
