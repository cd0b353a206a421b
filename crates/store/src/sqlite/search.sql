-- name: owe
INSERT OR IGNORE INTO unindexed (job) VALUES (?1)

-- name: forget
DELETE FROM unindexed WHERE job = ?1

-- name: next
SELECT job FROM unindexed LIMIT 1

-- name: put
INSERT OR REPLACE INTO search (rowid, words) VALUES (?1, ?2)

-- name: with_beginning
SELECT term FROM search_words WHERE term >= ?1 LIMIT 1
