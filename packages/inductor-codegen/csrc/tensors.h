/* Between Python's tensor objects and torch's tensor handles. */
#ifndef INDUCTOR_CODEGEN_TENSORS_H
#define INDUCTOR_CODEGEN_TENSORS_H

#include "shim.h"

/* Where a Python tensor object keeps its at::Tensor, in bytes from its start; negative: not known, ask for `_cdata`. */
extern Py_ssize_t tensor_slot;

/* torch.Tensor and, checked first, its most common subclass torch.nn.Parameter. */
extern PyTypeObject *tensor_type;
extern PyTypeObject *parameter_type;

/* A borrowed handle of a tensor object, valid while the object lives. `*cell` is memory for it when no slot is known and must
   live as long. NULL with TypeError for anything but a tensor. */
Handle tensor_unwrap(PyObject *object, void **cell);

/* A new reference to the Python object of a tensor; `handle` is left alone. NULL with an exception. */
PyObject *tensor_wrap(Handle handle);

/* Python: calibrate(tensor_type, parameter_type, examples, use_slot) -> offset or -1. `examples` are at least three tensors. */
PyObject *tensor_calibrate(PyObject *module, PyObject *args);

#endif
