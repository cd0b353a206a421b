//! `outlast wrap --install` and `--uninstall`: makes one server's entry in a client's file go through wrap, and
//! restores the original bytes. `server.rs` has the meaning of an entry, `client_files/place.rs` its position.

mod server;
mod record;

#[cfg(test)]
mod tests;

use anyhow::Context as _;
use clap::ValueEnum as _;
use serde_json::Value;

use super::init::{passed_on, places};
use crate::cli::{Client, Global, WrapChange, WrapInstallArgs};
use crate::client_files::diff;
use crate::client_files::document::Document;
use crate::client_files::json::EditRefusal;
use crate::client_files::place::{Place, servers};
use crate::config::Places;
use crate::error::{CommandError, CommandResult, DONE, OrUsage as _, refuse};
use crate::installed::InstalledProgram;
use crate::ui::{self, LineMark};
use record::{InstallRecord, ReplacedEntry};
use server::{ServerEntry, Wrapper, unwrap_entry};

/// Runs `outlast wrap --install CLIENT SERVER` or `--uninstall CLIENT SERVER`; with --dry-run the change is only shown.
pub(super) fn run(global: &Global, args: WrapInstallArgs) -> CommandResult {
    let Some((change, client, server)) = args.requested_change() else {
        return refuse("no client and no server are named", "see `outlast wrap --help`");
    };
    let client = known_client(client)?;
    let places = places()?;
    let path = client.file(&places);
    let document = Document::read(&path)?;
    let text = document.text.as_deref().unwrap_or_default();
    let job = Job {
        client,
        name: server,
        file: places.short(&path),
        document: &document,
        is_trial: args.dry_run,
    };
    let listed = job.or_refused(servers(client, text, project().as_deref()))?;
    let found = listed.iter().find(|(place, _)| place.name() == server);
    let Some((place, entry)) = found else { return Err(job.unknown(&listed, change)) };
    let read = ServerEntry::read(entry).map_err(|why| job.not_understood(&why))?;
    match change {
        WrapChange::Install => job.install(global, place, entry, &read),
        WrapChange::Uninstall => job.uninstall(place, entry, &read),
    }
}

/// A server of a client, as doctor lists it.
pub(super) struct ListedServer {
    pub(super) name: String,
    /// The program before it, if that is `outlast wrap`.
    pub(super) wrapped_by: Option<String>,
}

/// Returns the servers in a client's file other than this program; none if the file is missing or cannot be read.
pub(super) fn list(client: Client, places: &Places) -> Vec<ListedServer> {
    let Ok(Document { text: Some(text), .. }) = Document::read(&client.file(places)) else {
        return Vec::new();
    };
    let mut listed = Vec::new();
    for (place, entry) in servers(client, &text, project().as_deref()).unwrap_or_default() {
        let wrapped_by = match ServerEntry::read(&entry) {
            Ok(ServerEntry::Outlast) => continue,
            Ok(ServerEntry::Wrapped { program, .. }) => Some(program),
            Ok(ServerEntry::Program { .. } | ServerEntry::Address(_)) | Err(_) => None,
        };
        listed.push(ListedServer { name: place.name().to_owned(), wrapped_by });
    }
    listed
}

/// Returns the folder whose own servers apply.
fn project() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}

fn known_client(name: &str) -> CommandResult<Client> {
    Client::from_str(name, false).map_err(|_| {
        let known: Vec<_> = Client::value_variants().iter().map(|client| client.id()).collect();
        let why = format!("`{name}` is no client whose file is known");
        CommandError::wrong(why, format!("give one of {}", known.join(", ")))
    })
}

/// One entry of one client's file.
struct Job<'a> {
    client: Client,
    name: &'a str,
    /// The path of the file as people write it.
    file: String,
    document: &'a Document,
    is_trial: bool,
}

impl Job<'_> {
    fn install(
        &self,
        global: &Global,
        place: &Place,
        entry: &Value,
        read: &ServerEntry,
    ) -> CommandResult {
        let program = InstalledProgram::find()?.lasting_path()?;
        match read {
            ServerEntry::Outlast => {
                let why = format!("`{}` is outlast itself", self.name);
                return refuse(why, "its calls last without wrap");
            }
            ServerEntry::Wrapped { program: found, .. } if *found == program => {
                ui::mark(
                    LineMark::Good,
                    &format!("{} is wrapped already; nothing was changed.", self.whose()),
                );
                return DONE;
            }
            ServerEntry::Wrapped { .. } | ServerEntry::Program { .. } | ServerEntry::Address(_) => {
            }
        }
        let mut args = vec!["wrap".to_owned(), "--name".to_owned(), self.name.to_owned()];
        args.extend(passed_on(global)?);
        let wrapper = Wrapper { client: self.client, program: &program, args: &args };
        let changes = wrapper.put_before(read, entry);
        let after = self.or_refused(place.change(self.text(), &changes))?;
        if self.show(&after) {
            return DONE;
        }
        let mut record = self.record();
        let [now, then] = [self.text(), after.as_str()].map(|text| self.entry_in(place, text));
        let (now, then) = (now?, then?);
        // An entry that is already wrapped moves to this program; its original content stays recorded.
        let was = match (read, record.of(&place.path, &now)) {
            (ServerEntry::Wrapped { .. }, Some(known)) if known.is == now => {
                Some(known.was.clone())
            }
            (ServerEntry::Wrapped { .. }, _) => None,
            _ => Some(now),
        };
        if let Some(was) = was {
            record.keep(ReplacedEntry { path: place.path.clone(), was, is: then })?;
        }
        self.document.replace(&after)?;
        self.told_path();
        ui::mark(LineMark::Good, &format!("{} goes through outlast wrap.", self.whose()));
        if let Some(project) = place.project() {
            ui::remark(&format!("  The entry is the one of the project {project}."));
        }
        if let ServerEntry::Address(_) = read {
            ui::remark(
                "  Its address and headers are in the entry's `env`. If the server wants you to sign in (OAuth), wrap \
                 cannot do that: undo this.",
            );
        }
        ui::remark(&format!(
            "  Start {} again. To undo: outlast wrap --uninstall {} {}",
            self.client.title(),
            self.client.id(),
            self.name
        ));
        DONE
    }

    fn uninstall(&self, place: &Place, entry: &Value, read: &ServerEntry) -> CommandResult {
        let mut record = self.record();
        let now = self.entry_in(place, self.text())?;
        let known = record.of(&place.path, &now).cloned();
        let ServerEntry::Wrapped { behind, .. } = read else {
            ui::mark(
                LineMark::Good,
                &format!("{} is not wrapped; nothing was changed.", self.whose()),
            );
            if let (Some(known), false) = (known, self.is_trial) {
                record.forget(&known)?;
            }
            return DONE;
        };
        let untouched = known.as_ref().filter(|known| is_as_written(place, known, &now, entry));
        let (after, said) = match untouched {
            Some(known) => {
                let span = self.or_refused(place.span(self.text()))?;
                let text = self.text();
                let after = format!("{}{}{}", &text[..span.start], known.was, &text[span.end..]);
                (after, format!("{} is as it was before wrap.", self.whose()))
            }
            None => {
                let was = known.as_ref().and_then(|known| place.meaning(&known.was).ok());
                let changes = unwrap_entry(self.client, behind, entry, was.as_ref());
                let after = self.or_refused(place.change(self.text(), &changes))?;
                let why = match known {
                    Some(_) => {
                        "The entry was changed since the install: that stays, and wrap is gone from it."
                    }
                    None => {
                        "What the entry was before is not known here: wrap was taken out of it as it is."
                    }
                };
                (after, format!("{} runs without wrap. {why}", self.whose()))
            }
        };
        if self.show(&after) {
            return DONE;
        }
        self.document.replace(&after)?;
        if let Some(known) = known {
            record.forget(&known)?;
        }
        self.told_path();
        ui::mark(LineMark::Good, &said);
        ui::remark(&format!("  Start {} again.", self.client.title()));
        DONE
    }

    fn text(&self) -> &str {
        self.document.text.as_deref().unwrap_or_default()
    }

    fn record(&self) -> InstallRecord {
        InstallRecord::beside(&self.document.path)
    }

    fn entry_in(&self, place: &Place, text: &str) -> CommandResult<String> {
        Ok(text[self.or_refused(place.span(text))?].to_owned())
    }

    /// Shows the changes, if the user asked only for that; returns true in this case.
    fn show(&self, after: &str) -> bool {
        if self.is_trial {
            let name = self.document.path.display().to_string();
            ui::raw(diff::unified_diff(&name, Some(self.text()), Some(after)).as_bytes());
        }
        self.is_trial
    }

    fn told_path(&self) {
        ui::line(&self.document.path.display().to_string());
    }

    fn whose(&self) -> String {
        format!("{} in {}", self.name, self.file)
    }

    fn or_refused<T>(&self, made: Result<T, EditRefusal>) -> CommandResult<T> {
        made.with_context(|| format!("{} cannot be changed; nothing was written", self.file))
            .or_usage("fix the file and try again")
    }

    fn not_understood(&self, why: &str) -> CommandError {
        let why = format!("the entry {} cannot be changed: {why}", self.whose());
        let hint = "nothing was written; put `outlast wrap -- ` before its command by hand";
        CommandError::wrong(why, hint)
    }

    /// Returns the error for an unknown server, with the existing ones listed, and removes its record.
    fn unknown(&self, listed: &[(Place, Value)], change: WrapChange) -> CommandError {
        let (whose, title) = (self.whose(), self.client.title());
        if change == WrapChange::Uninstall && !self.is_trial {
            match self.record().forget_name(self.name) {
                Ok(true) => {
                    let why = format!("there is no server {whose} any more");
                    return CommandError::wrong(why, "what was kept of it is removed");
                }
                Ok(false) => {}
                Err(error) => return error.into(),
            }
        }
        let names: Vec<&str> = listed.iter().map(|(place, _)| place.name()).collect();
        let hint = match (names.is_empty(), &self.document.text) {
            (false, _) => format!("its servers are {}", names.join(", ")),
            (true, Some(_)) => format!("{title} has no servers there; add one first"),
            (true, None) => format!("there is no such file; is {title} used here?"),
        };
        CommandError::wrong(format!("there is no server {whose}"), hint)
    }
}

/// Returns true if an entry is the one that the install wrote, also if the client has reformatted its file since.
fn is_as_written(place: &Place, known: &ReplacedEntry, now: &str, entry: &Value) -> bool {
    // Comments have no meaning, so a new one is recognised by its marker.
    let signs = |text: &str| ["#", "//", "/*"].map(|sign| text.matches(sign).count());
    known.is == now
        || place.meaning(&known.is).is_ok_and(|is| is == *entry) && signs(&known.is) == signs(now)
}
