/* Faults of the operating system, for tests: the n-th call that concerns a folder fails.

   Linux on x86-64 lets a thread ask for a signal instead of each of its system calls (Syscall
   User Dispatch, since 5.11). So no call escapes, not even those that a library of C makes
   within itself. The handler makes the call in the thread's place, or lets it fail.

   A call concerns the folder if a path among its arguments leads there, or if a descriptor does.
   Where a call cannot be made from a handler (a new process, the return from another handler),
   all calls are let through from then on, and `lost` says so. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define SA_RESTORER 0x04000000

enum { LET_THROUGH, FAIL, FAIL_WRITES, CUT_SHORT, KILL_BEFORE, KILL_AFTER, SHRINK };
enum { LOGGED = 8192, PATH = 512 };

struct entry {
    int number;
    int flags;
    char path[PATH];
};

static volatile char selector;
static char root[PATH], shrinking[PATH];
static int action, fault;
static long at, seen;
static struct entry entries[LOGGED];
int lost, hit;

long raw_call(long number, const long *args);
void raw_restorer(void);
extern char raw_start[], raw_end[];
/* What lies between raw_start and raw_end may make system calls that are not turned into signals. */
__asm__(".pushsection .text\n"
        "raw_start:\n"
        ".globl raw_call\n"
        "raw_call:\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %r11\n"
        "  mov 0(%r11), %rdi\n"
        "  mov 8(%r11), %rsi\n"
        "  mov 16(%r11), %rdx\n"
        "  mov 24(%r11), %r10\n"
        "  mov 32(%r11), %r8\n"
        "  mov 40(%r11), %r9\n"
        "  syscall\n"
        "  ret\n"
        "raw_restorer:\n"
        "  mov $15, %eax\n"
        "  syscall\n"
        "  nop\n"
        "raw_end:\n"
        ".popsection\n");

static long call(long number, long a, long b, long c)
{
    long args[6] = {a, b, c, 0, 0, 0};
    return raw_call(number, args);
}

static int inside(const char *path)
{
    size_t length = strlen(root);
    return !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

/* Writes the path of a descriptor; that of a file without a name is where it was made. */
static int path_of(long fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", (int)fd);
    long length = call(SYS_readlink, (long)link, (long)path, PATH - 1);
    path[length < 0 ? 0 : length] = 0;
    return inside(path);
}

static int concerns(long directory, const char *given, char *path)
{
    if (!given)
        return 0;
    if (given[0] == '/') {
        snprintf(path, PATH, "%s", given);
        return inside(path);
    }
    int found = path_of(directory, path);
    size_t length = strlen(path);
    if (*given)
        snprintf(path + length, PATH - length, "/%s", given);
    return found;
}

/* What a call does: one that is given a descriptor for a path looks at that. */
static long kind(long number, const long *args)
{
    int named = number == SYS_newfstatat || number == SYS_statx;
    return named && args[1] && !*(const char *)args[1] ? SYS_fstat : number;
}

/* Whether a call concerns the folder, and where. */
static int find(long number, const long *args, char *path)
{
    char other[PATH];
    switch (number) {
    case SYS_open: case SYS_creat: case SYS_stat: case SYS_lstat: case SYS_access: case SYS_chmod:
    case SYS_mkdir: case SYS_rmdir: case SYS_unlink: case SYS_readlink: case SYS_truncate:
        return concerns(AT_FDCWD, (const char *)args[0], path);
    case SYS_openat: case SYS_newfstatat: case SYS_statx: case SYS_faccessat: case SYS_faccessat2:
    case SYS_mkdirat: case SYS_unlinkat: case SYS_readlinkat: case SYS_fchmodat:
        return concerns(args[0], (const char *)args[1], path);
    case SYS_rename: case SYS_link:
        return concerns(AT_FDCWD, (const char *)args[0], other)
             | concerns(AT_FDCWD, (const char *)args[1], path);
    case SYS_symlink:
        return concerns(AT_FDCWD, (const char *)args[1], path);
    case SYS_symlinkat:
        return concerns(args[1], (const char *)args[2], path);
    case SYS_renameat: case SYS_renameat2: case SYS_linkat:
        return concerns(args[0], (const char *)args[1], other)
             | concerns(args[2], (const char *)args[3], path);
    case SYS_read: case SYS_write: case SYS_readv: case SYS_writev: case SYS_pread64:
    case SYS_pwrite64: case SYS_preadv: case SYS_pwritev: case SYS_preadv2: case SYS_pwritev2:
    case SYS_close: case SYS_fstat: case SYS_lseek: case SYS_ftruncate: case SYS_fsync:
    case SYS_fdatasync: case SYS_flock: case SYS_getdents64: case SYS_fchmod: case SYS_dup:
    case SYS_fallocate: case SYS_fadvise64:
        return path_of(args[0], path);
    case SYS_fcntl:
        return (args[1] == F_DUPFD || args[1] == F_DUPFD_CLOEXEC) && path_of(args[0], path);
    case SYS_sendfile:
        return path_of(args[1], other) | path_of(args[0], path);
    case SYS_copy_file_range:
        return path_of(args[0], other) | path_of(args[2], path);
    case SYS_mmap:
        return !(args[3] & 0x20) && path_of(args[4], path);
    }
    return 0;
}

/* Whether a call needs room on the disk. */
static int fills(long number, const long *args)
{
    switch (number) {
    case SYS_open:
        return args[1] & O_CREAT;
    case SYS_openat:
        return args[2] & O_CREAT;
    case SYS_creat: case SYS_mkdir: case SYS_mkdirat: case SYS_write: case SYS_writev:
    case SYS_pwrite64: case SYS_pwritev: case SYS_sendfile: case SYS_copy_file_range:
    case SYS_link: case SYS_linkat: case SYS_fallocate:
        return 1;
    }
    return 0;
}

/* Makes a call that moves at most half of what it is asked to; others as they are. */
static long cut_short(long number, const long *args)
{
    long changed[6];
    struct iovec part;
    memcpy(changed, args, sizeof changed);
    long *count = 0;
    switch (number) {
    case SYS_read: case SYS_write: case SYS_pread64: case SYS_pwrite64:
        count = &changed[2];
        break;
    case SYS_sendfile:
        count = &changed[3];
        break;
    case SYS_copy_file_range:
        count = &changed[4];
        break;
    case SYS_readv: case SYS_writev: case SYS_preadv: case SYS_pwritev: case SYS_preadv2:
    case SYS_pwritev2:
        part = *(const struct iovec *)args[1];
        part.iov_len = (part.iov_len + 1) / 2;
        changed[1] = (long)&part;
        changed[2] = 1;
    }
    if (count)
        *count = (*count + 1) / 2;
    return raw_call(number, changed);
}

static void end_process(void)
{
    call(SYS_kill, call(SYS_getpid, 0, 0, 0), SIGKILL, 0);
}

static long make(long number, const long *args)
{
    char path[PATH] = "";
    if (!find(number, args, path))
        return raw_call(number, args);
    long index = seen++;
    if (index < LOGGED) {
        entries[index].number = kind(number, args);
        entries[index].flags = fills(number, args);
        memcpy(entries[index].path, path, PATH);
    }
    if (action == FAIL_WRITES && index >= at && fills(number, args)) {
        hit = 1;
        return -fault;
    }
    if (index != at || action == LET_THROUGH || action == FAIL_WRITES)
        return raw_call(number, args);
    hit = 1;
    switch (action) {
    case FAIL:
        if (number == SYS_close) /* Linux closes the descriptor in any case. */
            raw_call(number, args);
        return -fault;
    case CUT_SHORT:
        return cut_short(number, args);
    case SHRINK:
        call(SYS_truncate, (long)shrinking, fault, 0);
        return raw_call(number, args);
    case KILL_BEFORE:
        end_process();
    }
    long result = raw_call(number, args);
    if (action == KILL_AFTER)
        end_process();
    return result;
}

static void handle(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    ucontext_t *user = context;
    greg_t *registers = user->uc_mcontext.gregs;
    long number = registers[REG_RAX];
    long args[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                    registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
    switch (number) {
    case SYS_clone: case SYS_fork: case SYS_vfork: case SYS_execve: case SYS_execveat:
    case SYS_clone3: case SYS_rt_sigreturn:
        lost = 1;
        selector = 0;
        registers[REG_RIP] -= 2; /* Once more, and now without a signal. */
        return;
    }
    registers[REG_RAX] = make(number, args);
    if (number == SYS_rt_sigprocmask) { /* The return from here would undo it. */
        long query[6] = {SIG_BLOCK, 0, (long)&user->uc_sigmask, 8, 0, 0};
        raw_call(number, query);
        sigdelset(&user->uc_sigmask, SIGSYS); /* Blocked, it would end the process. */
    }
}

/* Turns system calls of this thread into signals from the next `arm` on; returns 0 or -errno. */
int prepare(const char *folder)
{
    struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } handling = {handle, SA_SIGINFO | SA_RESTORER | SA_NODEFER, raw_restorer, 0};
    long args[6] = {SIGSYS, (long)&handling, 0, 8, 0, 0};
    snprintf(root, sizeof root, "%s", folder);
    selector = 0;
    long result = raw_call(SYS_rt_sigaction, args);
    if (result < 0)
        return result;
    long dispatch[6] = {PR_SET_SYSCALL_USER_DISPATCH, 1, (long)raw_start, raw_end - raw_start,
                        (long)&selector, 0};
    return raw_call(SYS_prctl, dispatch);
}

void arm(int chosen, long index, int number, const char *file)
{
    action = chosen;
    at = index;
    fault = number;
    snprintf(shrinking, sizeof shrinking, "%s", file ? file : "");
    seen = lost = hit = 0;
    selector = 1;
}

long disarm(void)
{
    selector = 0;
    return seen;
}

int logged_number(long index)
{
    return entries[index].number;
}

int logged_fills(long index)
{
    return entries[index].flags != 0;
}

const char *logged_path(long index)
{
    return entries[index].path;
}
