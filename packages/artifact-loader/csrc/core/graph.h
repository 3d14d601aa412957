/* A compiled graph with its contract: the native entry of an artifact, called without Python. */
#ifndef FXA_GRAPH_H
#define FXA_GRAPH_H

#include "contract.h"
#include "gpu.h"
#include "library.h"

/* The version of everything between generated code and its host: entry, bind and callbacks (inductor-codegen's ENTRY_ABI). */
enum { FXA_ENTRY_ABI = 4 };

/* What an entry and its callbacks return. */
enum { ENTRY_OK = 0, ENTRY_TORCH_ERROR = 1, ENTRY_HOST_ERROR = 2 };

/* (graph, input tensors, input numbers, result tensors, result numbers). Tensors in are borrowed, results are owned handles
and NULL on entry; numbers are int64, a float's bits among them. As many words behind the first tensor as the graph has inputs,
there is for each tensor NULL: the entry owns none. */
typedef int32_t (*Entry)(void *, const Handle *, const int64_t *, Handle *, int64_t *);

/* Calls operator `index` of the graph's table with these tensors (NULL is None) and numbers. Results are owned handles. 0, or
ENTRY_HOST_ERROR when the host has raised an exception of its own. */
typedef int32_t (*CallOperator)(void *host, int64_t index, const Handle *tensors, int64_t tensor_count,
                                const int64_t *numbers, int64_t number_count, Handle *results, int64_t result_count);

typedef struct {
    Contract contract;
    Handle *constants; /* owned */
    Library library;
    GpuKernels gpu;
    Entry entry;
    CallOperator call_operator; /* NULL: the host runs no operators */
    void *host;
    int64_t scratch_limit;
} Graph;

/* Load a native object for a contract, which is taken over. Constants are borrowed, and kept by handles of their own. FXA_NOT_LOADED
where the object cannot be loaded or needs what this torch does not have. `graph` is zeroed before; fxa_graph_close closes it in any case. */
FxaCode fxa_graph_open(Graph *graph, Contract *contract, const void *content, size_t size, const Handle *constants,
                       FxaError *error);
void fxa_graph_close(Graph *graph);

/* Check and run a call. `results` has a word for each result of the contract; tensors there are owned handles. `numbers` has as many
words, filled from the front with the integers and floats among the results. On an error no result is left. */
FxaCode fxa_graph_run(Graph *graph, const Value *leaves, Handle *results, int64_t *numbers, FxaError *error);

/* The address of the callback `name`, or NULL. */
void *fxa_callback(const char *name);

/* Where callbacks of this thread's call leave their error. */
extern __thread FxaError *fxa_pending;

/* Give back memory that is kept between calls. */
void fxa_drop_scratch(void);

#endif
