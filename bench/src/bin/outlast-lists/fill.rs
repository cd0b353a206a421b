//! Fills a store without its own code: a million regular inserts would take an hour.

/// The number of jobs per thousand that belong to the biggest owner; the small owner has [`SMALL`], others share the
/// rest.
const BIGGEST: u64 = 500;
/// The number of jobs of the small owner.
const SMALL: u64 = 100;
/// The number of different words besides those that many jobs have.
const WORDS: u64 = 20_000;

/// The owners whose lists are read.
pub(crate) const OWNERS: [&str; 3] = ["nobody", "small", "biggest"];

/// The columns of a job that both databases know, with their values; `n` is its number from 1 to `jobs`.
///
/// Arithmetic has its own brackets, because `||` binds more tightly in SQLite. Three in five jobs are turns of conversations of three. One in twenty failed, one in a hundred was cancelled, one in ten is the
/// library's. The days are the last sixty before `today`.
fn columns(jobs: u64, now: i64) -> Vec<(&'static str, String)> {
    let step = (jobs / SMALL).max(1);
    let owner = format!(
        "CASE WHEN n % {step} = 0 THEN 'small' WHEN n * 7919 % 1000 < {BIGGEST} THEN 'biggest'
           ELSE 'owner-' || ((n * 7919 % 1000 - {BIGGEST}) * (n * 7919 % 1000 - {BIGGEST}) / 12500) END"
    );
    let at = format!("{now} - ({jobs} - n) * {}", 60 * 86_400_000 / jobs as i64);
    let text = |text: &str| text.to_owned();
    vec![
        ("owner", owner),
        ("conversation", text("CASE WHEN n % 5 < 3 THEN 'c' || (n / 5 / 60 * 20 + n / 5 % 20) || '-' || (n % 5) END")),
        ("turn", text("n / 5 % 60 / 20 + 1")),
        (
            "profile",
            text("CASE WHEN n % 10 = 9 THEN 'library 01' WHEN n % 5 = 3 THEN 'openai https://api.example 01'
                  ELSE 'perplexity/agent https://api.example 01' END"),
        ),
        ("workflow", text("'deep_research'")),
        ("title", text("'Question ' || n || ' about w' || (n * 31 % 20000)")),
        ("title_folded", text("'question ' || n || ' about w' || (n * 31 % 20000)")),
        ("priority", text("0")),
        ("visibility", text("'promised'")),
        ("max_failures", text("2")),
        ("attempt_timeout", text("1000")),
        (
            "state",
            text("CASE WHEN n % 100 = 37 THEN 'cancelled' WHEN n % 20 = 11 THEN 'failed' ELSE 'succeeded' END"),
        ),
        ("ended_at", at.clone()),
        ("remote", text("CASE WHEN n % 100 = 37 THEN 'not_needed' END")),
        ("fence", text("1")),
        ("checkpoint", text("'{\"at\":\"not_begun\"}'")),
        ("failures", text("'[]'")),
        ("created_at", at.clone()),
        ("updated_at", at),
        ("bytes", text("100")),
    ]
}

/// The ledger's columns, read from the inserted jobs. One run of a day in a thousand is unclear.
const LEDGER: &str = "INSERT INTO ledger (job, run, owner, provider, model, at, day, reserved, amount, kind, state)
    SELECT id, 1, owner, provider, 'model-' || (seq % 4), created_at, created_at / 86400000, 5000000,
      CASE WHEN seq % 1000 < 999 THEN 4000000 + seq % 1000 END, CASE WHEN seq % 1000 < 999 THEN 'reported' ELSE 'unknown' END,
      CASE WHEN seq % 1000 < 999 THEN 'spent' ELSE 'maybe' END
    FROM jobs WHERE provider <> 'library'";

/// Returns the words of a job: one that all have, one that half have, and thirty of [`WORDS`], low numbers more often
/// than high ones.
fn words(number: &str) -> String {
    format!("'w' || (({number} * 7919 + k * 104729) % {WORDS} * (({number} + k * 31) % 997) / 997)")
}

/// Returns the statements that fill a new SQLite store.
pub(crate) fn sqlite(jobs: u64, now: i64) -> String {
    let (names, values): (Vec<_>, Vec<_>) = columns(jobs, now).into_iter().unzip();
    let words = words("seq");
    format!(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN;
         WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {jobs})
         INSERT INTO jobs (id, rev, {}) SELECT printf('%016x%016x', n * 2654435761 % 4294967296 * 4294967296, n), 1, {} FROM numbers;
         UPDATE meta SET value = 1 WHERE name = 'rev';
         INSERT INTO bodies (job, ask, output) SELECT seq, '{{\"messages\":[]}}', NULL FROM jobs;
         {LEDGER};
         WITH RECURSIVE places(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM places WHERE k < 30)
         INSERT INTO search (rowid, words)
           SELECT seq, 'question ' || iif(seq % 2, 'half ', '') || char(167) || 'o' || lower(hex(owner)) || ' ' || char(167) || 'p' ||
             lower(hex(provider)) || ' ' || iif(state = 'succeeded', char(167) || 's ', '') ||
             (SELECT group_concat({words}, ' ') FROM places) FROM jobs;
         COMMIT;",
        names.join(", "),
        values.join(", ")
    )
}

/// Returns the statements that fill a new PostgreSQL store.
pub(crate) fn postgres(jobs: u64, now: i64) -> String {
    let (names, values): (Vec<_>, Vec<_>) = columns(jobs, now).into_iter().unzip();
    let words = words("seq");
    format!(
        "SET maintenance_work_mem = '512MB'; SET synchronous_commit = off;
         INSERT INTO jobs (id, failed, {}) SELECT lpad(to_hex(n * 2654435761 % 4294967296), 8, '0') || lpad(to_hex(n), 24, '0'), 0, {}
           FROM generate_series(1::bigint, {jobs}) AS n;
         INSERT INTO owners (owner, bytes) SELECT owner, sum(bytes) FROM jobs GROUP BY owner;
         INSERT INTO bodies (job, ask) SELECT seq, '{{\"messages\":[]}}' FROM jobs;
         INSERT INTO revs (job, rev) SELECT seq, 0 FROM jobs;
         {LEDGER};
         DROP INDEX search_words;
         INSERT INTO search (job, words)
           SELECT seq, array_to_tsvector(array['question', '\u{a7}o' || encode(convert_to(owner, 'UTF8'), 'hex'),
               '\u{a7}p' || encode(convert_to(provider, 'UTF8'), 'hex')] || CASE WHEN seq % 2 = 1 THEN array['half'] ELSE array[]::text[] END
             || CASE WHEN state = 'succeeded' THEN array['\u{a7}s'] ELSE array[]::text[] END
             || (SELECT array_agg(DISTINCT {words}) FROM generate_series(1, 30) AS k)) FROM jobs;
         CREATE INDEX search_words ON search USING gin (words);
         ANALYZE",
        names.join(", "),
        values.join(", ")
    )
}
