-- Schema 9: marks of owner, provider and success beside the words (`search::marks`). Words cannot be added to, so they are made again,
-- nearly as the program would part them.

DELETE FROM search;
INSERT INTO search (rowid, words)
  SELECT seq, lower(title_folded || ' ' || coalesce(json_extract(ask, '$.messages[#-1].content'), '') || ' ' ||
    coalesce(json_extract(output, '$.body.text'), '') || ' ' || coalesce(CAST(text AS TEXT), '') || ' ' ||
    char(167) || 'o' || substr(hex(owner), 1, 200) || ' ' || char(167) || 'p' || substr(hex(provider), 1, 200) ||
    iif(state = 'succeeded', ' ' || char(167) || 's', ''))
  FROM jobs JOIN bodies ON bodies.job = jobs.seq;
