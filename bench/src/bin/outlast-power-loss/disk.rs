//! The content of a disk after a power loss: everything that was flushed, and of the rest a random part, in any order,
//! some of it partial. A disk does not damage bytes that were not written.

use std::collections::BTreeMap;
use std::path::Path;

use crate::recording::Event;

/// Disks write a sector completely or not at all.
const SECTOR: usize = 512;

#[derive(Default, Clone)]
struct File {
    flushed: Vec<u8>,
    /// Writes since the last flush, with the numbers of their events.
    pending: Vec<(usize, Change)>,
    /// The position of the next write without an explicit one.
    end: u64,
}

#[derive(Clone)]
enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Length(u64),
}

#[derive(Clone)]
enum Naming {
    Made(String),
    Renamed(String, String),
    Removed(String),
}

#[derive(Default)]
pub(crate) struct Disk {
    /// The files by number, which renaming does not change.
    files: Vec<File>,
    /// The names as the programs see them, and as they are certainly on the disk.
    seen: BTreeMap<String, usize>,
    kept: BTreeMap<String, usize>,
    /// The changes of names since then; a file system applies them in order.
    names: Vec<(Naming, usize)>,
}

/// Returns the moments of the cuts: before and after every flush, the rest at random.
pub(crate) fn moments(events: &[Event], cuts: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    let flushes =
        events.iter().enumerate().filter(|(_, event)| matches!(event, Event::Flushed { .. }));
    let mut moments: Vec<usize> = flushes.flat_map(|(index, _)| [index, index + 1]).collect();
    while moments.len() < cuts {
        moments.push(random.usize(0..=events.len()));
    }
    random.shuffle(&mut moments);
    moments.truncate(cuts);
    moments.sort_unstable();
    moments
}

impl Disk {
    pub(crate) fn take(&mut self, index: usize, event: &Event) {
        match event {
            Event::Opened { file, emptied } => {
                let known = self.seen.contains_key(file);
                let number = self.number(file);
                if !known {
                    self.names.push((Naming::Made(file.clone()), number));
                }
                if *emptied && known {
                    self.change(number, index, Change::Length(0));
                }
            }
            Event::Wrote { file, at, bytes } => {
                let number = self.number(file);
                self.change(number, index, Change::Write { at: *at, bytes: bytes.clone() });
            }
            Event::Appended { file, bytes } => {
                let number = self.number(file);
                let at = self.files[number].end;
                self.change(number, index, Change::Write { at, bytes: bytes.clone() });
            }
            Event::Shortened { file, to } => {
                let number = self.number(file);
                self.change(number, index, Change::Length(*to));
            }
            Event::Flushed { file, covers } => {
                let number = self.number(file);
                let file = &mut self.files[number];
                let (done, left) = std::mem::take(&mut file.pending)
                    .into_iter()
                    .partition(|(index, _)| index < covers);
                file.pending = left;
                let done: Vec<(usize, Change)> = done;
                for (_, change) in &done {
                    apply(&mut file.flushed, change, None);
                }
            }
            Event::NamesFlushed => {
                self.kept = self.seen.clone();
                self.names.clear();
            }
            Event::Renamed { from, to } => {
                if let Some(number) = self.seen.remove(from) {
                    self.seen.insert(to.clone(), number);
                    self.names.push((Naming::Renamed(from.clone(), to.clone()), number));
                }
            }
            Event::Removed { file } => {
                if let Some(number) = self.seen.remove(file) {
                    self.names.push((Naming::Removed(file.clone()), number));
                }
            }
            Event::Said(_) => {}
        }
    }

    fn number(&mut self, file: &str) -> usize {
        if let Some(number) = self.seen.get(file) {
            return *number;
        }
        self.files.push(File::default());
        self.seen.insert(file.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }

    fn change(&mut self, number: usize, index: usize, change: Change) {
        let file = &mut self.files[number];
        file.end = match &change {
            Change::Write { at, bytes } => file.end.max(at + bytes.len() as u64),
            Change::Length(to) => *to,
        };
        file.pending.push((index, change));
    }

    /// Writes the files that are left after a cut at this moment into a folder.
    pub(crate) fn leave(&self, folder: &Path, random: &mut fastrand::Rng) {
        let mut names = self.kept.clone();
        for (naming, number) in self.names.iter().take(random.usize(0..=self.names.len())) {
            match naming {
                Naming::Made(name) => drop(names.insert(name.clone(), *number)),
                Naming::Renamed(from, to) => {
                    names.remove(from);
                    names.insert(to.clone(), *number);
                }
                Naming::Removed(name) => drop(names.remove(name)),
            }
        }
        // Nothing, everything, or each write independently.
        let share = [0, 50, 50, 90, 100][random.usize(0..5)];
        for (name, number) in names {
            let file = &self.files[number];
            let mut bytes = file.flushed.clone();
            for (_, change) in &file.pending {
                if random.u8(0..100) < share {
                    let torn = random.u8(0..100) < 20;
                    apply(&mut bytes, change, torn.then_some(&mut *random));
                }
            }
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }
}

/// Applies a change; with a random generator, only some sectors of it.
fn apply(file: &mut Vec<u8>, change: &Change, torn: Option<&mut fastrand::Rng>) {
    match change {
        Change::Length(to) => file.resize(usize::try_from(*to).unwrap(), 0),
        Change::Write { at, bytes } => {
            let at = usize::try_from(*at).unwrap();
            file.resize(file.len().max(at + bytes.len()), 0);
            let Some(random) = torn else {
                return file[at..at + bytes.len()].copy_from_slice(bytes);
            };
            for (part, sector) in bytes.chunks(SECTOR).enumerate().filter(|_| random.bool()) {
                let from = at + part * SECTOR;
                file[from..from + sector.len()].copy_from_slice(sector);
            }
        }
    }
}
