/* Fails one chosen system call of a process, as a full disk or a machine without descriptors would.

   Preloaded (LD_PRELOAD). It counts the calls of each kind from the moment the process opens a file whose name ends in
   FAULTS_FROM, and fails the FAULTS_AT-th of the kind FAULTS_KIND, or every one since then where FAULTS_LASTS is set, with
   the error number FAULTS_ERRNO. The counts go to the file FAULTS_BOOK, which is mapped, so that no end of the process
   loses them: one 64-bit number a kind, how many calls were failed, and the name of what the first failed call was about. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { OPEN, WRITE, SYNC, RENAME, MKDIR, UNLINK, CONNECT, SPAWN, THREAD, KINDS };
static const char *const NAMES[KINDS] = {"open", "write", "sync", "rename", "mkdir", "unlink", "connect", "spawn", "thread"};

struct book {
  _Atomic uint64_t counts[KINDS];
  _Atomic uint64_t failed;
  char about[512];
};

static _Atomic(struct book *) book;
static _Atomic int owner; /* the process that counts: one that it forks does not */
static int kind = -1, error_number = EIO, lasts;
static uint64_t at;

static void arm(void) {
  const char *path = getenv("FAULTS_BOOK"), *name = getenv("FAULTS_KIND");
  if (!path || book) return;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct book))) return;
  void *map = mmap(NULL, sizeof(struct book), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (map == MAP_FAILED) return;
  for (int one = 0; name && one < KINDS; one++)
    if (!strcmp(name, NAMES[one])) kind = one;
  at = getenv("FAULTS_AT") ? strtoull(getenv("FAULTS_AT"), NULL, 10) : 0;
  error_number = getenv("FAULTS_ERRNO") ? atoi(getenv("FAULTS_ERRNO")) : EIO;
  lasts = getenv("FAULTS_LASTS") != NULL;
  owner = getpid();
  book = map;
}

static int fails(enum kind which, const char *about, int fd) {
  struct book *ours = book;
  if (!ours || owner != getpid()) return 0;
  uint64_t number = ++ours->counts[which];
  if ((int)which != kind || number < at || (!lasts && number > at)) return 0;
  if (!ours->failed++) {
    char link[64];
    ssize_t size = -1;
    if (!about && fd >= 0) {
      snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
      size = readlink(link, ours->about, sizeof ours->about - 1);
    }
    if (size < 0) snprintf(ours->about, sizeof ours->about, "%s", about ? about : "");
  }
  errno = error_number;
  return 1;
}

static void watch(const char *path, int flags) {
  const char *from = getenv("FAULTS_FROM");
  size_t length = strlen(path), wanted = from ? strlen(from) : 0;
  if (!book && from && flags & (O_WRONLY | O_RDWR) && length >= wanted && !strcmp(path + length - wanted, from)) arm();
}

#define REAL(result, name, ...) \
  static result (*real)(__VA_ARGS__); \
  if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define MODE(flags) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

#define OPENS(function) \
  int function(const char *path, int flags, ...) { \
    MODE(flags) \
    watch(path, flags); \
    if (fails(OPEN, path, -1)) return -1; \
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode); \
  }
OPENS(open)
OPENS(open64)

#define OPENS_AT(function) \
  int function(int folder, const char *path, int flags, ...) { \
    MODE(flags) \
    watch(path, flags); \
    if (fails(OPEN, path, -1)) return -1; \
    return (int)syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode); \
  }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
  if (fails(WRITE, NULL, fd)) return -1;
  REAL(ssize_t, "write", int, const void *, size_t);
  return real(fd, data, size);
}

int fsync(int fd) {
  if (fails(SYNC, NULL, fd)) return -1;
  REAL(int, "fsync", int);
  return real(fd);
}

int fdatasync(int fd) {
  if (fails(SYNC, NULL, fd)) return -1;
  REAL(int, "fdatasync", int);
  return real(fd);
}

int rename(const char *from, const char *to) {
  if (fails(RENAME, to, -1)) return -1;
  REAL(int, "rename", const char *, const char *);
  return real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  if (fails(RENAME, to, -1)) return -1;
  REAL(int, "renameat", int, const char *, int, const char *);
  return real(from_folder, from, to_folder, to);
}

int link(const char *from, const char *to) {
  if (fails(RENAME, to, -1)) return -1;
  REAL(int, "link", const char *, const char *);
  return real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  if (fails(MKDIR, path, -1)) return -1;
  REAL(int, "mkdir", const char *, mode_t);
  return real(path, mode);
}

int unlink(const char *path) {
  if (fails(UNLINK, path, -1)) return -1;
  REAL(int, "unlink", const char *);
  return real(path);
}

int connect(int fd, const struct sockaddr *address, socklen_t size) {
  if (fails(CONNECT, NULL, fd)) return -1;
  REAL(int, "connect", int, const struct sockaddr *, socklen_t);
  return real(fd, address, size);
}

pid_t fork(void) {
  if (fails(SPAWN, "", -1)) return -1;
  REAL(pid_t, "fork", void);
  return real();
}

/* A vfork that returns through this function would return twice into a frame that is gone: a fork does the same. */
pid_t vfork(void) { return fork(); }

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  if (fails(THREAD, "", -1)) return error_number;
  REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  return real(thread, attributes, start, argument);
}
