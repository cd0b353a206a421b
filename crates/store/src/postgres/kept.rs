//! What was made once and is needed again, by name.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_core::StoreError;

use super::Shared;
use super::fault::Fault;
use super::step::Work;
use super::tx::Tx;

impl Shared {
    /// What is kept under this name.
    pub(super) async fn kept(&self, name: &str) -> Result<Option<String>, StoreError> {
        let rows = self.read("select value from kept where name = $1", &[&name]).await?;
        let value = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(value.map_err(Fault::from)?)
    }

    /// Keeps this value under this name.
    pub(super) async fn keep(self: &Arc<Self>, name: &str, value: &str) -> Result<(), StoreError> {
        self.step(Keep { name: name.to_owned(), value: value.to_owned() }).await.map(drop)
    }
}

struct Keep {
    name: String,
    value: String,
}

#[async_trait]
impl Work for Keep {
    type Done = ();

    async fn run(&self, tx: &mut Tx) -> Result<(), Fault> {
        let replace = "insert into kept (name, value) values ($1, $2) \
                       on conflict (name) do update set value = excluded.value";
        let [_] = tx.load([(replace, &[&self.name, &self.value])]).await?;
        Ok(())
    }
}
