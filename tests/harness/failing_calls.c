/* Makes one system call fail: number FAIL_AT of those that concern files below FAIL_IN. A write that fails has written
   half of its bytes. What failed is named on standard error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *directory;
static long fail_at;
static atomic_long calls;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FAIL_AT");
    directory = getenv("FAIL_IN");
    fail_at = at ? atol(at) : 0;
}

static int path_fails(const char *call, const char *path) {
    if (!directory || !path || strncmp(path, directory, strlen(directory)) != 0) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != fail_at) return 0;
    dprintf(2, "failed: %s %s\n", call, path);
    errno = EIO;
    return 1;
}

static int file_fails(const char *call, int file) {
    char name[64], path[4096];
    if (!directory) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return path_fails(call, path);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define OPENS(name)                                              \
    int name(const char *path, int flags, ...) {                 \
        va_list rest;                                            \
        va_start(rest, flags);                                   \
        int mode = va_arg(rest, int);                            \
        va_end(rest);                                            \
        REAL(name);                                              \
        return path_fails(#name, path) ? -1 : real(path, flags, mode); \
    }

#define READS(name, ...)                                         \
    ssize_t name(int file, void *bytes, size_t count __VA_OPT__(, off64_t at)) { \
        REAL(name);                                              \
        return file_fails(#name, file) ? -1 : real(file, bytes, count __VA_OPT__(, at)); \
    }

#define WRITES(name, ...)                                        \
    ssize_t name(int file, const void *bytes, size_t count __VA_OPT__(, off64_t at)) { \
        REAL(name);                                              \
        if (!file_fails(#name, file)) return real(file, bytes, count __VA_OPT__(, at)); \
        real(file, bytes, count / 2 __VA_OPT__(, at));           \
        errno = EIO;                                             \
        return -1;                                               \
    }

#define ACTS_ON_FILE(name, parameters, arguments)                \
    int name parameters {                                        \
        REAL(name);                                              \
        return file_fails(#name, file) ? -1 : real arguments;    \
    }

#define ACTS_ON_PATH(name, parameters, arguments)                \
    int name parameters {                                        \
        REAL(name);                                              \
        return path_fails(#name, path) ? -1 : real arguments;    \
    }

OPENS(open)
OPENS(open64)
READS(read)
READS(pread, at)
READS(pread64, at)
WRITES(write)
WRITES(pwrite, at)
WRITES(pwrite64, at)
ACTS_ON_FILE(ftruncate, (int file, off_t length), (file, length))
ACTS_ON_FILE(ftruncate64, (int file, off64_t length), (file, length))
ACTS_ON_FILE(fsync, (int file), (file))
ACTS_ON_FILE(fdatasync, (int file), (file))
ACTS_ON_PATH(unlink, (const char *path), (path))
ACTS_ON_PATH(mkdir, (const char *path, unsigned mode), (path, mode))
ACTS_ON_PATH(rename, (const char *path, const char *to), (path, to))
ACTS_ON_PATH(link, (const char *path, const char *to), (path, to))
