-- name: show
with held as (select seq from jobs
    where id = $1 and state = 'running' and worker = $2 and fence = $3 for update)
  insert into partials (job, text) select seq, $4 from held
  on conflict (job) do update set text = excluded.text returning job
