//! Places on a page: `x' = ax + cy + e`, `y' = bx + dy + f`.

use super::object::Object;

/// A change of place, turn and size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) c: f64,
    pub(super) d: f64,
    pub(super) e: f64,
    pub(super) f: f64,
}

impl Matrix {
    /// Changes nothing.
    pub(super) const SAME: Self = Self { a: 1.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, f: 0.0 };

    pub(super) fn moved(x: f64, y: f64) -> Self {
        Self { e: x, f: y, ..Self::SAME }
    }

    /// Six numbers; anything else changes nothing.
    pub(super) fn of(numbers: &[Object]) -> Self {
        let numbers: Vec<_> = numbers.iter().filter_map(Object::number).collect();
        match numbers.as_slice() {
            [a, b, c, d, e, f] => Self { a: *a, b: *b, c: *c, d: *d, e: *e, f: *f },
            _ => Self::SAME,
        }
    }

    /// First this, then the other.
    pub(super) fn then(self, next: Self) -> Self {
        Self {
            a: self.a * next.a + self.b * next.c,
            b: self.a * next.b + self.b * next.d,
            c: self.c * next.a + self.d * next.c,
            d: self.c * next.b + self.d * next.d,
            e: self.e * next.a + self.f * next.c + next.e,
            f: self.e * next.b + self.f * next.d + next.f,
        }
    }
}
