#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

FxaCode fxa_fail(FxaError *error, FxaCode code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof(error->text), format, list);
    va_end(list);
    error->code = code;
    error->action[0] = 0;
    return code;
}

FxaCode fxa_advise(FxaError *error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->action, sizeof(error->action), format, list);
    va_end(list);
    return error->code;
}
