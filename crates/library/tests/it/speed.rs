//! Measurements, not checks: `cargo test -p outlast-provider --test library -- --ignored --nocapture figures`

use tokio::time::Instant;

use super::answers::our_documents;
use super::bench::{Bench, ask, research};

#[tokio::test]
#[ignore = "prints figures"]
async fn figures() {
    let ours = our_documents();
    let library = ours.library();
    for name in ["our documents, cold", "our documents, warm", "our documents, warm again"] {
        let start = Instant::now();
        ask(&library, &research("How does a job survive a crash?")).await;
        println!("{name}: {:?}", start.elapsed());
    }
    let bench = Bench::new();
    let words: Vec<String> =
        (0..3_000).map(|number| format!("w{:x}rd", number * 7_919 % 65_536)).collect();
    let mut seed = 1_usize;
    for number in 0..2_000 {
        let mut text = format!("# Document {number}\n\n");
        for paragraph in 0..25 {
            if paragraph % 5 == 0 {
                text.push_str(&format!("## Part {paragraph} of {}\n\n", words[number]));
            }
            for _ in 0..60 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push_str(&words[(seed >> 33) % words.len()]);
                text.push(' ');
            }
            text.push_str("and so on.\n\n");
        }
        bench.write(&format!("{}/{number}.md", number % 40), text);
    }
    let library = bench.library();
    let question = format!("How do {} and {} work with part {}?", words[5], words[77], words[900]);
    for name in ["2,000 files, cold", "2,000 files, warm", "2,000 files, warm again"] {
        let start = Instant::now();
        let report = ask(&library, &research(&question)).await;
        println!("{name}: {:?} ({})", start.elapsed(), report.text.lines().last().unwrap());
    }
}
