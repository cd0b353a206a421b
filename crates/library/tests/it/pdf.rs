//! PDF files: their passages and citations, and that no PDF does harm.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use outlast_core::ResearchKind;
use outlast_library::{ConvertLimits, Converters};

use super::bench::{Bench, ask, converters, converting, of_kind, research};
use super::reports::check;

const PLUM: &str = "# Plums\n\nThe plum tree wants chalky soil.\n";

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/pdfs").join(name);
    fs::read(path).unwrap()
}

fn with_pdfs(names: &[&str]) -> Bench {
    let bench = Bench::with(&[("plum.md", PLUM)]);
    for name in names {
        bench.write(name, fixture(name));
    }
    bench
}

/// A file of these objects, numbered from 1; the first is the catalog.
fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    for (number, object) in (1..).zip(objects) {
        file.extend(format!("{number} 0 obj\n").into_bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    file.extend(b"trailer\n<</Root 1 0 R>>\n%%EOF\n");
    file
}

fn stream(entries: &str, bytes: &[u8]) -> Vec<u8> {
    let mut object = format!("<</Length {} {entries}>>stream\n", bytes.len()).into_bytes();
    object.extend(bytes);
    object.extend(b"\nendstream");
    object
}

/// One page with this content, followed by more objects from number 6 on.
fn page(resources: &str, content: Vec<u8>, more: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        format!(
            "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>{resources}>>>>"
        )
        .into_bytes(),
        content,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ];
    objects.extend_from_slice(more);
    pdf(&objects)
}

#[tokio::test]
async fn an_answer_from_a_pdf_is_cited_with_its_page() {
    let bench = with_pdfs(&["boiler.pdf", "coffee.pdf", "leave.pdf", "pump.pdf"]);
    let cases = [
        (
            "When does the inspection of the boiler take place?",
            "boiler.pdf:p2",
            "The inspection takes place every October.",
        ),
        ("What does the boiler code F28 mean?", "boiler.pdf:p1", "F28 No gas reaches the burner"),
        (
            "Who used blotting paper to filter coffee?",
            "coffee.pdf:p1",
            "The official account credits a housewife from Dresden, who used blotting paper from the exercise book of her son.",
        ),
        (
            "Which roasts clog the filter?",
            "coffee.pdf:p2",
            "Darker roasts are more brittle and produce more fines when ground, which clog the filter",
        ),
        (
            "How long is parental leave?",
            "leave.pdf:p2",
            "Parental leave is six months for each parent, and it may be taken in up to three parts.",
        ),
        (
            "Until when are unused days of leave kept?",
            "leave.pdf:p1",
            "- Unused days are kept until the end of March.",
        ),
        (
            "What is done with the water pump before the frost?",
            "pump.pdf:p2",
            "Drain the pump before the first frost and store it in the cellar; frost cracks the housing.",
        ),
    ];
    for (question, source, sentence) in cases {
        let report = bench.ask(question).await;
        check(&report);
        assert_eq!(report.sources[0].url, source, "{question}: {}", report.text);
        assert!(report.text.contains(sentence), "{question}: {}", report.text);
    }
    let report = bench.ask("What soil does the plum tree want?").await;
    assert_eq!(report.sources[0].url, "plum.md:3");
}

#[tokio::test]
async fn columns_ligatures_accents_and_hyphenated_words_are_read_correctly() {
    let bench = with_pdfs(&["coffee.pdf", "boiler.pdf"]);
    let report = bench.ask("What were the filters of coffee manufactured from?").await;
    let text = &report.text;
    assert!(text.contains("The filters were manufactured from unbleached cellulose with a basis weight of sixty grams per square metre."), "{text}");
    assert!(
        report.sources[0]
            .title
            .as_deref()
            .unwrap()
            .starts_with("On the Efficient Filtration of Coffee › "),
        "{report:?}",
        report = report.sources
    );
    let report = bench.ask("Which approaches failed in Zürich and Kraków?").await;
    assert!(
        report.text.contains("Naïve approaches in Zürich and Kraków failed."),
        "{}",
        report.text
    );
    let report = bench.ask("Was muß bei der Öffnung für die Zuluft gemeldet werden?").await;
    assert!(report.text.contains("größere Störungen müssen gemeldet werden."), "{}", report.text);
}

#[tokio::test]
async fn running_titles_are_not_quoted() {
    let report =
        with_pdfs(&["pump.pdf"]).ask("What are the notes of the caretaker on bearings?").await;
    assert!(report.text.contains("greased every spring"), "{}", report.text);
    assert!(
        !report.text.contains("Notes of the caretaker") && !report.text.contains("- 3 -"),
        "{}",
        report.text
    );
    // One for each page, and the plum.
    assert!(report.text.contains("4 passages in 2 files"), "{}", report.text);
}

/// Two passages of one page share a source, because a citation cannot point more precisely than a page.
#[tokio::test]
async fn passages_of_one_page_share_their_source() {
    let bench = with_pdfs(&["boiler.pdf"]);
    for kind in [ResearchKind::Research, ResearchKind::Results, ResearchKind::Search] {
        let report =
            ask(&bench.library(), &of_kind(kind, "boiler pilot flame sensor F75 burner gas")).await;
        check(&report);
        assert!(report.sources.len() <= 2, "{:?}", report.sources);
        assert_eq!(report.sources[0].url, "boiler.pdf:p1", "{}", report.text);
    }
}

#[tokio::test]
async fn pdfs_that_cannot_be_read_are_counted_and_the_others_answer() {
    let bench = with_pdfs(&["pump.pdf", "locked.pdf"]);
    bench.write("broken.pdf", &fixture("boiler.pdf")[..500]);
    bench.write("empty.pdf", "");
    bench.write("odd.pdf", "The plum tree, but not a PDF.");
    let picture = stream("/Type/XObject/Subtype/Image/Width 1/Height 1", b"\0");
    bench.write("scanned.pdf", page("/XObject<</I 6 0 R>>", stream("", b"/I Do"), &[picture]));
    for _cold_then_warm in 0..2 {
        let report = bench.ask("What burns the seal of the water pump?").await;
        assert_eq!(report.sources[0].url, "pump.pdf:p1", "{}", report.text);
        let note = report.text.lines().last().unwrap();
        let expected = "in 2 files of 1 folder. 5 files were left out: 3 PDFs that could not be read, 1 PDF that is encrypted, 1 PDF without text (scanned?).";
        assert!(note.contains(expected), "{note}");
    }
}

/// A naive reader would produce a gigabyte or more from each of these, or never finish.
#[tokio::test]
async fn traps_are_left_out_and_the_others_answer() {
    let bench = with_pdfs(&["pump.pdf"]);
    let drawn = b"BT /F 9 Tf (plum) Tj ET ".repeat(10_000);
    let many = String::from_utf8(page("", stream("", &drawn), &[])).unwrap();
    let many = many.replace("/Contents 4 0 R", &format!("/Contents[{}]", "4 0 R ".repeat(5_000)));
    bench.write("many.pdf", many);
    let own = "/XObject<</X 6 0 R>>";
    let form = stream(
        "/Type/XObject/Subtype/Form/Resources<</XObject<</X 6 0 R>>>>",
        b"/X Do /X Do /X Do",
    );
    bench.write("forms.pdf", page(own, stream("", b"/X Do"), &[form]));
    bench.write("deep.pdf", page("", stream("", "[".repeat(100_000).as_bytes()), &[]));
    bench.write("dicts.pdf", page(&"/A<<".repeat(50_000), stream("", b"BT ET"), &[]));
    bench.write(
        "self.pdf",
        pdf(&[b"1 0 R".to_vec(), b"<</Type/Pages/Kids[2 0 R 2 0 R]>>".to_vec()]),
    );
    let limits = ConvertLimits { time: Duration::from_secs(10), ..ConvertLimits::default() };
    let converters = Converters { limits, ..converters() };
    let library = converting(&[bench.books()], &bench.cache(), converters).unwrap();
    let report = ask(&library, &research("What burns the seal of the water pump?")).await;
    assert_eq!(report.sources[0].url, "pump.pdf:p1", "{}", report.text);
    let note = report.text.lines().last().unwrap();
    assert!(note.contains("in 2 files of 1 folder. 5 files were left out:"), "{note}");
}

#[tokio::test]
async fn a_file_name_is_never_read_as_an_option_of_the_converter() {
    for name in ["-v.pdf", "-.pdf", "--help.pdf", "a b\n$(id).pdf", "http:x.pdf"] {
        let bench = Bench::with(&[("plum.md", PLUM)]);
        bench.write(name, fixture("pump.pdf"));
        let report = bench.ask("What burns the seal of the water pump?").await;
        assert!(report.sources[0].url.ends_with(".pdf:p1"), "{name}: {}", report.text);
    }
}

#[tokio::test]
async fn sixty_pdfs_are_read_once() {
    let bench = with_pdfs(&[]);
    for number in 0..60 {
        bench.write(&format!("{number}.pdf"), fixture("pump.pdf"));
    }
    let report = bench.ask("What burns the seal of the water pump?").await;
    assert!(report.text.contains("181 passages in 61 files"), "{}", report.text);
    let report = bench.ask("What burns the seal of the water pump?").await;
    assert!(!report.progress.iter().any(|seen| seen.message.starts_with("Reading")));
}

#[tokio::test]
async fn without_pdftotext_pdfs_are_named_with_an_install_hint_and_read_later() {
    let bench = with_pdfs(&["boiler.pdf", "coffee.pdf", "leave.pdf", "pump.pdf"]);
    let missing = Converters { pdftotext: "/nowhere/pdftotext".into(), ..converters() };
    let question = "What burns the seal of the water pump?";
    let without = converting(&[bench.books()], &bench.cache(), missing.clone()).unwrap();
    for _cold_then_warm in 0..2 {
        let report = ask(&without, &research(question)).await;
        let expected = "4 files were left out: 4 PDFs (boiler.pdf, coffee.pdf, leave.pdf and 1 more; install poppler-utils for pdftotext).";
        assert!(report.text.contains(expected), "{}", report.text);
    }
    assert_eq!(bench.ask(question).await.sources[0].url, "pump.pdf:p1");
    // Text that was read stays searchable when the converter is removed again.
    let report = ask(&without, &research(question)).await;
    assert_eq!(report.sources[0].url, "pump.pdf:p1", "{}", report.text);
}

#[tokio::test]
async fn a_pdf_that_changed_is_read_again_and_one_that_did_not_is_not() {
    let bench = with_pdfs(&["pump.pdf"]);
    assert_eq!(bench.ask("seal of the water pump").await.files()[0], "pump.pdf");
    bench.write("pump.pdf", fixture("leave.pdf"));
    let report = bench.ask("How long is parental leave?").await;
    assert_eq!(report.sources[0].url, "pump.pdf:p2");
    assert!(report.progress.iter().any(|seen| seen.message == "Reading 1 of 1 files"));
    let report = bench.ask("How long is parental leave?").await;
    assert!(!report.progress.iter().any(|seen| seen.message.starts_with("Reading")));
}

/// The version of an index is in the four bytes at offset 60 of its file.
#[tokio::test]
async fn an_index_from_before_pdf_support_is_rebuilt() {
    let bench = with_pdfs(&["pump.pdf"]);
    bench.ask("plum").await;
    let files = fs::read_dir(bench.cache()).unwrap().map(|entry| entry.unwrap().path());
    let path =
        files.into_iter().find(|path| path.extension().is_some_and(|end| end == "db")).unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.write_all(&1_u32.to_be_bytes()).unwrap();
    drop(file);
    let report = bench.ask("seal of the water pump").await;
    assert!(report.progress.iter().any(|seen| seen.message == "Reading 2 of 2 files"));
    assert_eq!(report.files()[0], "pump.pdf");
}
