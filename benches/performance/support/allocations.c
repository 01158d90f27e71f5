/* Counts how often a process asks for memory, in the first eight bytes of a file that others can read meanwhile. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_ulong nowhere;
static atomic_ulong *asked = &nowhere;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("ALLOCATIONS");
	int file;

	/* Another program may start the one that is counted. */
	if (!path || strcmp(program_invocation_short_name, "termgate"))
		return;
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file >= 0) {
		void *shared = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (shared != MAP_FAILED)
			asked = shared;
		close(file);
	}
	/* Programs that this one starts are not counted. */
	unsetenv("LD_PRELOAD");
}

#define COUNTED(type, name, parameters, arguments)              \
	type name parameters                                    \
	{                                                       \
		static type(*_Atomic known) parameters;         \
		type(*next) parameters = known;                 \
		if (!next)                                      \
			known = next = dlsym(RTLD_NEXT, #name); \
		atomic_fetch_add(asked, 1);                     \
		return next arguments;                          \
	}

COUNTED(void *, malloc, (size_t size), (size))
COUNTED(void *, realloc, (void *old, size_t size), (old, size))
COUNTED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
COUNTED(int, posix_memalign, (void **memory, size_t alignment, size_t size), (memory, alignment, size))

/* The C library asks for it while it looks for the next one of these. */
extern void *__libc_calloc(size_t count, size_t size);

void *calloc(size_t count, size_t size)
{
	atomic_fetch_add(asked, 1);
	return __libc_calloc(count, size);
}
