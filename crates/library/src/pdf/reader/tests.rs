//! Values are read, and what nobody closes ends.

use super::*;

fn read(text: &str) -> Option<Object> {
    Reader::new(text.as_bytes(), 0).object()
}

#[test]
fn every_kind_of_value_is_read() {
    let text = Object::Text(b"a(b)\\c A".to_vec());
    assert_eq!(read("(a(b)\\\\c \\101)"), Some(text.clone()));
    assert_eq!(read("<612862 29 5C 63 20 41>"), Some(Object::Text(b"a(b)\\c A".to_vec())));
    assert_eq!(read("%no\n -12.50"), Some(Object::Number(-12.5)));
    assert_eq!(read("/A#20b"), Some(Object::Name("A b".to_owned())));
    let dict = read("<</A[1 0 R 2 0 3]/B null/C<</D true>>>>").unwrap();
    let dict = dict.dict().unwrap();
    let numbers = [2.0, 0.0, 3.0].map(Object::Number);
    assert_eq!(dict.get("A").array(), [&[Object::Ref(1)][..], &numbers].concat());
    assert_eq!((dict.get("B"), dict.get("none")), (&Object::Null, &Object::Null));
    assert_eq!(dict.get("C").dict().unwrap().get("D"), &Object::Word("true".to_owned()));
}

#[test]
fn what_nobody_closes_ends_with_the_bytes() {
    for open in ["[", "<<", "<</A", "(", "<", "[[[<<", "/", "((", "\\", "-", ">", "]"] {
        for times in [1, 40, 4_000] {
            let text = open.repeat(times);
            let mut reader = Reader::new(text.as_bytes(), 0);
            let mut values = 0;
            while reader.object().is_some() {
                values += 1;
            }
            assert!(values <= text.len() && reader.at >= text.len(), "{open}");
        }
    }
}
