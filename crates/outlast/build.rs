//! Links `malloc.c` into the program where the C library is glibc; no other allocator has the fault it is about.

use std::env;

#[expect(clippy::disallowed_methods, reason = "this is how cargo speaks to a build script")]
fn main() {
    println!("cargo::rerun-if-changed=malloc.c");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if (target("OS").as_str(), target("ENV").as_str()) != ("linux", "gnu") {
        return;
    }
    // The object itself and no library around it: nothing calls it, so a linker would leave it in the library.
    for object in cc::Build::new().file("malloc.c").compile_intermediates() {
        println!("cargo::rustc-link-arg-bin=outlast={}", object.display());
    }
}
