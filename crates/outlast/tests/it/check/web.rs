//! A web on the addresses of loopback, which records what is fetched.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// Serves one page at every path but `gone`.
pub(crate) struct Web {
    port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    /// The paths in the order of their requests.
    asked: Vec<String>,
    /// The number of requests that are answered; later ones wait until it is raised.
    answered: usize,
}

impl Web {
    pub(crate) fn serve() -> Self {
        Self::holding_after(usize::MAX)
    }

    /// Answers this number of requests. Later ones wait for [`Web::release`].
    pub(crate) fn holding_after(answered: usize) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        state.0.lock().unwrap().answered = answered;
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || answer(stream.unwrap(), &shared));
            }
        });
        Self { port, state }
    }

    /// Returns the address of a page on one of the hosts of this web.
    pub(crate) fn url(&self, host: u8, path: &str) -> String {
        format!("http://127.0.0.{host}:{}/{path}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.0.lock().unwrap().asked.clone()
    }

    pub(crate) fn release(&self) {
        self.state.0.lock().unwrap().answered = usize::MAX;
        self.state.1.notify_all();
    }
}

fn answer(mut stream: TcpStream, (state, released): &(Mutex<State>, Condvar)) {
    let mut head = [0; 4096];
    let length = stream.read(&mut head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    let path = head.split([' ', '/']).nth(2).unwrap_or("").to_owned();
    let status = if path == "gone" { "404 Not Found" } else { "200 OK" };
    let mut state = state.lock().unwrap();
    state.asked.push(path);
    let number = state.asked.len();
    drop(released.wait_while(state, |state| state.answered < number).unwrap());
    let body =
        "<title>Lakes</title><p>Lake Vostok has an area of 12,513 km² and is 250 km long.</p>";
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.as_bytes());
}
