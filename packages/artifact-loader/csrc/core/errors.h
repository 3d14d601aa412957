/* How the core says what went wrong: a number and a text, never an exception. */
#ifndef FXA_ERRORS_H
#define FXA_ERRORS_H

/* Codes of the loader are FXA and this number. Those below 100 have none and stand for a kind of exception. */
typedef enum {
    FXA_OK = 0,
    FXA_TORCH = 1,    /* torch raised: RuntimeError in Python */
    FXA_RAISED = 2,   /* a function of the host's raised: it knows what */
    FXA_INDEX = 3,    /* an index out of range: IndexError in Python */
    FXA_NO_MEMORY = 4,
    FXA_NO_TORCH = 107,
    FXA_BAD_PROGRAM = 108,
    FXA_NOT_LOADED = 109,
    FXA_NEEDS_PYTHON = 110,
    FXA_COUNT = 301,
    FXA_KIND = 302,
    FXA_DTYPE = 303,
    FXA_DEVICE = 304,
    FXA_SIZE = 305,
    FXA_STRIDE = 306,
    FXA_RELATION = 307,
    FXA_HISTORY = 308,
    FXA_OVERLAP = 309,
    FXA_LAYOUT = 310,
} FxaCode;

typedef struct {
    FxaCode code;
    char text[1500];
    char action[500]; /* what to do about it, or nothing */
} FxaError;

/* Fill `error`, without an action, and return its code. */
FxaCode fxa_fail(FxaError *error, FxaCode code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Say what to do about `error`, and return its code. */
FxaCode fxa_advise(FxaError *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
