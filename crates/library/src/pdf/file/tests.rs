//! Objects are found in whatever order and shape a file has them.

use super::*;

fn opened(text: &str, look: impl FnOnce(&File<'_>)) {
    let go_on = || true;
    let budget = Budget::new(&go_on);
    look(&File::open(text.as_bytes(), &budget).ok().unwrap());
}

#[test]
fn objects_are_found_without_a_table_and_the_last_counts() {
    let text = "%PDF-1.4\n1 0 obj\n(old)\nendobj\n2 0 obj<</Length 3>>stream\nabc\nendstream endobj\n1 0 obj\n(new)\nendobj\n\
                3 0 obj 1 0 R endobj 4 0 obj 4 0 R endobj trailer <</Root 3 0 R>>";
    opened(text, |file| {
        let new = Object::Text(b"new".to_vec());
        assert_eq!(*file.resolved(&Object::Ref(1)).ok().unwrap(), new);
        assert_eq!(*file.get(&file.trailer, "Root").ok().unwrap(), new);
        assert_eq!(file.unpacked(&Object::Ref(2)).ok().unwrap(), Some(b"abc".to_vec()));
        for missing in [4, 9] {
            assert_eq!(*file.resolved(&Object::Ref(missing)).ok().unwrap(), Object::Null);
        }
    });
}

#[test]
fn a_stream_ends_where_it_says_or_where_it_is_closed() {
    let inner = "5 0 obj (not one) endobj";
    let right = inner.len();
    for length in [right, 2, 9_999] {
        let text = format!("2 0 obj<</Length {length}>>stream\r\n{inner}\nendstream endobj");
        opened(&text, |file| {
            let bytes = file.unpacked(&Object::Ref(2)).ok().unwrap().unwrap();
            assert!(bytes.starts_with(inner.as_bytes()), "{length}");
            assert!(!file.places.contains_key(&5), "{length}");
        });
    }
}

#[test]
fn objects_in_a_stream_are_found_too() {
    let text =
        "7 0 obj<</Type/ObjStm/N 2/First 8/Length 19>>stream\n1 0 2 4 (a) (b)\nendstream endobj";
    opened(text, |file| {
        let second = file.resolved(&Object::Ref(2)).ok().unwrap().into_owned();
        assert_eq!(second, Object::Text(b"b".to_vec()));
    });
}

#[test]
fn a_stream_is_not_looked_for_behind_a_field_of_blanks() {
    for (blanks, length) in [(2, 3), (4_000, 4_003)] {
        let text = format!("2 0 obj<</Length 3>>stream\nabc{}endstream", " ".repeat(blanks));
        opened(&text, |file| {
            assert_eq!(file.unpacked(&Object::Ref(2)).unwrap().unwrap().len(), length);
        });
    }
}

#[test]
fn of_a_trailer_only_what_is_needed_is_kept() {
    let text = format!("trailer<</Root 1 0 R{}/Info 2 0 R>>", "/A 1".repeat(50));
    opened(&text, |file| {
        assert_eq!(file.trailer.0.len(), 2);
        assert_eq!(file.trailer.get("Info"), &Object::Ref(2));
    });
    let text = text + &"trailer<</Encrypt 3 0 R>>".repeat(50);
    opened(&text, |file| assert_eq!(file.trailer.0.len(), 3));
}

#[test]
fn each_object_of_a_pack_is_paid_for() {
    let numbers = "1 0 ".repeat(2_000);
    let length = numbers.len();
    let text = format!(
        "7 0 obj<</Type/ObjStm/First {length}/Length {length}>>stream\n{numbers}\nendstream"
    );
    let go_on = || true;
    let budget = Budget::of(5 * length as u64, &go_on);
    assert_eq!(File::open(text.as_bytes(), &budget).err(), Some(Trouble::TooMuch));
}

#[test]
fn packs_are_counted_together() {
    let pack = "<</Type/ObjStm/First 0/Length 9>>stream\n(a) (b)  \nendstream";
    opened(&format!("7 0 obj{pack} 8 0 obj{pack}"), |file| {
        assert_eq!((file.packs.len(), file.kept), (2, 18));
    });
}
