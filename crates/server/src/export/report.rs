//! Renders the Markdown of a report as HTML that contains only our own tags, whatever the Markdown contains. Tables scroll,
//! bare addresses are links, `[n]` links to source `n`, and formulas are code.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use outlast_core::{Source, address_line, visible, without_hidden};
use outlast_sources::CitationCheck;
use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::addresses::{is_allowed, site, split_addresses};
use super::claims::{self, ClaimMarks};
use super::formulas;

/// A rendered report.
pub(crate) struct Report {
    pub(crate) text: Markup,
    /// Its headings, in order.
    pub(crate) headings: Vec<ReportHeading>,
}

/// A heading of a report.
pub(crate) struct ReportHeading {
    pub(crate) level: HeadingLevel,
    /// The id of its element.
    pub(crate) id: String,
    pub(crate) title: String,
}

/// Renders a report. The number separates the ids of several reports on one page.
pub(crate) fn report(markdown: &str, sources: &[Source], number: usize) -> Report {
    report_with_check(markdown, sources, number, None)
}

/// Renders a report, with a mark at each sentence whose citations were checked.
pub(crate) fn report_with_check(
    markdown: &str,
    sources: &[Source],
    number: usize,
    check: Option<&CitationCheck>,
) -> Report {
    let (markdown, options) = formulas::mark(markdown);
    let marks = check.map(ClaimMarks::new);
    let mut writer = Writer { sources, number, marks, ..Writer::default() };
    for event in Parser::new_ext(&markdown, options) {
        writer.write(event);
    }
    writer.finish()
}

/// The Markdown of reports: that of GitHub, with formulas.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_MATH);

#[derive(Default)]
struct Writer<'a> {
    sources: &'a [Source],
    number: usize,
    html: String,
    /// The text since the last tag: a citation or an address can be in several events.
    text: String,
    /// The number of open blocks. The outermost block takes the direction of its text.
    depth: usize,
    in_code: bool,
    /// For each open link, whether it is rendered as one.
    links: Vec<bool>,
    headings: Vec<ReportHeading>,
    in_heading: bool,
    columns: Vec<Alignment>,
    column: usize,
    in_table_head: bool,
    /// The numbers of footnotes, in the order of their first mention.
    notes: HashMap<String, usize>,
    /// The footnotes by number, and the text that is set aside while one is written.
    note_texts: Vec<(usize, String)>,
    open_notes: Vec<(usize, String)>,
    mentioned: HashSet<usize>,
    /// The claims of the report, if they were checked.
    marks: Option<ClaimMarks<'a>>,
    /// The sources of the open links, if they were checked.
    link_sources: Vec<Option<u32>>,
}

impl Writer<'_> {
    fn write(&mut self, event: Event<'_>) {
        match event {
            // Filtered here, after the parser has decoded entities: an entity can encode a control character or a hidden one.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text.push_str(&visible(&text));
                return;
            }
            Event::Start(_)
            | Event::End(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => self.flush(),
        }
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(code) => {
                self.title(&code);
                self.push(html! { code { (visible(&code)) } });
            }
            Event::InlineMath(formula) => {
                self.title(&formula);
                self.push(html! { code .math dir="ltr" { (visible(formula.trim())) } });
            }
            Event::DisplayMath(formula) => {
                self.push(html! { code .math.block dir="ltr" { (visible(formula.trim())) } });
            }
            Event::FootnoteReference(name) => {
                let (number, note) = (self.number, self.note(&name));
                let id = self.mentioned.insert(note).then(|| format!("r{number}-{note}"));
                self.push(html! { sup { a id=[id] href={ "#f" (number) "-" (note) } { (note) } } });
            }
            Event::SoftBreak => {
                self.title(" ");
                self.html.push('\n');
            }
            Event::HardBreak => self.html.push_str("<br>\n"),
            Event::Rule => self.html.push_str("<hr>\n"),
            Event::TaskListMarker(is_done) => {
                let (sign, word) = if is_done { ("☑", "done") } else { ("☐", "to do") };
                self.push(html! { span .task role="img" aria-label=(word) { (sign) } " " });
            }
            Event::Text(_) | Event::Html(_) | Event::InlineHtml(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.open("p", ""),
            Tag::Heading { level, .. } => {
                let id = format!("h{}-{}", self.number, self.headings.len() + 1);
                self.open(&level.to_string(), &format!(" id=\"{id}\""));
                self.headings.push(ReportHeading { level, id, title: String::new() });
                self.in_heading = true;
            }
            Tag::BlockQuote(_) => self.open("blockquote", ""),
            Tag::CodeBlock(_) => {
                self.html.push_str("<pre dir=\"ltr\"><code>");
                self.in_code = true;
            }
            Tag::List(None) => self.open("ul", ""),
            Tag::List(Some(first)) => self.open("ol", &format!(" start=\"{first}\"")),
            Tag::Item => self.html.push_str("<li>"),
            Tag::FootnoteDefinition(name) => {
                let note = self.note(&name);
                self.open_notes.push((note, std::mem::take(&mut self.html)));
                self.depth += 1;
            }
            Tag::Table(columns) => {
                self.columns = columns;
                // A table that is wider than the page scrolls, by keyboard too.
                self.html.push_str(
                    "<div class=\"table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">",
                );
                self.open("table", "");
            }
            Tag::TableHead => {
                self.html.push_str("<thead><tr>");
                (self.in_table_head, self.column) = (true, 0);
            }
            Tag::TableRow => {
                self.html.push_str("<tr>");
                self.column = 0;
            }
            Tag::TableCell => {
                let name = if self.in_table_head { "th scope=\"col\"" } else { "td" };
                // Not a style attribute: the policy of the page allows none.
                let class = match self.columns.get(self.column) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    Some(Alignment::None | Alignment::Left) | None => "",
                };
                self.html.push_str(&format!("<{name}{class}>"));
                self.column += 1;
            }
            Tag::Emphasis => self.html.push_str("<em>"),
            Tag::Strong => self.html.push_str("<strong>"),
            Tag::Strikethrough => self.html.push_str("<del>"),
            Tag::Link { dest_url, .. } => {
                let is_link = is_allowed(&dest_url);
                let source = self.marks.as_ref().and_then(|marks| marks.source(&dest_url));
                self.link_sources.push(source.filter(|_| is_link));
                self.links.push(is_link);
                if is_link {
                    self.html.push_str(&opening_link(&dest_url));
                }
            }
            // The image is on another server, and loading it would reveal the reader to that server.
            Tag::Image { .. }
            | Tag::MetadataBlock(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.close("p"),
            TagEnd::Heading(level) => {
                self.in_heading = false;
                self.close(&level.to_string());
            }
            TagEnd::BlockQuote(_) => self.close("blockquote"),
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.html.push_str("</code></pre>\n");
            }
            TagEnd::List(is_ordered) => self.close(if is_ordered { "ol" } else { "ul" }),
            TagEnd::Item => self.html.push_str("</li>\n"),
            TagEnd::FootnoteDefinition => {
                self.depth = self.depth.saturating_sub(1);
                if let Some((note, before)) = self.open_notes.pop() {
                    let text = std::mem::replace(&mut self.html, before);
                    self.note_texts.push((note, text));
                }
            }
            TagEnd::Table => {
                self.html.push_str("</tbody>");
                self.close("table");
                self.html.push_str("</div>\n");
            }
            TagEnd::TableHead => {
                self.in_table_head = false;
                self.html.push_str("</tr></thead>\n<tbody>");
            }
            TagEnd::TableRow => self.html.push_str("</tr>\n"),
            TagEnd::TableCell => {
                self.html.push_str(if self.in_table_head { "</th>" } else { "</td>" })
            }
            TagEnd::Emphasis => self.html.push_str("</em>"),
            TagEnd::Strong => self.html.push_str("</strong>"),
            TagEnd::Strikethrough => self.html.push_str("</del>"),
            TagEnd::Link => {
                if self.links.pop() == Some(true) {
                    self.html.push_str("</a>");
                }
                if let Some(cited) = self.link_sources.pop().flatten() {
                    self.mark(cited);
                }
            }
            TagEnd::Image
            | TagEnd::MetadataBlock(_)
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript => {}
        }
    }

    fn open(&mut self, name: &str, attributes: &str) {
        let direction = if self.depth == 0 { " dir=\"auto\"" } else { "" };
        self.html.push_str(&format!("<{name}{attributes}{direction}>"));
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.html.push_str(&format!("</{name}>\n"));
    }

    fn push(&mut self, markup: Markup) {
        self.html.push_str(&markup.into_string());
    }

    /// Adds text to the title of the open heading.
    fn title(&mut self, text: &str) {
        if let Some(heading) = self.headings.last_mut().filter(|_| self.in_heading) {
            heading.title.push_str(&visible(text));
        }
    }

    /// Returns the number of a footnote.
    fn note(&mut self, name: &CowStr<'_>) -> usize {
        let next = self.notes.len() + 1;
        *self.notes.entry(name.to_string()).or_insert(next)
    }

    /// Writes the text since the last tag, with its citations and addresses as links.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if self.in_code || self.links.contains(&true) {
            self.title(&text);
            return self.push(html! { (text) });
        }
        let mut rest = 0;
        for (cited, source) in citations(&text, self.sources) {
            self.plain(&text[rest..cited.start]);
            self.push(citation(source, self.number));
            self.mark(source.number);
            rest = cited.end;
        }
        self.plain(&text[rest..]);
    }

    /// Writes the mark of the claim that ends with this citation.
    fn mark(&mut self, cited: u32) {
        if let Some((at, claim)) = self.marks.as_mut().and_then(|marks| marks.next(cited)) {
            self.push(claims::mark(self.number, at, claim));
        }
    }

    /// Writes text without citations.
    fn plain(&mut self, text: &str) {
        self.title(text);
        for (part, is_address) in split_addresses(text) {
            self.push(html! {
                @if is_address {
                    a .url href=(address_line(part)) rel="noopener noreferrer" { (part) }
                } @else {
                    (part)
                }
            });
        }
    }

    fn finish(mut self) -> Report {
        self.flush();
        self.note_texts.sort_by_key(|(note, _)| *note);
        let (number, notes) = (self.number, std::mem::take(&mut self.note_texts));
        if !notes.is_empty() {
            self.push(html! {
                ol .notes {
                    @for (note, text) in notes {
                        li value=(note) id={ "f" (number) "-" (note) } dir="auto" {
                            (PreEscaped(text))
                            a href={ "#r" (number) "-" (note) } aria-label={ "Back to mention " (note) } { "↩" }
                        }
                    }
                }
            });
        }
        Report { text: PreEscaped(self.html), headings: self.headings }
    }
}

fn opening_link(address: &str) -> String {
    let link = html! { a href=(address_line(address)) rel="noopener noreferrer" {} };
    link.into_string().trim_end_matches("</a>").to_owned()
}

/// The maximum number of digits of a citation.
const MAX_DIGITS: usize = 9;

/// Finds the citations of listed sources, `[n]`.
fn citations<'a>(
    text: &str,
    sources: &'a [Source],
) -> impl Iterator<Item = (Range<usize>, &'a Source)> {
    text.match_indices('[').filter_map(move |(open, _)| {
        let inside = &text[open + 1..];
        let digits = inside.bytes().take(MAX_DIGITS).take_while(u8::is_ascii_digit).count();
        if !inside[digits..].starts_with(']') {
            return None;
        }
        let cited: u32 = inside[..digits].parse().ok()?;
        let source = sources.iter().find(|source| source.number == cited)?;
        Some((open..open + digits + 2, source))
    })
}

/// Renders a citation. The style of reports shows the source while the citation is pointed at or has the focus.
fn citation(source: &Source, number: usize) -> Markup {
    let to = source.number;
    let title = source.title.as_deref().map(without_hidden);
    let title = title.unwrap_or_else(|| address_line(&source.url).into_owned());
    let shown = match site(&source.url) {
        Some(site) => format!("{title} · {site}"),
        None => title,
    };
    html! {
        a .cite href={ "#s" (number) "-" (to) } data-source=(visible(&shown)) { "[" (to) "]" }
    }
}

#[cfg(test)]
mod tests;
