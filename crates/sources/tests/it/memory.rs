//! J7: the memory of a check of hostile pages. The test runner gives each test a process, and this one
//! reads the peak of its process.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use outlast_sources::{Check, FetchOptions, Fetcher, Report, SourceReaders};

/// The most memory that a check may use, in KiB. The whole process is counted, with the web of the test.
const MOST_MEMORY: u64 = 100 << 10;

const PAGES: [&str; 7] = ["endless", "bomb", "nested", "line", "numbers", "nulls", "attributes"];

fn answer(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut head = [0; 4096];
    let length = stream.read(&mut head)?;
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    let page = head.split([' ', '/']).nth(2).unwrap_or("").to_owned();
    let coding = if page == "bomb" { "Content-Encoding: gzip\r\n" } else { "" };
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{coding}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    // 6 MiB in pieces, because the memory of this process is measured.
    let mut many = |text: &str| {
        let piece = text.repeat(65_536 / text.len());
        (0..96).try_for_each(|_| stream.write_all(piece.as_bytes()))
    };
    match page.as_str() {
        "endless" => loop {
            many("x")?;
        },
        "bomb" => stream.write_all(&bomb()),
        "nested" => many("<div><b>"),
        "line" => many("Lake Vostok 250 km "),
        "numbers" => many("1,234.5 km 12 % 3 May 2001 v1.2.3 "),
        "nulls" => many("\0\u{feff}\u{202e}"),
        _ => {
            stream.write_all(b"<p ")?;
            (0..400_000).try_for_each(|n| write!(stream, "a{n}=b "))
        }
    }
}

/// Returns 400 KB that decode to 64 MB: one letter, and references to it in a block with the fixed code of DEFLATE.
fn bomb() -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut buffer, mut used) = (0_u32, 0);
    // A last block with the fixed code, the letter `a` (0x91), then a length of 258 (0xc5) and a distance of 1 (0) again
    // and again. Codes are written from their highest bit.
    let mut put = |code: u32, length: u32| {
        for bit in (0..length).rev() {
            buffer |= ((code >> bit) & 1) << used;
            used += 1;
            if used == 8 {
                bytes.push(buffer as u8);
                (buffer, used) = (0, 0);
            }
        }
    };
    put(0b110, 3);
    put(0x91, 8);
    for _ in 0..250_000 {
        put(0xc5, 8);
        put(0, 5);
    }
    bytes
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// J7: endless, compressed, nested and odd pages, four at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j7_hostile_pages_take_little_memory() {
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The client hangs up on most of these answers.
            std::thread::spawn(move || drop(answer(&mut stream.unwrap())));
        }
    });
    let text: String = (1..)
        .zip(PAGES)
        .map(|(n, page)| {
            format!(
                "Lake Vostok is 250 km long and {n}.5 km wide [{n}].\n\n[{n}]: http://127.0.0.{n}:{port}/{page}\n\n"
            )
        })
        .collect();
    let mut check = Check::new(Report::parse(&text));
    let fetcher = Fetcher::new(FetchOptions { allow_private: true, ..FetchOptions::default() });
    let fetcher = Arc::new(fetcher.unwrap());
    let readers = SourceReaders { fetcher, may_fetch: true, pdf: None, local: None };
    let mut read = 0;
    check.run(readers, Arc::new(()), |_, _| read += 1).await;
    assert_eq!(read, PAGES.len());
    let peak = peak_memory();
    assert!(peak < MOST_MEMORY, "{} MiB", peak >> 10);
}
