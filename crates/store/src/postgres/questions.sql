-- name: save
insert into questions (job, is_open, questions) values ($1, $2, $3)
  on conflict (job) do update set is_open = excluded.is_open, questions = excluded.questions
