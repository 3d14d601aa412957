#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

FxaCode fxa_fail(FxaError *error, FxaCode code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof(error->text), format, list);
    va_end(list);
    error->code = code;
    return code;
}
