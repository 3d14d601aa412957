/* Native objects, loaded out of memory: of exactly the bytes that were checked. */
#ifndef FXA_LIBRARY_H
#define FXA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "errors.h"

typedef struct {
    void *handle; /* dlopen's; NULL when closed */
    bool keeps_file;
    int file;
} Library;

/* Load a native object. FXA_NOT_LOADED says why it cannot be. `library` is zeroed before; fxa_library_close closes it in any case. */
FxaCode fxa_library_open(Library *library, const void *content, size_t size, FxaError *error);
void fxa_library_close(Library *library);

#endif
