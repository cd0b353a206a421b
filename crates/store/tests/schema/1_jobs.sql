-- A schema-1 database as the program of that time left it: a job in every state, with all that comes with it.
-- 1794709260000 is the moment the test clock starts at.

PRAGMA application_id = 1869968492;
PRAGMA user_version = 1;
UPDATE meta SET value = 21 WHERE name = 'rev';

INSERT INTO jobs (seq, id, owner, conversation, turn, profile, workflow, title, title_folded, priority, visibility,
  max_failures, attempt_timeout, life, keep, state, run_at, since, ended_at, remote, fence, worker, lease_until,
  checkpoint, failures, percent, message, created_at, updated_at, expires_at, rev)
VALUES
  (1, '11111111111111111111111111111111', 'alice', 'talk', 1, 'research', 'deep_research', 'Über', 'über', 3, 'promised',
   2, 3600000, 900000, 1800000, 'succeeded', NULL, NULL, 1794709260000, NULL, 1, NULL, NULL,
   '{"at":"running","provider":"perplexity","id":"run-1","begun_at":1794709250000}', '[]', NULL, NULL,
   1794709200000, 1794709260000, 1794711060000, 10),
  (2, '22222222222222222222222222222222', 'alice', 'talk', 2, 'research', 'deep_research', 'Two', 'two', 0, 'promised',
   2, 3600000, NULL, NULL, 'failed', NULL, NULL, 1794709255000, NULL, 2, NULL, NULL,
   '{"at":"not_begun"}', '[{"code":"TIMEOUT","message":"late","at":1794709255000}]', NULL, NULL,
   1794709201000, 1794709255000, NULL, 11),
  (3, '33333333333333333333333333333333', 'bob', NULL, 1, 'research', 'deep_research', 'Three', 'three', 0, 'unpromised',
   2, 3600000, NULL, 60000, 'cancelled', NULL, NULL, 1794709250000, 'owed', 1, NULL, NULL,
   '{"at":"running","provider":"perplexity","id":"run-3","cursor":"7","begun_at":1794709240000}', '[]', NULL, NULL,
   1794709202000, 1794709250000, 1794709310000, 12),
  (4, '44444444444444444444444444444444', 'bob', NULL, 1, 'search', 'deep_research', 'Four', 'four', 0, 'promised',
   2, 3600000, NULL, 60000, 'cancelled', NULL, NULL, 1794709250000, 'done', 1, NULL, NULL,
   '{"at":"not_begun"}', '[]', NULL, NULL, 1794709203000, 1794709250000, 1794709310000, 13),
  (5, '55555555555555555555555555555555', 'alice', NULL, 1, 'research', 'deep_research', 'Five', 'five', 0, 'promised',
   2, 3600000, NULL, 1000, 'running', NULL, 1794709258000, NULL, NULL, 3, 'gone-1', 1794709288000,
   '{"at":"beginning","key":"k-5"}', '[]', 40, 'reading', 1794709204000, 1794709259000, NULL, 20),
  (6, '66666666666666666666666666666666', 'alice', 'chat', 1, 'research', 'deep_research', 'Six', 'six', 0, 'promised',
   2, 3600000, NULL, 1000, 'queued', 1794709261000, NULL, NULL, NULL, 0, NULL, NULL,
   '{"at":"not_begun"}', '[]', NULL, NULL, 1794709205000, 1794709259000, NULL, 21);

INSERT INTO bodies (job, ask, output, raw) VALUES
  (1, '{"question":"why","weight":0.1}',
   '{"body":{"kind":"report","text":"because","sources":[]},"model":null,"usage":{},"cost":{"kind":"unknown"}}', x'7b7d'),
  (2, '{}', NULL, x'00'), (3, '{}', NULL, NULL), (4, '{}', NULL, NULL), (5, '{}', NULL, NULL), (6, '[1]', NULL, NULL);

-- Each made with its job; one whose window outlives the job's retention, one within it, one of an unfinished job.
INSERT INTO keys (owner, text, job, input_hash, until) VALUES
  ('alice', 'day',   1, x'0101010101010101010101010101010101010101010101010101010101010101', 1794795600000),
  ('bob',   'short', 4, x'0101010101010101010101010101010101010101010101010101010101010101', 1794709263000),
  ('alice', 'open',  6, x'0101010101010101010101010101010101010101010101010101010101010101', 1794709206000);
