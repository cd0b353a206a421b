-- Schema 15: the words of the search index, so that a search finds those that begin with a given text.

CREATE VIRTUAL TABLE search_words USING fts5vocab(search, instance);
