-- name: add
INSERT INTO title_parts (segment, part, jobs) VALUES (?1, ?2, ?3)

-- name: owed
SELECT coalesce(max(seq), 0) FROM jobs

-- name: titles
SELECT seq, owner, title_folded FROM jobs WHERE seq >= ?1 AND seq < ?2

-- name: forget
DELETE FROM title_parts WHERE segment = ?1

-- name: forget_old
DELETE FROM title_parts WHERE segment < ?1

-- name: index_next_oldest
SELECT coalesce(min(seq), 0) FROM jobs

-- name: index_next_insert
INSERT INTO title_segments VALUES (?1)

-- name: end
SELECT coalesce(max(segment) + 1, 0) FROM title_segments

-- name: segments
SELECT value FROM json_each(?1)
