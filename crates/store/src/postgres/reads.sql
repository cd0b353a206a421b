-- name: newest_jobs
select seq from jobs where owner = $1 and seq < $2 order by seq desc offset $3 limit 1
