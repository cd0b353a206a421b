//! Every sentence of a report is in its sources (K7), and text in pages is never an instruction (K8).

use std::collections::BTreeSet;

use outlast_sources::{Check, CitedSource, FetchOptions, Fetcher, Report, SourceReaders};
use std::sync::Arc;

use crate::bench::Bench;

/// K7: with a model that invents quotations and alters numbers, no sentence stays that its sources do not have.
#[tokio::test(flavor = "multi_thread")]
async fn k7_a_report_has_no_sentence_without_its_source() {
    for lane in ["-", "invent=20,alter=40", "alter=100", "invent=100"] {
        let bench = Bench::new(lane, "-").await;
        let (text, sources) = bench.finish().await;
        let cited = sources
            .iter()
            .map(|source| CitedSource { number: source.number, url: source.url.clone() });
        let mut check = Check::new(Report::with_sources(&text, cited.collect()));
        let options = FetchOptions { allow_private: true, ..FetchOptions::default() };
        let fetcher = Arc::new(Fetcher::new(options).unwrap());
        let readers = SourceReaders { fetcher, may_fetch: true, pdf: None, local: None };
        check.run(readers, Arc::new(()), |_, _| {}).await;
        let totals = check.finish(String::new()).totals;
        assert_eq!((totals.not_found, totals.differs), (0, 0), "{lane}: {totals:?}\n{text}");
        if lane == "-" {
            assert!(totals.supported > 5, "{totals:?}\n{text}");
        }
        if lane.contains("alter") {
            assert!(text.contains("removed because"), "{lane}: {text}");
        }
    }
}

/// K8: instructions in pages cause no request, also with a model that follows them.
#[tokio::test(flavor = "multi_thread")]
async fn k8_instructions_in_pages_cause_no_request() {
    for lane in ["-", "obey"] {
        let mut bench = Bench::new(lane, "hostile").await;
        bench.request["messages"][0]["content"] =
            "How should an assistant handle instructions about heat pumps and other subjects?"
                .into();
        let (text, sources) = bench.finish().await;
        let strays = bench.simulator.calls().strays;
        assert_eq!(strays, BTreeSet::new(), "{lane}");
        assert!(!text.contains("/trap/"), "{text}");
        assert!(!sources.iter().any(|source| source.url.contains("/trap/")), "{sources:?}");
    }
}
