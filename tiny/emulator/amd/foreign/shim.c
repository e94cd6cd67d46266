// Preloaded into a foreign program: sends what it asks of /dev/kfd and the render nodes to the emulator.
//
// The program's own libraries call open, ioctl and mmap as on a machine with the card. Here paths below /dev and
// /sys that the emulated machine has lead to a folder of its files; a device file is one end of a socket pair, whose
// other end the emulator holds, so that it is known by its inode (also after dup) and its closing is seen; an ioctl
// is one message to the emulator; an mmap gets the file that holds the pages. Memory of the program itself that it
// gives to the card (USERPTR) is moved to a file that both sides map.
//
// Compiled by foreign/command.py, which gives the numbers of the ioctl interface as -D options. The messages are
// those of foreign/server.py.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#define PAGE 4096ul
#define MOST_FILES 64
#define MOST_SHARED 4096
#define MEMORY "user-memory"                       // the name of files that hold the program's pages
#define MOST_ARGUMENT 16384
#define DRM_MAJOR 226                              // include/drm/drm_file.h
#define KFD_MAJOR 510                              // any: the kernel gives /dev/kfd a dynamic one
enum { OPEN, IOCTL, PAGES };

struct request {
  uint32_t kind, file;
  uint64_t first, second;
  uint32_t shared, size;                           // whether a file of pages comes with it; bytes that follow
};
struct reply {
  int32_t error;
  uint32_t file;
  uint64_t offset;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { ino_t inode; uint32_t file; unsigned major, minor; } files[MOST_FILES];
static int file_count;

static const char *root(void) {
  static const char *value;
  if (!value) value = getenv("EMULATED_CARD_ROOT");
  return value;
}

// -- messages ---------------------------------------------------------------------------------------------------------
static __thread int connection = -1;
static __thread pid_t connected_as;
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void hang_up(void *value) { close((int)(intptr_t)value - 1); }
static void make_key(void) { pthread_key_create(&at_thread_end, hang_up); }

// A connection of this thread: a call may sleep in the emulator, and others must not wait for it.
static int connected(void) {
  if (connection >= 0 && connected_as == getpid()) return connection;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!root() || (size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", root()) >=
                     sizeof address.sun_path)
    return -1;
  int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  if (connect(made, (struct sockaddr *)&address, sizeof address)) {
    close(made);
    return -1;
  }
  connection = made, connected_as = getpid();
  pthread_once(&once, make_key);
  pthread_setspecific(at_thread_end, (void *)(intptr_t)(made + 1));
  return made;
}

// Sends a request with its data and a file (-1: none); the answer's error. Data that comes back replaces `data`.
static int ask(struct request *request, void *data, int file, struct reply *reply, int *given) {
  int to = connected();
  if (to < 0) return ENODEV;
  request->shared = file >= 0;
  union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control = {0};
  struct iovec parts[2] = {{request, sizeof *request}, {data, request->size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  if (file >= 0) {
    message.msg_control = &control, message.msg_controllen = sizeof control;
    control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &file, sizeof(int));
  }
  ssize_t done;
  while ((done = sendmsg(to, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
  if (done < 0) return ENODEV;
  parts[0] = (struct iovec){reply, sizeof *reply};
  message.msg_control = &control, message.msg_controllen = sizeof control;
  while ((done = recvmsg(to, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
  if (done < (ssize_t)sizeof *reply) return ENODEV;
  if (given) {
    *given = -1;
    if (CMSG_FIRSTHDR(&message)) memcpy(given, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  }
  return reply->error;
}

// -- device files -----------------------------------------------------------------------------------------------------
static int raw_fstat(int fd, struct stat *info) { return syscall(SYS_newfstatat, fd, "", info, AT_EMPTY_PATH); }

// The place in `files` of a descriptor, -1 for one that is none of ours.
static int device_of(int fd) {
  struct stat info;
  int found = -1, before = errno;
  if (file_count && !raw_fstat(fd, &info) && S_ISSOCK(info.st_mode)) {
    pthread_mutex_lock(&lock);
    for (int n = 0; n < MOST_FILES; n++)
      if (files[n].inode == info.st_ino) found = n;
    pthread_mutex_unlock(&lock);
  }
  errno = before;
  return found;
}

// The number at *text, which is moved behind it. No sscanf or strtoul: new C libraries give them names that older
// ones, which a program may bring, do not have.
static unsigned long number_at(const char **text, unsigned base) {
  unsigned long value = 0;
  for (;; (*text)++) {
    unsigned digit = **text >= 'a' ? **text - 'a' + 10u : **text - '0' + 0u;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

static unsigned minor_of(const char *path) {       // of /dev/dri/renderDn; 0 for /dev/kfd
  const char *number = strstr(path, "renderD");
  if (number) number += 7;
  return number ? number_at(&number, 10) : 0;
}

static int is_device(const char *path) { return !strcmp(path, "/dev/kfd") || !strncmp(path, "/dev/dri/renderD", 16); }

static int open_device(const char *path, int flags) {
  struct request request = {.kind = OPEN, .first = flags, .size = strlen(path)};
  struct reply reply;
  struct stat info;
  char copy[PATH_MAX];
  int fd = -1, place = 0;
  strcpy(copy, path);
  int error = ask(&request, copy, -1, &reply, &fd);
  if (error || fd < 0) return errno = error ? error : ENODEV, -1;
  if (!(flags & O_CLOEXEC)) fcntl(fd, F_SETFD, 0);
  raw_fstat(fd, &info);
  pthread_mutex_lock(&lock);
  for (place = 0; place < MOST_FILES && files[place].inode; place++) {}
  if (place == MOST_FILES) place = file_count % MOST_FILES;  // the oldest; programs open a few
  files[place].inode = info.st_ino, files[place].file = reply.file;
  files[place].major = minor_of(path) ? DRM_MAJOR : KFD_MAJOR, files[place].minor = minor_of(path);
  file_count++;
  pthread_mutex_unlock(&lock);
  return fd;
}

// -- memory of the program's own that the card is to reach ------------------------------------------------------------
static struct { ino_t inode; int fd; } shared[MOST_SHARED];

static void forget_unmapped(const char *maps) {    // under the lock
  for (int n = 0; n < MOST_SHARED; n++) {
    char text[64];
    if (!shared[n].inode) continue;
    snprintf(text, sizeof text, " %lu ", (unsigned long)shared[n].inode);
    if (!strstr(maps, text)) {
      close(shared[n].fd);
      shared[n].inode = 0;
    }
  }
}

static char *read_maps(void) {
  size_t room = 1 << 16, size = 0;
  char *text = NULL;
  int fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  for (ssize_t done = 1; fd >= 0 && done > 0; size += done > 0 ? done : 0) {
    if (!text || size + 4096 > room) text = realloc(text, room *= 2);
    if (!text) break;
    done = read(fd, text + size, room - size - 1);
  }
  if (fd >= 0) close(fd);
  if (text) text[size] = 0;
  return text;
}

// Put the pages at `address` into a file and map it there instead. Nobody else may write to them meanwhile. The lock
// is held; the mmap below does not take it, for such a file is no device file.
static int move_pages(char *address, size_t size) {
  static const char zeros[PAGE];
  struct stat info;
  int fd = syscall(SYS_memfd_create, MEMORY, 1 /* MFD_CLOEXEC */), place = 0;
  if (fd < 0 || ftruncate(fd, size)) return -1;
  char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (copy == MAP_FAILED) return close(fd), -1;
  for (size_t at = 0; at < size; at += PAGE)
    if (memcmp(address + at, zeros, PAGE)) memcpy(copy + at, address + at, PAGE);
  munmap(copy, size);
  for (place = 0; place < MOST_SHARED && shared[place].inode; place++) {}
  if (place == MOST_SHARED || raw_fstat(fd, &info) ||
      mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
    return close(fd), -1;
  shared[place].inode = info.st_ino, shared[place].fd = fd;
  return fd;
}

// The file that holds a range of the program's memory, and where; -1 if it cannot be shared with the card.
static int share(uintptr_t address, size_t size, uint64_t *offset) {
  uintptr_t start = address & ~(PAGE - 1), end = (address + size + PAGE - 1) & ~(PAGE - 1), at = start;
  int found = -1, ours = 0, private = 0;
  pthread_mutex_lock(&lock);
  char *maps = read_maps();
  if (maps) forget_unmapped(maps);
  for (char *line = maps; line && *line && at < end; line = strchr(line, '\n') + 1) {
    // "low-high mode offset device inode name": proc_pid_maps(5)
    const char *text = line;
    uintptr_t low = number_at(&text, 16), high = (text++, number_at(&text, 16));
    const char *mode = ++text;
    text += 5;
    unsigned long from = number_at(&text, 16);
    text = strchr(text + 1, ' ') + 1;
    unsigned long inode = number_at(&text, 10);
    text += strspn(text, " ");
    if (high <= at) continue;
    if (low > at || mode[0] != 'r' || mode[1] != 'w') break;
    if (mode[3] == 'p') {
      private++;
    } else {
      int n = strncmp(text, "/memfd:" MEMORY, strlen("/memfd:" MEMORY)) ? MOST_SHARED : 0;
      while (n < MOST_SHARED && shared[n].inode != inode) n++;
      if (n == MOST_SHARED || (ours && shared[n].fd != found)) break;
      if (!ours++) found = shared[n].fd, *offset = from + (start - low);
    }
    at = high;
  }
  if (at < end || (ours && private)) {
    found = -1;
  } else if (private) {
    *offset = 0;
    found = move_pages((char *)start, end - start);
  }
  free(maps);
  pthread_mutex_unlock(&lock);
  return found;
}

// -- the calls --------------------------------------------------------------------------------------------------------
int ioctl(int fd, unsigned long number, ...) {
  va_list list;
  va_start(list, number);
  char *argument = va_arg(list, char *);
  va_end(list);
  int device = device_of(fd);
  if (device < 0) return syscall(SYS_ioctl, fd, number, argument);
  char data[MOST_ARGUMENT] __attribute__((aligned(8))) = {0};
  struct request request = {.kind = IOCTL, .file = files[device].file, .first = number, .size = _IOC_SIZE(number)};
  struct reply reply;
  int pages = -1, kfd = _IOC_TYPE(number) == 'K';
  if (request.size && !argument) return errno = EFAULT, -1;
  if (_IOC_DIR(number) & _IOC_WRITE) memcpy(data, argument, request.size);
  if (kfd && _IOC_NR(number) == ACQUIRE_VM) {
    uint32_t *drm_fd = (uint32_t *)(data + ACQUIRE_VM_FD);
    int drm = device_of(*drm_fd);
    *drm_fd = drm < 0 ? UINT32_MAX : files[drm].file;
  } else if (kfd && _IOC_NR(number) == ALLOC && *(uint32_t *)(data + ALLOC_FLAGS) & USERPTR) {
    pages = share(*(uint64_t *)(data + ALLOC_USER), *(uint64_t *)(data + ALLOC_SIZE), &request.second);
  }
  int error = ask(&request, data, pages, &reply, NULL);
  if (kfd && _IOC_NR(number) == ACQUIRE_VM) memcpy(data, argument, request.size);
  if (error != ENODEV && _IOC_DIR(number) & _IOC_READ) memcpy(argument, data, request.size);
  return error ? (errno = error, -1) : 0;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  int device = fd < 0 ? -1 : device_of(fd), pages = -1;
  if (device < 0) return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  struct request request = {.kind = PAGES, .file = files[device].file, .first = size, .second = offset};
  struct reply reply;
  int error = ask(&request, NULL, -1, &reply, &pages);
  if (error || pages < 0) return errno = error ? error : ENODEV, MAP_FAILED;
  void *found = (void *)syscall(SYS_mmap, address, size, protection, (flags & ~MAP_PRIVATE) | MAP_SHARED, pages,
                                reply.offset);
  error = errno;
  close(pages);
  errno = error;
  return found;
}
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset) __attribute__((alias("mmap")));

// -- paths ------------------------------------------------------------------------------------------------------------
// Where a path leads: into the folder of the emulated machine's files for what that machine has, and for what only
// it may have.
static const char *lead(const char *path, char *room) {
  static const char *const all[] = {"/dev/kfd", "/dev/dri", "/sys/class/kfd", "/sys/class/drm",
                                    "/sys/devices/virtual/kfd", "/sys/module/amdgpu"};
  if (!path || !root()) return path;
  int plain = strncmp(path, "/dev/", 5) && strncmp(path, "/sys/", 5) && strcmp(path, "/proc/modules");
  if (plain || (size_t)snprintf(room, PATH_MAX, "%s%s", root(), path) >= PATH_MAX) return path;
  for (size_t n = 0; n < sizeof all / sizeof *all; n++)
    if (!strncmp(path, all[n], strlen(all[n]))) return room;
  int before = errno, there = !syscall(SYS_faccessat, AT_FDCWD, room, F_OK);
  errno = before;
  return there ? room : path;
}

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int open_any(int folder, const char *path, int flags, mode_t mode) {
  char room[PATH_MAX];
  const char *there = lead(path, room);
  if (there != path && is_device(path) && !syscall(SYS_faccessat, AT_FDCWD, there, F_OK))
    return open_device(path, flags);
  return syscall(SYS_openat, folder, there, flags, mode);
}

static mode_t mode_of(int flags, va_list list) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}
#define OPEN_AS(name)                                                                   \
  int name(const char *path, int flags, ...) {                                          \
    va_list list;                                                                       \
    va_start(list, flags);                                                              \
    mode_t mode = mode_of(flags, list);                                                 \
    va_end(list);                                                                       \
    return open_any(AT_FDCWD, path, flags, mode);                                       \
  }
#define OPENAT_AS(name)                                                                 \
  int name(int folder, const char *path, int flags, ...) {                              \
    va_list list;                                                                       \
    va_start(list, flags);                                                              \
    mode_t mode = mode_of(flags, list);                                                 \
    va_end(list);                                                                       \
    return open_any(folder, path, flags, mode);                                         \
  }
OPEN_AS(open)
OPEN_AS(open64)
OPENAT_AS(openat)
OPENAT_AS(openat64)
int __open_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }

FILE *fopen(const char *path, const char *mode) {
  char room[PATH_MAX];
  return REAL(fopen)(lead(path, room), mode);
}
FILE *fopen64(const char *path, const char *mode) {
  char room[PATH_MAX];
  return REAL(fopen64)(lead(path, room), mode);
}
DIR *opendir(const char *path) {
  char room[PATH_MAX];
  return REAL(opendir)(lead(path, room));
}
int access(const char *path, int mode) {
  char room[PATH_MAX];
  return syscall(SYS_faccessat, AT_FDCWD, lead(path, room), mode);
}
int faccessat(int folder, const char *path, int mode, int flags) {
  char room[PATH_MAX];
  return REAL(faccessat)(folder, lead(path, room), mode, flags);
}
ssize_t readlink(const char *path, char *text, size_t size) {
  char room[PATH_MAX];
  return syscall(SYS_readlinkat, AT_FDCWD, lead(path, room), text, size);
}
ssize_t readlinkat(int folder, const char *path, char *text, size_t size) {
  char room[PATH_MAX];
  return syscall(SYS_readlinkat, folder, lead(path, room), text, size);
}
char *realpath(const char *path, char *resolved) {
  char room[PATH_MAX];
  char *found = REAL(realpath)(lead(path, room), resolved);
  size_t inside = root() ? strlen(root()) : 0;
  if (found && inside && !strncmp(found, root(), inside)) memmove(found, found + inside, strlen(found + inside) + 1);
  return found;
}

// A device file looks like one: a character device with the number that the path says.
static void as_device(const char *path, struct stat *info) {
  if (is_device(path)) {
    info->st_mode = S_IFCHR | 0660;
    info->st_rdev = makedev(minor_of(path) ? DRM_MAJOR : KFD_MAJOR, minor_of(path));
  }
}
static int stat_any(int folder, const char *path, struct stat *info, int flags) {
  char room[PATH_MAX];
  const char *there = lead(path, room);
  int result = syscall(SYS_newfstatat, folder, there, info, flags);
  if (!result && there != path) as_device(path, info);
  return result;
}
static int fstat_any(int fd, struct stat *info) {
  int result = raw_fstat(fd, info), device = result ? -1 : device_of(fd);
  if (device >= 0) {
    info->st_mode = S_IFCHR | 0660;
    info->st_rdev = makedev(files[device].major, files[device].minor);
  }
  return result;
}
int stat(const char *path, struct stat *info) { return stat_any(AT_FDCWD, path, info, 0); }
int lstat(const char *path, struct stat *info) { return stat_any(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW); }
int fstat(int fd, struct stat *info) { return fstat_any(fd, info); }
int fstatat(int folder, const char *path, struct stat *info, int flags) {
  return path && !*path && flags & AT_EMPTY_PATH ? fstat_any(folder, info) : stat_any(folder, path, info, flags);
}
int __xstat(int version, const char *path, struct stat *info) { return stat(path, info); }
int __lxstat(int version, const char *path, struct stat *info) { return lstat(path, info); }
int __fxstat(int version, int fd, struct stat *info) { return fstat(fd, info); }
// with 64-bit offsets, as on every machine that the driver supports, these are the same
int stat64(const char *, struct stat64 *) __attribute__((alias("stat")));
int lstat64(const char *, struct stat64 *) __attribute__((alias("lstat")));
int fstat64(int, struct stat64 *) __attribute__((alias("fstat")));
int fstatat64(int, const char *, struct stat64 *, int) __attribute__((alias("fstatat")));
int __xstat64(int, const char *, struct stat64 *) __attribute__((alias("__xstat")));
int __lxstat64(int, const char *, struct stat64 *) __attribute__((alias("__lxstat")));
int __fxstat64(int, int, struct stat64 *) __attribute__((alias("__fxstat")));
