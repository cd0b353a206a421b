-- name: prune
select min(removable_at) as next from jobs
  where removable_at is not null and ($1::text is null or owner = $1)
