/* CompiledGraph: a Python callable around one generated entry point. */
#ifndef INDUCTOR_CODEGEN_GRAPH_H
#define INDUCTOR_CODEGEN_GRAPH_H

#include <stdatomic.h>

#include "shim.h"

/* What an entry returns. */
enum { ENTRY_OK = 0, ENTRY_TORCH_ERROR = 1, ENTRY_PYTHON_ERROR = 2 };

/* The version of everything between generated code and this runtime: entry, bind and callbacks. */
enum { ENTRY_ABI = 4 };

/* (graph, input tensors, input numbers, result tensors, result numbers). Tensors in are borrowed, results are owned handles and
   NULL on entry; numbers are int64, a float's bits among them. As many words behind the first tensor as the graph has inputs,
   there is for each tensor the same handle again if the call owns it, else NULL: the entry may delete it and put NULL there. */
typedef int32_t (*Entry)(void *, const Handle *, const int64_t *, Handle *, int64_t *);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Entry entry;
    void *library;
    PyObject *path;
    PyObject *metadata;
    PyObject *operators; /* tuple of callables for call_operator */
    PyObject *prepare;   /* what gpu.c asks for variants of kernels; None without kernels for a GPU */
    PyObject *weak_references;
    char *input_kinds;  /* one of t i f u each */
    char *output_kinds; /* one of t i f n each */
    Py_ssize_t input_count;
    Py_ssize_t output_count;
    Py_ssize_t tensor_output_count;
    bool release_gil;
    int64_t scratch_limit;
} Graph;

/* Memory kept between calls, of whatever graphs: NULL while a call uses it. A training step's two graphs share it so. */
extern _Atomic(Handle) kept_scratch;

extern PyType_Spec graph_spec;

#endif
