//! The statements in `.sql` files.

use std::fs;

use crate::database::Database;

/// A statement that names a missing table or column, or gives a column a value of another type, is refused here.
#[tokio::test(flavor = "multi_thread")]
async fn every_statement_fits_the_schema() {
    let database = Database::fresh().await;
    let _store = database.open().await;
    let client = database.client().await;
    let mut prepared = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        for named in fs::read_to_string(&path).unwrap().split("-- name: ").skip(1) {
            let (name, statement) = named.split_once('\n').unwrap();
            if let Err(error) = client.prepare(statement).await {
                panic!("{}: {name}: {error:?}", path.display());
            }
            prepared += 1;
        }
    }
    assert!(prepared > 50, "{prepared}");
}
