/* Hashes of contents, for any object with a buffer. */
#define PY_SSIZE_T_CLEAN
#include "hashes.h"

#include <stdbool.h>
#include <string.h>

#include "../core/blake3.h"
#include "../core/checksum.h"
#include "../core/target.h"

/* The level of that name, or this processor's own for NULL; NULL, with an error set, if it does not run it. */
static const char *level_named(const char *name) {
    const char *const *levels = fxa_cpu_levels();
    while (name && *levels && strcmp(*levels, name)) levels++;
    if (name && !*levels) PyErr_Format(PyExc_ValueError, "this processor does not run %s", name);
    return *levels;
}

static PyObject *in_hexadecimal(const uint8_t *bytes, int count) {
    static const char DIGITS[] = "0123456789abcdef";
    char text[2 * FXA_DIGEST_BYTES];
    for (int i = 0; i < count; i++) {
        text[2 * i] = DIGITS[bytes[i] >> 4];
        text[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    return PyUnicode_FromStringAndSize(text, 2 * count);
}

PyObject *fxa_digest_of(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer buffer;
    const char *level = NULL;
    uint8_t made[FXA_DIGEST_BYTES];
    bool good = false;
    if (!PyArg_ParseTuple(args, "y*|s", &buffer, &level)) return NULL;
    level = level_named(level);
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS
        good = fxa_blake3(level, buffer.buf, buffer.len, made);
        Py_END_ALLOW_THREADS
        if (!good) PyErr_NoMemory();
    }
    PyBuffer_Release(&buffer);
    return good ? in_hexadecimal(made, FXA_DIGEST_BYTES) : NULL;
}

PyObject *fxa_checksum_of(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer buffer;
    const char *level = NULL;
    uint8_t made[8];
    if (!PyArg_ParseTuple(args, "y*|s", &buffer, &level)) return NULL;
    level = level_named(level);
    if (PyErr_Occurred()) {
        PyBuffer_Release(&buffer);
        return NULL;
    }
    uint64_t sum;
    Py_BEGIN_ALLOW_THREADS
    sum = fxa_checksum(level, buffer.buf, buffer.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&buffer);
    for (int i = 0; i < 8; i++) made[i] = (uint8_t)(sum >> (56 - 8 * i));
    return in_hexadecimal(made, 8);
}
