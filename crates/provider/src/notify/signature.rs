//! HMAC-SHA256 (RFC 2104), by which a receiver knows the sender and the time of a notice.

use sha2::{Digest as _, Sha256};

const BLOCK: usize = 64;

/// `t=<seconds>,v1=<hex of the HMAC of "seconds.body">`.
pub(super) fn signature(secret: &str, seconds: i64, body: &str) -> String {
    let signed = hmac(secret.as_bytes(), &[seconds.to_string().as_bytes(), b".", body.as_bytes()]);
    let hex: String = signed.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: [u8; 32]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn hmac_is_that_of_the_standard() {
        let cases: [(&[u8], &[u8], &str); 3] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, data, expected) in cases {
            assert_eq!(hex(hmac(key, &[data])), expected);
            let (one, two) = data.split_at(3);
            assert_eq!(hex(hmac(key, &[one, two])), expected);
        }
    }

    /// G7: the time and the body are signed together; any other secret, time or body has another signature.
    #[test]
    fn g7_a_signature_names_its_time() {
        let signed = signature("s3cret", 1_794_700_000, "{}");
        let (time, hex) = signed.split_once(",v1=").unwrap();
        assert_eq!((time, hex.len()), ("t=1794700000", 64));
        for other in [
            signature("other", 1_794_700_000, "{}"),
            signature("s3cret", 1_794_700_001, "{}"),
            signature("s3cret", 1_794_700_000, "{ }"),
        ] {
            assert_ne!(other, signed);
        }
    }
}
