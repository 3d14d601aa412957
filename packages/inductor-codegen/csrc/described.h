/* Tensors described in bytes: what a recorded graph relies on, compared in one go. */
#ifndef INDUCTOR_CODEGEN_DESCRIBED_H
#define INDUCTOR_CODEGEN_DESCRIBED_H

#include "shim.h"

/* Python: described(values, positions, addresses) -> bytes. */
PyObject *described(PyObject *module, PyObject *args);

#endif
