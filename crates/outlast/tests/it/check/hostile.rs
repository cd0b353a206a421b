//! J5: a hostile report, whose addresses lead to this machine in every form.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::World;

/// Addresses that must not be reached, each with the port of a listener on all addresses of this machine.
fn refused(port: u16) -> Vec<String> {
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fe80::1%25eth0]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "user:pw@127.0.0.1",
        "①②⑦.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "192.168.0.1",
    ];
    let forms = hosts.iter().flat_map(|host| {
        [format!("http://{host}:{port}/x"), format!("http://{host}/x"), format!("https://{host}/x")]
    });
    forms.chain([format!("ftp://127.0.0.1:{port}/x"), "file:///etc/passwd".to_owned()]).collect()
}

/// J5
#[tokio::test]
async fn j5_no_form_of_a_refused_address_is_connected_to() {
    let world = World::new().await;
    let listener = TcpListener::bind("[::]:0").unwrap();
    let addresses = refused(listener.local_addr().unwrap().port());
    let connections = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let claims = (1..)
        .zip(&addresses)
        .map(|(n, address)| format!("Lake Vostok is 250 km long [{n}].\n\n[{n}]: <{address}>\n\n"));
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let file = world.data_dir().join("report.md");
    std::fs::write(&file, claims.collect::<String>()).unwrap();
    let ran = world.run(&["check", file.to_str().unwrap(), "--json"]).await;
    let check: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(connections.load(Ordering::SeqCst), 0, "{check:#}");
    let sources = check["sources"].as_array().unwrap();
    assert!(sources.len() > 60, "{check:#}");
    for source in sources {
        assert_eq!(source["verdict"], "refused", "{source:#}");
    }
}
