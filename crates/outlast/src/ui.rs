//! The only module that prints. Standard output is for data; everything else goes to standard error.

mod wrap;
mod progress;
mod table;
mod markdown;

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use outlast_core::{StateKind, SummaryCharge, escape_json, is_shown, printable, visible};
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::Color;
use crate::error::{CommandError, CommandResult};

pub(crate) use progress::Bars;
pub(crate) use table::{Cell, table, table_with_optional};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// Lines longer than this are hard to read, however wide the terminal is.
const WIDEST_PROSE: usize = 100;

/// Decides about colour once, for both streams.
pub(crate) fn set_color(color: Color) {
    match color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// True if only data and errors are shown.
static QUIET: AtomicBool = AtomicBool::new(false);
/// The reason why data could not be written, if known.
static LOST: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Omits progress and remarks (`-q`): data, questions and errors remain.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Makes sure that all data has been written, or returns the reason. A reader that has gone away (`| head`) is not an
/// error.
pub(crate) fn finish() -> CommandResult<()> {
    note(std::io::stdout().flush());
    match LOST.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => {
            let error = anyhow::Error::new(error).context("write to standard output");
            let hint = "what could not be written is incomplete; make room, or write elsewhere";
            Err(CommandError::from(error).hint(hint))
        }
        None => Ok(()),
    }
}

/// Prints the parser's output: help, the version, or the mistake in the command line.
pub(crate) fn print_parser_message(told: &clap::Error) -> ExitCode {
    note(told.print());
    ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(2))
}

/// Stores the first reason why data was lost.
fn note(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        LOST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Prints a line of data.
pub(crate) fn line(text: &str) {
    out(&format!("{text}\n"));
}

/// Prints JSON as data. Characters that would control the terminal are escaped, so that a program reads the same value.
pub(crate) fn json(value: &Value) {
    line(&pretty_json(value));
}

/// Returns the same as text.
pub(crate) fn pretty_json(value: &Value) -> String {
    escape_json(format!("{value:#}"))
}

/// Prints bytes of data unchanged: scripts and pages for other programs.
pub(crate) fn raw(bytes: &[u8]) {
    note(std::io::stdout().write_all(bytes));
}

/// Prints text from outside as data: control characters must not reach the terminal.
pub(crate) fn text(text: &str) {
    line(&make_printable(text));
}

/// Prints a report as data: formatted for a terminal, unchanged for other readers.
pub(crate) fn report(markdown: &str) {
    match terminal_width() {
        // Cleaned where it is rendered: an entity of the Markdown can mean a control character.
        Some(columns) => out(&markdown::render(markdown, columns.min(WIDEST_PROSE))),
        None => text(markdown.trim_end()),
    }
}

/// Prints a line of data, with a hanging indent if it is longer than the terminal is wide. Line ends in the text become
/// spaces.
pub(crate) fn entry(text: &str, hang: usize) {
    let text = text.replace(['\n', '\r', '\t'], " ");
    line(&match terminal_width() {
        Some(columns) => wrap::wrap(&visible(&text), columns, hang),
        None => printable(&text),
    });
}

/// Returns true if data goes to a terminal.
pub(crate) fn is_terminal() -> bool {
    terminal_width().is_some()
}

/// Returns a number with its noun in the singular or the plural.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Prints a heading that is data.
pub(crate) fn title(text: &str) {
    line(&format!("{BOLD}{}{BOLD:#}", one_line(text)));
}

/// Prints a name as data, and how the named job ended.
pub(crate) fn outcome(name: &str, state: StateKind, words: &str) {
    let style = state_style(state);
    let words = if words.is_empty() { String::new() } else { format!("  {}", one_line(words)) };
    line(&format!("{name}  {style}{}{style:#}{words}", state.as_str()));
}

/// Returns true if a person is there who can answer a question.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && is_watched()
}

/// Asks for a yes; returns false for any other answer.
pub(crate) fn confirm(question: &str) -> bool {
    err(&format!("{CYAN}?{CYAN:#} {question} [y/N] "));
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer) {
        Ok(_) => matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"),
        Err(_) => false,
    }
}

/// Prints a name and its value, aligned.
pub(crate) fn fact(name: &str, value: impl Display) {
    set(&format!("{DIM}{name:>12}{DIM:#}  {}", one_line(&value.to_string())), 14);
}

/// Prints a line for each value of this name.
pub(crate) fn facts(name: &str, values: impl IntoIterator<Item = impl Display>) {
    values.into_iter().for_each(|value| fact(name, value));
}

/// Prints a name and its value in the colour of a state.
pub(crate) fn fact_styled(name: &str, value: &str, state: StateKind) {
    let style = state_style(state);
    set(&format!("{DIM}{name:>12}{DIM:#}  {style}{}{style:#}", one_line(value)), 14);
}

/// Prints a line that is not data.
pub(crate) fn remark(text: &str) {
    if is_quiet() {
        return;
    }
    let indent = text.len() - text.trim_start_matches(' ').len();
    print_message(&format!("{text}\n"), indent);
}

/// Prints the meaning of the rows of a progress display, a line each, for a person who watches.
pub(crate) fn captions<'a>(rows: impl Iterator<Item = (String, &'a str)>) {
    if !is_watched() {
        return;
    }
    for (name, text) in rows {
        let room = progress::columns().saturating_sub(name.width() + 2).max(1);
        remark(&format!("{BOLD}{name}{BOLD:#}  {}", short(text, room)));
    }
}

/// Prints a blank line between data and other output, if the same reader sees both.
pub(crate) fn gap() {
    if is_watched() && terminal_width().is_some() {
        remark("");
    }
}

/// Informs a person who watches why a command is waiting.
pub(crate) fn print_waiting(text: &str) {
    if is_watched() {
        remark(&dim(text));
    }
}

/// Prints a next step for a person who watches; scripts need none.
pub(crate) fn aside(text: &str) {
    if is_watched() && terminal_width().is_some() {
        remark(&dim(text));
    }
}

/// Prints a line that is not data, after a mark.
pub(crate) fn mark(mark: LineMark, text: &str) {
    if is_quiet() {
        return;
    }
    let (style, sign) = match mark {
        LineMark::Good => (GREEN.bold(), "\u{2713}"),
        LineMark::Bad => (RED, "\u{2717}"),
        LineMark::Step => (CYAN.bold(), "\u{25b8}"),
        LineMark::Again => (YELLOW.bold(), "\u{21bb}"),
    };
    print_message(&format!("{style}{sign}{style:#} {text}\n"), 2);
}

/// Prints a finding as data: its verdict, its subject, its text, and below it the remedy.
pub(crate) fn print_finding(verdict: Verdict, name: &str, text: &str, fix: Option<&str>) {
    let (style, sign) = match verdict {
        Verdict::Pass => (GREEN, "\u{2713}"),
        Verdict::Warn => (YELLOW, "!"),
        Verdict::Fail => (RED, "\u{2717}"),
        Verdict::Skipped => (DIM, "-"),
    };
    set(&format!("{style}{sign}{style:#} {BOLD}{name:<13}{BOLD:#} {}", one_line(text)), 16);
    if let Some(fix) = fix {
        set(&format!("{:>16}{CYAN}fix:{CYAN:#} {}", "", one_line(fix)), 16);
    }
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Pass,
    /// A server would start, but lack some of its functions.
    Warn,
    /// A server would not work.
    Fail,
    /// It could not be checked.
    Skipped,
}

/// The kind of a report line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineMark {
    /// A success.
    Good,
    /// The death of a process.
    Bad,
    /// The next step.
    Step,
    /// A repetition.
    Again,
}

/// Prints a heading that is not data.
pub(crate) fn heading(text: &str) {
    if !is_quiet() {
        err(&format!("\n{BOLD}{text}{BOLD:#}\n"));
    }
}

/// Returns subdued text that is not data.
pub(crate) fn dim(text: &str) -> String {
    format!("{DIM}{text}{DIM:#}")
}

/// Prints a failure, and after a blank line the next step.
pub(crate) fn error(failed: &CommandError) {
    // Parts of it may come from another program.
    print_message(&format!("{RED}error:{RED:#} {}\n", visible(&failed.to_string())), 2);
    if let Some(hint) = failed.next_step() {
        print_message(&format!("\n{CYAN}hint:{CYAN:#} {}\n", visible(hint)), 2);
    }
}

/// Cuts the text to this number of columns.
pub(crate) fn short(text: &str, columns: usize) -> String {
    let clean = one_line(text);
    if clean.width() <= columns {
        return clean;
    }
    let mut left = columns.saturating_sub(1);
    let mut start = String::new();
    for character in clean.chars() {
        let width = character.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        start.push(character);
    }
    format!("{start}\u{2026}")
}

/// Formats the cost of a job in a list, as the page does.
pub(crate) fn cost(charge: Option<&SummaryCharge>) -> String {
    match charge {
        None => "free".to_owned(),
        Some(charge) if charge.is_final => charge.amount.to_string(),
        // Reserved, or perhaps paid.
        Some(charge) => format!("~{}", charge.amount),
    }
}

/// Formats a duration in one or two of its largest units.
pub(crate) fn ago(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Formats the time that something took, to the second.
pub(crate) fn took(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn state_style(state: StateKind) -> Style {
    match state {
        StateKind::Queued => DIM,
        StateKind::Running => CYAN,
        StateKind::Waiting => YELLOW,
        StateKind::Succeeded => GREEN,
        StateKind::Failed => RED,
        StateKind::Cancelled => YELLOW,
    }
}

/// Returns the width for data; `None` if it does not go to a terminal.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Puts text from outside on one line: line ends and control characters become spaces.
fn one_line(text: &str) -> String {
    let is_end = |character: char| matches!(character, '\u{2028}' | '\u{2029}');
    let space = |character: char| match character.is_control() || is_end(character) {
        true => ' ',
        false => character,
    };
    visible(&text.chars().map(space).collect::<String>()).into_owned()
}

/// Prepares text from outside as data: on a terminal hidden characters appear as their numbers; other readers get them
/// unchanged.
fn make_printable(text: &str) -> Cow<'_, str> {
    if is_terminal() { visible(text) } else { Cow::Owned(printable(text)) }
}

/// Removes control characters, except those of outlast's colours. This is the last step before every write, so no
/// caller can forget it.
fn without_controls(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|character| !is_shown(character)) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = color_code(rest);
        clean.push_str(&rest[..colour]);
        let dropped = if colour > 0 { 0 } else { rest.chars().next().map_or(0, char::len_utf8) };
        rest = &rest[colour + dropped..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// Returns the length of the colour sequence (`ESC [ digits m`) at the start of the text; 0 if there is none.
fn color_code(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\x1b[") else { return 0 };
    let end = numbers.find(|character: char| !character.is_ascii_digit() && character != ';');
    match end {
        Some(end) if numbers[end..].starts_with('m') => "\x1b[m".len() + end,
        _ => 0,
    }
}

/// Returns true if lines on standard error may have colour.
fn has_colour() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// Returns true if a person is watching standard error.
fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line of data in our own words, styled; broken between words on a terminal.
fn set(text: &str, hang: usize) {
    line(&terminal_width().map_or(text.to_owned(), |columns| wrap::wrap(text, columns, hang)));
}

/// Prints a line that is not data; broken between words on a terminal.
fn print_message(text: &str, hang: usize) {
    let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map(|size| size.ws_col);
    match columns {
        Ok(columns @ 1..) => err(&wrap::wrap(text, usize::from(columns), hang)),
        _ => err(text),
    }
}

fn out(text: &str) {
    note(anstream::stdout().write_all(without_controls(text).as_bytes()));
}

fn err(text: &str) {
    drop(anstream::stderr().write_all(without_controls(text).as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        let cases = [
            (0, "0 ms"),
            (59, "59 s"),
            (60, "1 min"),
            (3_599, "59 min"),
            (3_600, "1 h"),
            (172_800, "2 d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(ago(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn only_our_own_colours_get_through_to_the_terminal() {
        let table = [
            ("\x1b[1mbold\x1b[0m\n\ttab", "\x1b[1mbold\x1b[0m\n\ttab"),
            ("\x1b[38;5;1mred\x1b[m", "\x1b[38;5;1mred\x1b[m"),
            ("\x1b]52;c;aGk=\x07", "]52;c;aGk="),
            ("\x1b[2J\x1b[1A\x1b[?25l\x1b[", "[2J[1A[?25l["),
            ("\u{9b}2J\u{9d}0;x\u{9c}\u{202e}\r\x08\x7f", "2J0;x"),
            ("\x1b\x1b[1mx", "\x1b[1mx"),
        ];
        for (text, expected) in table {
            assert_eq!(without_controls(text), expected, "{text:?}");
        }
        assert_eq!(one_line("a\r\nb\x1b\u{2028}c\u{202e}d\u{e0041}"), "a  b  c<U+202E>d<U+E0041>");
    }

    #[test]
    fn long_text_is_cut_with_an_ellipsis() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdefg", 6), "abcde\u{2026}");
        assert_eq!(short("a\nb", 6), "a b");
        assert_eq!(short("\u{6f22}\u{5b57}\u{6f22}\u{5b57}", 5), "\u{6f22}\u{5b57}\u{2026}");
    }
}
