//! Sessions of the older era: used by their owners, attacked by others.

use serde_json::{Value, json};

use super::ledger::Kind;
use super::request::Request;
use super::worker::Worker;

impl Worker {
    pub(super) async fn use_sessions(&mut self) {
        let own = self.shared.ledger.some_session(self.owner, self.door, &mut self.random);
        let Some(own) = own else { return self.begin().await };
        match self.random.u8(..20) {
            0 => self.begin().await,
            1 => self.end(&own).await,
            2..5 => self.take_back(&own).await,
            5..11 => self.call(&own).await,
            _ => self.pry_at_a_session().await,
        }
    }

    async fn begin(&mut self) {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "isolation", "version": "0" }
        } });
        let request = Request::post(&hello);
        let heard = self.send(&request).await;
        let Some(session) = heard.session().map(str::to_owned) else {
            self.fail(self.number(), "there is no session", &request, &heard);
        };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(&Request::in_session(&session, &ready)).await;
        self.shared.ledger.add_session(self.owner, self.door, &session);
    }

    async fn end(&mut self, session: &str) {
        self.shared.ledger.end_session(self.owner, session);
        self.send(&Request::delete(session)).await;
    }

    /// Cancels requests by their ids, which are also ids of other owners' requests.
    async fn take_back(&mut self, session: &str) {
        let id = self.request_id();
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": id, "reason": "timeout" } });
        self.send(&Request::in_session(session, &cancelled)).await;
    }

    async fn call(&mut self, session: &str) {
        let Some(id) = self.own(Kind::Job) else { return };
        let message = json!({ "jsonrpc": "2.0", "id": self.request_id(), "method": "tools/call",
            "params": { "name": "perplexity_research_poll", "arguments": { "jobId": id } } });
        // Another connection of this owner may have ended the session or cancelled the request.
        self.send(&Request::in_session(session, &message)).await;
    }

    /// Another owner's session must look as if it never existed.
    async fn pry_at_a_session(&mut self) {
        let other = self.other();
        let foreign = self.shared.ledger.some_session(other, self.door, &mut self.random);
        let Some(foreign) = foreign else { return };
        let hex = self.invented();
        let invented = format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        );
        let ping: Value = json!({ "jsonrpc": "2.0", "id": self.request_id(), "method": "ping" });
        let ends = self.random.u8(..4) == 0;
        let asked = [&foreign, &invented]
            .map(|id| if ends { Request::delete(id) } else { Request::in_session(id, &ping) });
        let heard = [self.send(&asked[0]).await, self.send(&asked[1]).await];
        if heard[0].status != 404 || heard[0].masked(&foreign) != heard[1].masked(&invented) {
            self.fail(self.number(), "a foreign session is not unknown", &asked[0], &heard[0]);
        }
        self.shared.timings.add("a session", heard[0].took, heard[1].took);
    }
}
