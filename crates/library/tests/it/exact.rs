//! Exact lines: codes, variables and whole words first, quoted as written.

use std::fs;

use super::bench::{Bench, Report};

/// The line of its file that the first source names.
fn first_line(bench: &Bench, report: &Report) -> String {
    let Some(source) = report.sources.first() else { panic!("no source: {}", report.text) };
    let (file, line) = source.url.rsplit_once(':').unwrap();
    let text = fs::read_to_string(bench.books().join(file)).unwrap();
    text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap().to_owned()
}

/// The position of a text in the report, which must contain it.
fn position(report: &Report, text: &str) -> usize {
    report.text.find(text).unwrap_or_else(|| panic!("no {text:?} in:\n{}", report.text))
}

const CODES: &str = "Error codes of the boiler

E1: the flame does not start, so that the boiler does not heat; open the gas tap
E2: the water is too hot
E3: the pump does not turn, which may mean that it is blocked
E7: the exhaust is closed
E17: the sensor is broken
E70: the clock is not set
";

#[tokio::test]
async fn a_short_code_is_answered_by_its_own_line() {
    let table = "# Codes\n\n| code | meaning |\n|---|---|\n| E1 | what E1 means is that the flame does not start |\n| E7 | closed exhaust |\n| E17 | sensor |\n";
    let items = "# Codes\n\n- E1: what this code means: the flame does not start\n- E7: closed exhaust\n- E17: sensor\n";
    for (file, text) in [("codes.txt", CODES), ("codes.md", table), ("items.md", items)] {
        let bench = Bench::with(&[
            (file, text),
            ("other.md", "What does it mean to be a boiler? Nothing.\n"),
        ]);
        let report = bench.ask("What does E7 mean?").await;
        assert!(
            first_line(&bench, &report).contains("E7"),
            "{:?}\n{}",
            report.sources,
            report.text
        );
    }
}

#[tokio::test]
async fn a_whole_word_comes_before_its_stem() {
    let bench = Bench::new();
    for room in ["kitchen", "hall", "office", "cellar"] {
        bench.write(
            &format!("{room}.md"),
            format!("# Install a window in the {room}\n\nInstall the window of the {room} with two screws. Each window is installed from inside, and a window is cleaned monthly.\n"),
        );
    }
    bench.write("system.md", "# Systems\n\nThe program runs on several systems; some want a driver.\n\nOn Windows the installer asks for a password first.\n");
    let report = bench.ask("How do I install it on Windows?").await;
    assert_eq!(report.files()[0], "system.md", "{}", report.text);
    let report = bench.ask("windows").await;
    assert_eq!(report.files()[0], "system.md", "{}", report.text);
}

#[tokio::test]
async fn a_variable_a_version_and_a_file_name_are_words_too() {
    let bench = Bench::with(&[(
        "settings.md",
        "# Settings\n\nOUTLAST_POLL_LIMIT is the limit of polls, and of each poll of outlast, and its timeout counts.\n\n\
         OUTLAST_TIMEOUT is the timeout of outlast for each poll, in seconds.\n\n\
         OUTLAST_POLL_TIMEOUT takes milliseconds.\n\n\
         Version 2.8.2 brought the queue of version 8, and 2 more.\n\nVersion 8.2.2 is from July.\n\n\
         The file main.toml holds config for main.\n\nThe file config.toml is optional.\n",
    )]);
    for (question, line) in [
        ("What does OUTLAST_POLL_TIMEOUT set?", "OUTLAST_POLL_TIMEOUT takes milliseconds."),
        ("outlast_poll_timeout", "OUTLAST_POLL_TIMEOUT takes milliseconds."),
        ("When did version 8.2.2 come?", "Version 8.2.2 is from July."),
        ("Do I need config.toml for main?", "The file config.toml is optional."),
    ] {
        let report = bench.ask(question).await;
        assert_eq!(first_line(&bench, &report), line, "{question}\n{}", report.text);
    }
}

#[tokio::test]
async fn the_passage_with_the_rare_word_comes_first() {
    let bench = Bench::new();
    for number in 0..30 {
        bench.write(
            &format!("{number}.md"),
            format!("# Backups, part {number}\n\nA backup of the server is made each night. The server keeps a backup for a week, and the backup of a server costs nothing.\n"),
        );
    }
    bench.write("key.md", "# Keys\n\nThe passphrase is in the safe of the office.\n");
    let report = bench.ask("Where is the passphrase for the backup of the server?").await;
    assert_eq!(report.files()[0], "key.md", "{}", report.text);
}

#[tokio::test]
async fn the_line_breaks_of_a_list_are_kept() {
    let phones =
        "Phone numbers\n\nAda Lovelace 030 1111\nGrace Hopper 030 2222\nMary Shelley 030 3333\n";
    let settings = "# Printer\n\nName: Laser 2\nAddress: 10.0.0.7\nPaper: A4 and A5\n";
    let verse = "# Heather\n\nThe heather blooms,\nthe bees return,\nand in the glooms\nthe candles burn.\n";
    let marked =
        "# Places\n\nThe Oberon library is open until nine,  \nand on Sundays it is closed.\n";
    let cases = [
        (
            "phones.txt",
            phones,
            "What is the number of Grace Hopper?",
            "Grace Hopper 030 2222",
            "Mary Shelley 030 3333",
        ),
        (
            "printer.md",
            settings,
            "Which address has the printer?",
            "Address: 10.0.0.7",
            "Paper: A4 and A5",
        ),
        (
            "heather.md",
            verse,
            "When does the heather bloom?",
            "The heather blooms,",
            "the bees return,",
        ),
        (
            "places.md",
            marked,
            "When is the Oberon library open?",
            "open until nine,",
            "and on Sundays",
        ),
    ];
    for (file, text, question, line, next) in cases {
        let report = Bench::with(&[(file, text)]).ask(question).await;
        let between = &report.text[position(&report, line) + line.len()..position(&report, next)];
        // Without the two spaces, a Markdown reader would join the lines again.
        assert!(
            between.starts_with("  \n") || between.contains(" [1]"),
            "{between:?}\n{}",
            report.text
        );
    }
}

#[tokio::test]
async fn wrapped_prose_is_joined() {
    let prose = "# Soil\n\nThe plum tree wants a chalky soil and a place in the sun, where the wind of the\nwinter cannot reach it and the frost of May does no harm to the first of its\nflowers.\n\nEach sentence of this one is on a line, which is long enough to be prose.\nThe plum is then picked in September, when it comes off the tree by itself.\n";
    let report =
        Bench::with(&[("soil.md", prose)]).ask("Which soil does the plum tree want?").await;
    assert!(report.text.contains("wind of the winter cannot reach it and the frost of May does no harm to the first of its flowers."), "{}", report.text);
    assert!(!report.text.contains("prose.  \n"), "{}", report.text);
}

/// If one line is the answer, a short report contains it.
#[tokio::test]
async fn a_one_line_fact_gets_a_short_report() {
    let bench = super::answers::our_documents();
    let phones =
        "Phone numbers\n\nAda Lovelace 030 1111\nGrace Hopper 030 2222\nMary Shelley 030 3333\n";
    bench.write("phones.txt", phones);
    for (question, fact, most) in [
        ("What is the phone number of Grace Hopper?", "Grace Hopper 030 2222", 16),
        (
            "What is the default of OUTLAST_CONCURRENCY?",
            "`OUTLAST_CONCURRENCY` | number, `5` |",
            40,
        ),
        ("What does exit code 3 mean?", "3 still running when the time given ended", 50),
    ] {
        let report = bench.ask(question).await;
        assert!(position(&report, fact) < position(&report, "[1]"), "{}", report.text);
        assert!(report.text.lines().count() <= most, "{}", report.text);
    }
}

#[tokio::test]
async fn the_title_of_front_matter_is_the_title_of_the_document() {
    let yaml = "---\nlayout: page\ntitle: \"The orchard: a guide\"\n---\n\nThe plum tree wants chalky soil.\n\n# Figs\n\nFigs want shelter.\n";
    let toml =
        "+++\ntitle = 'The vineyard'\ndraft = false\n+++\n\n# The vineyard\n\nVines want slopes.\n";
    let bench = Bench::with(&[("plum.md", yaml), ("vine.md", toml)]);
    for (question, title) in [
        ("Which soil does the plum tree want?", "The orchard: a guide"),
        ("What do figs want?", "The orchard: a guide › Figs"),
        ("What do vines want?", "The vineyard"),
        ("orchard guide plum", "The orchard: a guide"),
    ] {
        let report = bench.ask(question).await;
        assert_eq!(report.sources[0].title.as_deref(), Some(title), "{question}\n{}", report.text);
    }
}

#[tokio::test]
async fn a_name_with_a_capital_is_no_plural() {
    let bench = Bench::with(&[
        (
            "house.md",
            "# Install a window\n\nInstall the window with two screws. Each window is installed from inside, and a window is installed by two.\n",
        ),
        (
            "system.md",
            "# Systems\n\nThe program runs on several systems.\n\nOn Windows it is installed by an administrator.\n",
        ),
    ]);
    for question in ["How do I install it on windows?", "Windows: how is it installed?"] {
        let report = bench.ask(question).await;
        assert_eq!(report.files()[0], "system.md", "{question}\n{}", report.text);
    }
    let report = bench.ask("How is a window installed?").await;
    assert_eq!(report.files()[0], "house.md", "{}", report.text);
}

#[tokio::test]
async fn unknown_words_do_not_suppress_a_passage_with_all_the_others() {
    let text = "# Otters\n\nThe otter sleeps in its holt by day.\n\n# Badgers\n\nThe badger digs a sett.\n";
    let bench = Bench::with(&[("a.md", text)]);
    let report = bench.ask("question 498 How does the otter sleep?").await;
    assert_eq!(first_line(&bench, &report), "The otter sleeps in its holt by day.");
    assert!(report.text.contains("Not found anywhere: \"question\", \"498\"."), "{}", report.text);
    assert!(!report.text.contains("loosely"), "{}", report.text);
}

#[tokio::test]
async fn a_heading_weighs_more_than_a_list_of_changes() {
    let bench = Bench::with(&[
        (
            "CHANGELOG.md",
            "# Changes\n\n## 8.0\n\n- Long output goes through a pager if the output is long.\n- The pager of long output shows colours.\n",
        ),
        (
            "utils.md",
            "# Utilities\n\n## Pager support\n\nFor output that is long, call `echo_via_pager`, which starts the pager of the user.\n",
        ),
    ]);
    let report = bench.ask("How does long output go through a pager?").await;
    assert_eq!(report.files()[0], "utils.md", "{}", report.text);
    let report = bench.ask("What changed for the pager in 8.0?").await;
    assert_eq!(report.files()[0], "CHANGELOG.md", "{}", report.text);
}

#[tokio::test]
async fn a_listing_keeps_its_language_and_its_lines() {
    let lines: String = (0..20).map(|number| format!("line{number}()\n")).collect();
    let text = format!("# Plugin\n\nA plugin that registers a hook:\n\n```js\n{lines}```\n");
    let report = Bench::with(&[("a.md", &text)]).ask("How does a plugin register a hook?").await;
    assert!(report.text.contains(&format!("```js\n{lines}```")), "{}", report.text);
}

#[tokio::test]
async fn a_passage_of_links_is_no_answer() {
    let bench = Bench::with(&[
        (
            "a.md",
            "# Client\n\n- [Close the client](#close)\n- [Destroy the client](#destroy)\n\n## `Client.close([callback])`\n\nSee [close the client](b.md#close).\n",
        ),
        (
            "b.md",
            "# Dispatcher\n\n## Close\n\nWaits for the requests of the client to end, then closes its sockets.\n",
        ),
    ]);
    let report = bench.ask("How do I close the client?").await;
    assert_eq!(report.files(), ["b.md"], "{}", report.text);
}

#[tokio::test]
async fn a_definition_line_is_shown_with_its_paragraph() {
    let text = "# Server\n\n## `bodyLimit`\n\n+ Default: `1048576` (1MiB)\n\nThe maximum payload that the server accepts.\n";
    let report = Bench::with(&[("server.md", text)])
        .ask("Which payload does the server accept at most?")
        .await;
    assert!(
        position(&report, "Default: `1048576` (1MiB)") < position(&report, "The maximum payload")
    );
}

#[tokio::test]
async fn a_passage_that_has_only_part_of_the_question_is_marked() {
    let bench = Bench::with(&[
        (
            "a.md",
            "# Pump\n\nThe pump is in the cellar.\n\nThe filter of the boiler is cleaned in spring.\n",
        ),
        ("b.md", "# Costs\n\nA new valve costs nine euros. The price of the oil is monthly.\n"),
    ]);
    let report = bench.ask("What is the monthly price of cleaning the pump?").await;
    assert!(report.text.contains("No passage has all of the question"), "{}", report.text);
    let report = bench.ask("When is the filter of the boiler cleaned?").await;
    assert!(!report.text.contains("No passage has all"), "{}", report.text);
}
