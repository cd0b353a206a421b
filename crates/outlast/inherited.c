/* A worker that is started to outlive its client must hold nothing of the client open: a client that waits for the end of a
   pipe would wait for the worker. And no signal to the client's process group or terminal may reach it. Both before main,
   while every open file above standard error is one that was inherited. In C because this workspace forbids unsafe Rust,
   and closing files that others opened is unsafe. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#define STARTED_DETACHED "OUTLAST_STARTED_DETACHED"
#define MOST_FILES 65536

__attribute__((constructor)) static void leave_the_starter(void) {
    if (getenv(STARTED_DETACHED) == NULL) return;
    /* Not for the commands that the worker runs. */
    unsetenv(STARTED_DETACHED);
    setsid();
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
#endif
    long files = sysconf(_SC_OPEN_MAX);
    if (files < 0 || files > MOST_FILES) files = MOST_FILES;
    for (int file = 3; file < files; file++) close(file);
}
