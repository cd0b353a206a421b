/* Told to glibc's allocator before main. By itself it serves large blocks from the heap once one of them was freed, and
   keeps what they leave there: a server that carried one long report would stay several reports larger. Fixed, each
   large block is mapped and given back alone. In C because this workspace forbids unsafe Rust, and glibc has no other
   way to be told than the environment of the process. */
#include <malloc.h>

__attribute__((constructor)) static void give_large_blocks_back(void) {
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
}
