/* The dynamic linker loads files only. A memory file is one that nobody else can name, sealed so that nobody can change it. The
linker takes a path that it knows for the library that it knows: the descriptor in the path is kept while the library is loaded. */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool write_all(int file, const char *content, size_t size) {
    while (size) {
        ssize_t written = write(file, content, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        content += written;
        size -= written;
    }
    return true;
}

static FxaCode load(Library *library, const char *path, FxaError *error) {
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library->handle ? FXA_OK : fxa_fail(error, FXA_NOT_LOADED, "a native object cannot be loaded: %s", dlerror());
}

/* Where there are no memory files: a file of an unused name that is gone when it is loaded. */
static FxaCode load_temporary(Library *library, const void *content, size_t size, FxaError *error) {
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof(path), "%s/fxstack-artifact-XXXXXX", folder && *folder ? folder : "/tmp");
    int file = mkstemp(path);
    if (file < 0) return fxa_fail(error, FXA_NOT_LOADED, "no file can be made to load a native object from: %s", strerror(errno));
    bool good = write_all(file, content, size);
    close(file);
    FxaCode code = good ? load(library, path, error) : fxa_fail(error, FXA_NOT_LOADED, "a temporary file cannot be written");
    unlink(path);
    return code;
}

FxaCode fxa_library_open(Library *library, const void *content, size_t size, FxaError *error) {
#ifdef MFD_ALLOW_SEALING
    int file = memfd_create("fxstack-artifact", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        library->keeps_file = true;
        library->file = file;
        bool good = write_all(file, content, size) && !access(path, R_OK) &&
                    !fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
        if (good) return load(library, path, error);
        fxa_library_close(library);
    }
#endif
    return load_temporary(library, content, size, error);
}

void fxa_library_close(Library *library) {
    if (library->handle) dlclose(library->handle);
    if (library->keeps_file) close(library->file);
    memset(library, 0, sizeof(*library));
}
