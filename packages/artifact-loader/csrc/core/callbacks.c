/* What generated code calls back into: checks, scratch memory, operators without a C entry, and errors. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "graph.h"

__thread FxaError *fxa_pending;

static const int64_t ONE = 1;
enum { CPU = 0 };

static int32_t failed(FxaCode code, const char *text, const char *where) {
    fxa_fail(fxa_pending, code, *where ? "%s\nwhile running %s" : "%s%s", text, where);
    return ENTRY_HOST_ERROR;
}

/* ---- checks ---- */

/* `expected` has for each tensor: scalar type, device type and index, rank, sizes, strides. The contract has been checked, so that
this fails only where the artifact contradicts itself. */
static int32_t check_inputs(const Handle *inputs, const int64_t *expected, int64_t count) {
    const TorchFunctions *torch = &torch_functions;
    for (int64_t i = 0; i < count; i++) {
        const int64_t wanted = expected[3], *layout = expected + 4;
        int64_t rank = -1, *sizes, *strides;
        int32_t dtype, device;
        bool good = !torch->get_dim(inputs[i], &rank) && rank == wanted && !torch->get_dtype(inputs[i], &dtype) &&
                    dtype == expected[0] && !torch->get_device_type(inputs[i], &device) && device == expected[1] &&
                    !torch->get_sizes(inputs[i], &sizes) && !torch->get_strides(inputs[i], &strides);
        bool is_empty = false;
        for (int64_t d = 0; good && d < rank; d++) {
            good = sizes[d] == layout[d];
            is_empty |= sizes[d] == 0;
        }
        for (int64_t d = 0; good && d < rank && !is_empty; d++) good = sizes[d] == 1 || strides[d] == layout[rank + d];
        if (!good) {
            fxa_fail(fxa_pending, FXA_SIZE, "tensor input %lld of the graph is not what it was compiled for", (long long)i);
            return ENTRY_HOST_ERROR;
        }
        expected += 4 + 2 * wanted;
    }
    return ENTRY_OK;
}

/* Make `*result`, an owned handle, exactly of these strides, by a copy if it is not. `wanted` is: scalar type, rank, sizes, strides. */
static int32_t conform(Handle *result, const int64_t *wanted, const char *operator_name, int64_t position) {
    const TorchFunctions *torch = &torch_functions;
    int64_t rank = -1, *sizes, *strides;
    int32_t dtype, device;
    bool is_there = false;
    size_t bytes = wanted[1] * sizeof(int64_t);
    if (!*result || torch->is_defined(*result, &is_there) || !is_there || torch->get_dim(*result, &rank) ||
        rank != wanted[1] || torch->get_dtype(*result, &dtype) || dtype != wanted[0] || torch->get_sizes(*result, &sizes) ||
        memcmp(sizes, wanted + 2, bytes) != 0) {
        fxa_fail(fxa_pending, FXA_TORCH, "result %lld of %s has not the size or type that the compiler expected",
                 (long long)position, operator_name);
        return ENTRY_HOST_ERROR;
    }
    if (torch->get_strides(*result, &strides)) return ENTRY_TORCH_ERROR;
    if (memcmp(strides, wanted + 2 + rank, bytes) == 0) return ENTRY_OK;
    Handle copy = NULL;
    if (torch->get_device_type(*result, &device)) return ENTRY_TORCH_ERROR;
    if (torch->empty_strided(rank, wanted + 2, wanted + 2 + rank, dtype, device, -1, &copy)) return ENTRY_TORCH_ERROR;
    int32_t bad = torch->copy_(copy, *result, 0);
    torch->delete_tensor_object(bad ? copy : *result);
    if (!bad) *result = copy;
    return bad ? ENTRY_TORCH_ERROR : ENTRY_OK;
}

/* ---- scratch memory, kept between calls of whatever graphs: NULL while a call uses it ---- */

static _Atomic(Handle) kept_scratch;

static Handle scratch_take(void *graph, int64_t bytes) {
    (void)graph;
    int64_t *sizes;
    Handle kept = atomic_exchange(&kept_scratch, NULL), made = NULL;
    if (kept && torch_functions.get_sizes(kept, &sizes) == 0 && sizes[0] >= bytes) return kept;
    if (kept) torch_functions.delete_tensor_object(kept);
    return torch_functions.empty_strided(1, &bytes, &ONE, torch_functions.dtype_uint8(), CPU, -1, &made) ? NULL : made;
}

static void scratch_give(void *graph, Handle scratch) {
    int64_t *sizes;
    Handle none = NULL;
    bool keeps = torch_functions.get_sizes(scratch, &sizes) == 0 && sizes[0] <= ((Graph *)graph)->scratch_limit;
    if (keeps && atomic_compare_exchange_strong(&kept_scratch, &none, scratch)) return;
    torch_functions.delete_tensor_object(scratch);
}

void fxa_drop_scratch(void) {
    Handle scratch = atomic_exchange(&kept_scratch, NULL);
    if (scratch) torch_functions.delete_tensor_object(scratch);
}

/* ---- operators run by the host, and errors ---- */

static int32_t call_operator(void *context, int64_t index, const Handle *tensors, int64_t tensor_count,
                             const int64_t *numbers, int64_t number_count, Handle *results, int64_t result_count) {
    Graph *graph = context;
    if (!graph->call_operator) {
        fxa_fail(fxa_pending, FXA_NEEDS_PYTHON, "operator %lld of the graph is run through Python", (long long)index);
        return ENTRY_HOST_ERROR;
    }
    int32_t code = graph->call_operator(graph->host, index, tensors, tensor_count, numbers, number_count, results, result_count);
    if (code) fxa_fail(fxa_pending, FXA_RAISED, "an operator raised");
    return code;
}

/* A failed call at the user's line `where` ("" if not known). */
static int32_t explain(int32_t code, const char *where) {
    return code == ENTRY_HOST_ERROR ? code : failed(FXA_TORCH, fxa_torch_says(), where);
}

/* After a C function failed: where the host can, the same call through it raises the exception that eager would. */
static int32_t retry(void *context, int64_t index, const Handle *tensors, int64_t tensor_count, const int64_t *numbers,
                     int64_t number_count, Handle *results, int64_t result_count, const char *where) {
    Graph *graph = context;
    char text[1024];
    snprintf(text, sizeof(text), "%s", fxa_torch_says());
    if (graph->call_operator) {
        int32_t code = call_operator(context, index, tensors, tensor_count, numbers, number_count, results, result_count);
        for (int64_t i = 0; i < result_count; i++) {
            if (results[i]) torch_functions.delete_tensor_object(results[i]);
        }
        if (code) return code;
    }
    return failed(FXA_TORCH, text, where);
}

static int32_t index_error(const char *where) { return failed(FXA_INDEX, "index out of range in self", where); }

/* ---- by name ---- */

typedef struct {
    const char *name;
    void *address;
} Callback;

void *fxa_callback(const char *name) {
    const Callback callbacks[] = {
        {"fx_check_inputs", (void *)check_inputs}, {"fx_conform", (void *)conform},
        {"fx_scratch_take", (void *)scratch_take}, {"fx_scratch_give", (void *)scratch_give},
        {"fx_call_operator", (void *)call_operator}, {"fx_index_error", (void *)index_error},
        {"fx_explain", (void *)explain}, {"fx_retry", (void *)retry},
        {"fx_gpu_enter", (void *)fxa_gpu_enter}, {"fx_gpu_leave", (void *)fxa_gpu_leave},
        {"fx_gpu_launch", (void *)fxa_gpu_launch},
    };
    for (size_t i = 0; i < sizeof(callbacks) / sizeof(callbacks[0]); i++) {
        if (strcmp(callbacks[i].name, name) == 0) return callbacks[i].address;
    }
    return NULL;
}
