//! Unpacks streams: the filters that text comes in, each with an end to what it may become. Pictures stay packed.

use miniz_oxide::inflate::{
    TINFLStatus, decompress_to_vec_with_limit, decompress_to_vec_zlib_with_limit,
};

use super::Trouble;
use super::budget::Budget;
use super::object::Dict;
use super::reader::{digit, is_blank};

/// Undoes one filter. What is damaged gives what could be read of it, and is paid for also if that is nothing.
pub(super) fn undo(
    filter: &str,
    parameters: &Dict,
    packed: &[u8],
    limit: usize,
    budget: &Budget<'_>,
) -> Result<Vec<u8>, Trouble> {
    let (bytes, has_rows) = match filter {
        "FlateDecode" | "Fl" => (inflate(packed, limit, budget)?, true),
        "LZWDecode" | "LZW" => {
            let early = parameters.get("EarlyChange").number() != Some(0.0);
            (lzw(packed, early, limit)?, true)
        }
        "ASCIIHexDecode" | "AHx" => (hex(packed), false),
        "ASCII85Decode" | "A85" => (ascii85(packed, limit)?, false),
        "RunLengthDecode" | "RL" => (runs(packed, limit)?, false),
        _ => return Err(Trouble::Damaged),
    };
    budget.spend(bytes.len())?;
    if has_rows { predicted(bytes, parameters) } else { Ok(bytes) }
}

fn inflate(packed: &[u8], limit: usize, budget: &Budget<'_>) -> Result<Vec<u8>, Trouble> {
    let error = match decompress_to_vec_zlib_with_limit(packed, limit) {
        Ok(bytes) => return Ok(bytes),
        Err(error) => error,
    };
    if error.status == TINFLStatus::HasMoreOutput {
        return Err(Trouble::TooMuch);
    }
    let mut bytes = error.output;
    budget.spend(bytes.len())?;
    if bytes.iter().all(|byte| *byte == 0) {
        // Some makers leave the two bytes of the header out.
        bytes = match decompress_to_vec_with_limit(packed, limit) {
            Ok(bytes) => bytes,
            Err(error) if error.status == TINFLStatus::HasMoreOutput => {
                return Err(Trouble::TooMuch);
            }
            Err(error) => {
                budget.spend(error.output.len())?;
                return Err(Trouble::Damaged);
            }
        };
    }
    // The unpacker's room for more is zeros.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(end);
    Ok(bytes)
}

/// Undoes the differences between rows that some makers store.
fn predicted(bytes: Vec<u8>, parameters: &Dict) -> Result<Vec<u8>, Trouble> {
    let number = |key: &str, usual: usize| parameters.get(key).count().unwrap_or(usual);
    let predictor = number("Predictor", 1);
    if predictor < 10 {
        // The predictor of TIFF is for pictures.
        return Ok(bytes);
    }
    let bits = number("Colors", 1).saturating_mul(number("BitsPerComponent", 8));
    let row = bits.saturating_mul(number("Columns", 1)).div_ceil(8);
    let pixel = bits.div_ceil(8).max(1);
    if row == 0 || row > bytes.len().max(1) {
        return Err(Trouble::Damaged);
    }
    let mut plain: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut above = vec![0; row];
    for line in bytes.chunks(row + 1) {
        let Some((kind, stored)) = line.split_first() else { break };
        let mut current = vec![0_u8; row];
        for (at, byte) in stored.iter().enumerate() {
            let left = if at >= pixel { current[at - pixel] } else { 0 };
            let corner = if at >= pixel { above[at - pixel] } else { 0 };
            let guess = match kind {
                1 => left,
                2 => above[at],
                3 => u8::midpoint(left, above[at]),
                4 => paeth(left, above[at], corner),
                _ => 0,
            };
            current[at] = byte.wrapping_add(guess);
        }
        plain.extend_from_slice(&current[..stored.len()]);
        above = current;
    }
    Ok(plain)
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i16::from);
    let near = |sign: i16| (a + b - c - sign).abs();
    if near(a) <= near(b) && near(a) <= near(c) {
        left
    } else if near(b) <= near(c) {
        above
    } else {
        corner
    }
}

fn lzw(packed: &[u8], early: bool, limit: usize) -> Result<Vec<u8>, Trouble> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    let mut plain: Vec<u8> = Vec::new();
    // Where in what is unpacked each code's bytes stand.
    let mut table: Vec<(usize, usize)> = Vec::new();
    let (mut width, mut held, mut bits) = (9_u32, 0_u32, 0_u32);
    let mut last: Option<(usize, usize)> = None;
    for byte in packed {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        if bits < width {
            continue;
        }
        bits -= width;
        let code = (held >> bits) as usize;
        held &= (1 << bits) - 1;
        if code == END {
            break;
        }
        if code == CLEAR {
            table.clear();
            width = 9;
            last = None;
            continue;
        }
        let from = plain.len();
        if code < CLEAR {
            plain.push(code as u8);
        } else if let Some((start, end)) = table.get(code - 258).copied() {
            plain.extend_from_within(start..end);
        } else if let Some((start, end)) = last.filter(|_| code - 258 == table.len()) {
            plain.extend_from_within(start..end);
            plain.extend_from_within(start..=start);
        } else {
            // Damaged from here on.
            break;
        }
        if let Some((start, end)) = last.filter(|_| table.len() < 4096 - 258) {
            // The last text and the first byte of this one, which follows it.
            table.push((start, end + 1));
        }
        last = Some((from, plain.len()));
        if plain.len() > limit {
            return Err(Trouble::TooMuch);
        }
        width = match table.len() + 258 + 1 + usize::from(early) {
            0..=512 => 9,
            513..=1024 => 10,
            1025..=2048 => 11,
            _ => 12,
        };
    }
    Ok(plain)
}

fn hex(packed: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> =
        packed.iter().take_while(|byte| **byte != b'>').filter_map(|byte| digit(*byte)).collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair.get(1).copied().unwrap_or(0)).collect()
}

fn ascii85(packed: &[u8], limit: usize) -> Result<Vec<u8>, Trouble> {
    let mut plain = Vec::with_capacity(packed.len().min(limit));
    let mut group: Vec<u8> = Vec::with_capacity(5);
    for byte in packed.iter().copied().filter(|byte| !is_blank(*byte)) {
        match byte {
            b'z' if group.is_empty() => plain.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            _ => break,
        }
        if group.len() == 5 {
            flush(&mut group, &mut plain);
        }
        if plain.len() > limit {
            return Err(Trouble::TooMuch);
        }
    }
    if group.len() > 1 {
        flush(&mut group, &mut plain);
    }
    Ok(plain)
}

fn flush(group: &mut Vec<u8>, plain: &mut Vec<u8>) {
    let known = group.len() - 1;
    group.resize(5, 84);
    let number = group
        .iter()
        .fold(0_u32, |number, digit| number.wrapping_mul(85).wrapping_add(u32::from(*digit)));
    plain.extend(number.to_be_bytes().iter().take(known));
    group.clear();
}

fn runs(packed: &[u8], limit: usize) -> Result<Vec<u8>, Trouble> {
    let mut plain = Vec::new();
    let mut rest = packed;
    while let Some((length, after)) = rest.split_first() {
        let taken = match length {
            128 => break,
            0..=127 => {
                let taken = (usize::from(*length) + 1).min(after.len());
                plain.extend_from_slice(&after[..taken]);
                taken
            }
            129..=255 => {
                let Some(byte) = after.first() else { break };
                plain.extend(std::iter::repeat_n(*byte, 257 - usize::from(*length)));
                1
            }
        };
        if plain.len() > limit {
            return Err(Trouble::TooMuch);
        }
        rest = &after[taken..];
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::super::object::Object;
    use super::*;

    fn undone(filter: &str, packed: &[u8]) -> Result<Vec<u8>, Trouble> {
        undo(filter, &Dict::default(), packed, 1_000, &Budget::new(&|| true))
    }

    fn plain(filter: &str, packed: &[u8]) -> Vec<u8> {
        undone(filter, packed).unwrap()
    }

    #[test]
    fn every_filter_gives_the_text_back() {
        assert_eq!(plain("A85", b"87cURD]i,\"Ebo80~>"), b"Hello World!");
        assert_eq!(plain("AHx", b"48 65 6C6c 6F>"), b"Hello");
        assert_eq!(plain("RL", &[1, b'H', b'e', 255, b'l', 0, b'o', 128]), b"Hello");
        // The example of the specification.
        let packed = [0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01];
        assert_eq!(plain("LZW", &packed), [45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(b"Hello, hello, hello", 6);
        assert_eq!(plain("Fl", &packed), b"Hello, hello, hello");
        assert_eq!(plain("Fl", &packed[2..]), b"Hello, hello, hello");
        assert!(plain("Fl", &packed[..packed.len() - 8]).starts_with(b"Hello"));
    }

    #[test]
    fn rows_are_put_together_again() {
        let number = |key: &str, number| (key.to_owned(), Object::Number(number));
        let parameters = Dict(vec![number("Predictor", 12.0), number("Columns", 3.0)]);
        let stored = vec![2, 1, 2, 3, 2, 1, 1, 1, 1, 5, 1, 1, 4, 0, 0, 1];
        let plain = predicted(stored, &parameters).unwrap();
        assert_eq!(plain, [1, 2, 3, 2, 3, 4, 5, 6, 7, 5, 6, 8]);
    }

    #[test]
    fn what_becomes_too_much_is_refused() {
        let bomb = miniz_oxide::deflate::compress_to_vec_zlib(&[b' '; 5_000], 9);
        let runs = [129, b' '].repeat(20);
        for (filter, packed) in [("Fl", bomb), ("RL", runs), ("A85", b"z".repeat(300))] {
            assert!(matches!(undone(filter, &packed), Err(Trouble::TooMuch)), "{filter}");
        }
    }

    #[test]
    fn what_unpacks_to_nothing_is_paid_for() {
        let mut packed = miniz_oxide::deflate::compress_to_vec_zlib(&[0; 20_000], 9);
        packed.pop();
        let go_on = || true;
        let budget = Budget::of(10_000, &go_on);
        let unpacked = undo("Fl", &Dict::default(), &packed, 100_000, &budget);
        assert!(matches!(unpacked, Err(Trouble::TooMuch)));
        // A row that is longer than all there is.
        let whole = miniz_oxide::deflate::compress_to_vec_zlib(&[b' '; 20_000], 9);
        let number = |key: &str, number| (key.to_owned(), Object::Number(number));
        let parameters = Dict(vec![number("Predictor", 12.0), number("Columns", 90_000.0)]);
        let unpacked = undo("Fl", &parameters, &whole, 100_000, &budget);
        assert!(matches!(unpacked, Err(Trouble::TooMuch)));
    }
}
