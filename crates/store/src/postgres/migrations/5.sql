-- Schema 5: what was made once and is needed again, such as the ids of a vendor's account.

create table kept (
  name  text collate "C" primary key,
  value text not null
);
