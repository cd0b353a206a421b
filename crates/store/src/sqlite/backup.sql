-- name: label
INSERT INTO meta VALUES ('backup', 1) ON CONFLICT DO NOTHING
