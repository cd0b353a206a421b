-- Schema 6: marks of owner, provider and success beside the words (search::marks).

update search set words = words || array_to_tsvector(
    array['§o' || left(encode(convert_to(owner, 'UTF8'), 'hex'), 200), '§p' || left(encode(convert_to(provider, 'UTF8'), 'hex'), 200)]
    || case when state = 'succeeded' then array['§s'] else array[]::text[] end)
  from jobs where jobs.seq = search.job;
