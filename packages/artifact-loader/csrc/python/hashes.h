/* Functions of the module that hash: (content, level), which is a name or left out. */
#ifndef FXA_HASHES_H
#define FXA_HASHES_H

#include <Python.h>

PyObject *fxa_digest_of(PyObject *module, PyObject *args);
PyObject *fxa_checksum_of(PyObject *module, PyObject *args);

#endif
