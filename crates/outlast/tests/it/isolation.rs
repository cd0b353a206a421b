//! Isolation of owners: the short form of `scripts/isolation`.

use outlast_simulator::{Options, Simulator};
use outlast_testkit::isolation::{self, Plan, Servers};

use crate::support::binary;

/// E7: no answer gives ids, texts and times of one owner to another; and no log has a token or a key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e7_three_owners_hear_nothing_of_each_other() {
    let options = Options { speed: 1000.0, ..Options::default() };
    let simulator = Simulator::start(options).await.unwrap();
    let servers = Servers::start(binary(), simulator.url(), "trace").await;
    let plan = Plan { operations: 2_000, connections: 4, seed: 7 };
    let sent = || simulator.requests().into_iter().map(|seen| seen.body).collect();
    let report = isolation::run(servers, plan, sent).await;
    assert!(report.pairs > 200 && report.attacked > 20 && report.ids > 100, "{report:?}");
}
