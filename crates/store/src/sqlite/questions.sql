-- name: save
INSERT INTO questions (job, is_open, questions) VALUES (?1, ?2, ?3)
  ON CONFLICT (job) DO UPDATE SET is_open = excluded.is_open, questions = excluded.questions
