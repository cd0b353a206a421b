//! Decodes a response body under a limit, piece by piece, so that a small response cannot fill the memory.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;

/// The size of the decoder's buffer.
const BUFFER: usize = 32 << 10;
/// A stream that asks for a larger window than standard brotli has (24 bits) starts with these bits.
const LARGE_WINDOW: u8 = 0x11;

/// A body that is decoded as it arrives.
pub(super) enum Decoder {
    Identity(BoundedWriter),
    Gzip(Box<MultiGzDecoder<BoundedWriter>>),
    Brotli { decoder: Box<DecompressorWriter<BoundedWriter>>, is_begun: bool },
}

/// The reasons a body cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// The coding is none that was asked for.
    Unknown,
    /// The body is damaged.
    Damaged,
}

impl Decoder {
    /// Creates a decoder for the value of the header `Content-Encoding`.
    pub(super) fn new(encoding: &str, limit: usize) -> Result<Self, DecodeError> {
        let body = BoundedWriter { body: Vec::new(), limit, is_full: false };
        Ok(match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Self::Identity(body),
            "gzip" | "x-gzip" => Self::Gzip(Box::new(MultiGzDecoder::new(body))),
            "br" => Self::Brotli {
                decoder: Box::new(DecompressorWriter::new(body, BUFFER)),
                is_begun: false,
            },
            _ => return Err(DecodeError::Unknown),
        })
    }

    /// Adds a piece; returns true once the limit is reached.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<bool, DecodeError> {
        if let Self::Brotli { is_begun: begun @ false, .. } = self
            && let Some(first) = piece.first()
        {
            *begun = true;
            // Such a window may be 1 GB, and no browser accepts it.
            if *first == LARGE_WINDOW {
                return Err(DecodeError::Damaged);
            }
        }
        let written = match self {
            Self::Identity(body) => body.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
            Self::Brotli { decoder, .. } => decoder.write_all(piece),
        };
        match (self.body().is_full, written) {
            (true, _) => Ok(true),
            (false, Ok(())) => Ok(false),
            (false, Err(_)) => Err(DecodeError::Damaged),
        }
    }

    /// Returns what was decoded, and false if the coding was not at its end.
    pub(super) fn finish(mut self) -> (Vec<u8>, bool) {
        let is_whole = match &mut self {
            Self::Identity(_) => true,
            Self::Gzip(decoder) => decoder.try_finish().is_ok(),
            Self::Brotli { decoder, .. } => decoder.close().is_ok(),
        };
        let body = self.body();
        (std::mem::take(&mut body.body), is_whole && !body.is_full)
    }

    fn body(&mut self) -> &mut BoundedWriter {
        match self {
            Self::Identity(body) => body,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Brotli { decoder, .. } => decoder.get_mut(),
        }
    }
}

/// Memory that accepts bytes up to a limit.
pub(super) struct BoundedWriter {
    body: Vec<u8>,
    limit: usize,
    is_full: bool,
}

impl Write for BoundedWriter {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.body.len();
        if piece.len() > room {
            self.body.extend_from_slice(&piece[..room]);
            self.is_full = true;
            return Err(io::Error::other("the limit is reached"));
        }
        self.body.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(encoding: &str, body: &[u8], limit: usize) -> Result<(Vec<u8>, bool), DecodeError> {
        let mut decoder = Decoder::new(encoding, limit)?;
        for piece in body.chunks(7) {
            if decoder.push(piece)? {
                break;
            }
        }
        Ok(decoder.finish())
    }

    /// J5
    #[test]
    fn a_body_is_decoded_up_to_the_limit() {
        let text = b"a page ".repeat(100);
        assert_eq!(decode("", &text, 1_000), Ok((text.clone(), true)));
        assert_eq!(decode("GZIP", &gzip(&text), 1_000), Ok((text.clone(), true)));
        assert_eq!(decode("gzip", &gzip(&text), 100), Ok((text[..100].to_vec(), false)));
        assert_eq!(decode("", &text, 10), Ok((text[..10].to_vec(), false)));
        let cut = &gzip(&text)[..20];
        assert!(!decode("gzip", cut, 1_000).unwrap().1);
    }

    /// J5, J7
    #[test]
    fn a_bomb_ends_at_the_limit_and_damage_is_an_error() {
        let bomb = gzip(&vec![0; 8 << 20]);
        assert!(bomb.len() < 10 << 10);
        let (body, is_whole) = decode("gzip", &bomb, 1 << 20).unwrap();
        assert_eq!((body.len(), is_whole), (1 << 20, false));
        assert_eq!(decode("gzip", b"no gzip at all", 10), Err(DecodeError::Damaged));
        assert_eq!(decode("br", b"\xff\xff\xff\xff\xff", 10), Err(DecodeError::Damaged));
        assert_eq!(decode("br", b"\x11\x1e\x00\x00\x00", 10), Err(DecodeError::Damaged));
        for encoding in ["zstd", "deflate", "gzip, br", "gzip,gzip"] {
            assert_eq!(decode(encoding, b"", 10), Err(DecodeError::Unknown));
        }
    }
}
