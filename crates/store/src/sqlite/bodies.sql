-- name: write
UPDATE bodies SET output = ?2, raw = ?3, text = ?4 WHERE job = ?1
