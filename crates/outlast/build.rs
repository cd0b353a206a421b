//! Links two C files into the program: `inherited.c`, and `malloc.c` where the C library is glibc; no other allocator has the
//! fault that one is about.

use std::env;

#[expect(clippy::disallowed_methods, reason = "this is how cargo speaks to a build script")]
fn main() {
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let is_glibc = (target("OS").as_str(), target("ENV").as_str()) == ("linux", "gnu");
    let files = if is_glibc { &["inherited.c", "malloc.c"][..] } else { &["inherited.c"] };
    for file in files {
        println!("cargo::rerun-if-changed={file}");
        // The object itself and no library around it: nothing calls it, so a linker would leave it in the library.
        for object in cc::Build::new().file(file).compile_intermediates() {
            println!("cargo::rustc-link-arg-bin=outlast={}", object.display());
        }
    }
}
