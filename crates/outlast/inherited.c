/* A worker that is started to outlive its client must hold nothing of the client open: a client that waits for the end of a
   pipe would wait for the worker. No signal to the client's process group or terminal may reach it, and it must not be a
   descendant of the server that started it, because some clients kill every process below the server. All of it before
   main, while the process has one thread and every open file above standard error is one that was inherited. In C because
   this workspace forbids unsafe Rust, and forking and closing files that others opened are unsafe. */
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
    /* The child of a process that has exited belongs to init, or to the nearest subreaper, which also reaps it. A starter that
       is init itself would get it back, and may not expect to reap it: then this process stays its child. If the fork fails
       it stays one too, and is only less protected. */
    if (getppid() != 1 && fork() > 0) _exit(0);
    setsid();
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
#endif
    long files = sysconf(_SC_OPEN_MAX);
    if (files < 0 || files > MOST_FILES) files = MOST_FILES;
    for (int file = 3; file < files; file++) close(file);
}
