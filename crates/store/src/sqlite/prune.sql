-- name: next_expiry
SELECT removable_at FROM jobs
  WHERE removable_at IS NOT NULL AND (?1 IS NULL OR owner = ?1)
  ORDER BY removable_at LIMIT 1
