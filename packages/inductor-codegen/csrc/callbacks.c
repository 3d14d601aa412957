#include "callbacks.h"

#include <stdio.h>
#include <string.h>

#include "gpu.h"
#include "graph.h"
#include "products.h"
#include "split_products.h"
#include "tensors.h"
#include "watching.h"

static const int64_t ONE = 1;

/* ---- input checks ---- */

static bool same_layout(int64_t rank, const int64_t *sizes, const int64_t *strides, const int64_t *wanted_sizes,
                        const int64_t *wanted_strides) {
    bool strides_differ = false;
    for (int64_t d = 0; d < rank; d++) {
        if (sizes[d] != wanted_sizes[d]) return false;
        if (sizes[d] == 0) return memcmp(sizes, wanted_sizes, rank * sizeof(int64_t)) == 0;
        strides_differ |= sizes[d] != 1 && strides[d] != wanted_strides[d];
    }
    return !strides_differ;
}

static int render(char *text, size_t room, const char *label, int64_t rank, const int64_t *values) {
    int used = snprintf(text, room, "%s(", label);
    for (int64_t d = 0; d < rank && used > 0 && (size_t)used < room; d++) {
        used += snprintf(text + used, room - used, d ? ", %lld" : "%lld", (long long)values[d]);
    }
    if (used > 0 && (size_t)used < room) used += snprintf(text + used, room - used, ")");
    return (size_t)used < room ? used : (int)room - 1;
}

static int32_t reject(int64_t position, Handle got, const int64_t *wanted) {
    int64_t rank = 0, *sizes = NULL, *strides = NULL;
    int32_t dtype = -1, device = -1, device_index = -1;
    char have[256] = "", want[256] = "";
    bool readable = !shim.get_dim(got, &rank) && !shim.get_sizes(got, &sizes) && !shim.get_strides(got, &strides) &&
                    !shim.get_dtype(got, &dtype) && !shim.get_device_type(got, &device) &&
                    !shim.get_device_index(got, &device_index);
    if (readable) {
        int used = render(have, sizeof(have), "size ", rank, sizes);
        render(have + used, sizeof(have) - used, " stride ", rank, strides);
    }
    const int64_t *layout = wanted + 4;
    int used = render(want, sizeof(want), "size ", wanted[3], layout);
    render(want + used, sizeof(want) - used, " stride ", wanted[3], layout + wanted[3]);
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_Format(PyExc_ValueError,
                 "[IND301] tensor input %lld is not what the graph was compiled for: got %s, scalar type %d, device %d:%d; "
                 "compiled for %s, scalar type %lld, device %lld:%lld",
                 (long long)position, have, (int)dtype, (int)device, (int)device_index, want, (long long)wanted[0],
                 (long long)wanted[1], (long long)wanted[2]);
    PyGILState_Release(state);
    return ENTRY_PYTHON_ERROR;
}

/* `expected` has for each of the `count` tensors: scalar type, device type and index, rank, sizes, strides. A stride does not count where the size is
   1 or the tensor is empty. ENTRY_OK, or ENTRY_PYTHON_ERROR with ValueError. */
static int32_t check_inputs(const Handle *inputs, const int64_t *expected, int64_t count) {
    const int32_t cpu = shim.device_type_cpu();
    for (int64_t i = 0; i < count; i++) {
        const int64_t wanted_rank = expected[3], *layout = expected + 4;
        int64_t rank = -1, *sizes, *strides;
        int32_t dtype, device, device_index;
        bool good = !shim.get_dim(inputs[i], &rank) && rank == wanted_rank && !shim.get_dtype(inputs[i], &dtype) &&
                    dtype == expected[0] && !shim.get_device_type(inputs[i], &device) && device == expected[1] &&
                    !shim.get_device_index(inputs[i], &device_index) && (device == cpu || device_index == expected[2]) &&
                    !shim.get_sizes(inputs[i], &sizes) && !shim.get_strides(inputs[i], &strides) &&
                    same_layout(rank, sizes, strides, layout, layout + wanted_rank);
        if (!good) return reject(i, inputs[i], expected);
        expected += 4 + 2 * wanted_rank;
    }
    return ENTRY_OK;
}

/* ---- results of operators ---- */

static int32_t wrong_result(const char *operator_name, int64_t position) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_Format(PyExc_RuntimeError, "[IND302] result %lld of %s has not the size or type that the compiler expected",
                 (long long)position, operator_name);
    PyGILState_Release(state);
    return ENTRY_PYTHON_ERROR;
}

/* Make `*result`, an owned handle, exactly of these strides, by a copy if it is not. `wanted` is: scalar type, rank, sizes,
   strides. */
static int32_t conform(Handle *result, const int64_t *wanted, const char *operator_name, int64_t position) {
    int64_t rank = -1, wanted_rank = wanted[1], *sizes, *strides;
    int32_t dtype, device;
    bool defined = false;
    if (!*result || shim.is_defined(*result, &defined) || !defined || shim.get_dim(*result, &rank) ||
        rank != wanted_rank || shim.get_dtype(*result, &dtype) || dtype != wanted[0] ||
        shim.get_sizes(*result, &sizes) || memcmp(sizes, wanted + 2, rank * sizeof(int64_t)) != 0) {
        return wrong_result(operator_name, position);
    }
    if (shim.get_strides(*result, &strides)) return ENTRY_TORCH_ERROR;
    if (memcmp(strides, wanted + 2 + rank, rank * sizeof(int64_t)) == 0) return ENTRY_OK;
    if (shim.get_device_type(*result, &device)) return ENTRY_TORCH_ERROR;
    Handle copy = NULL;
    if (shim.empty_strided(rank, wanted + 2, wanted + 2 + rank, dtype, device, -1, &copy)) return ENTRY_TORCH_ERROR;
    if (shim.copy_(copy, *result, 0)) {
        shim.delete_tensor_object(copy);
        return ENTRY_TORCH_ERROR;
    }
    shim.delete_tensor_object(*result);
    *result = copy;
    return ENTRY_OK;
}

/* ---- scratch memory ---- */

_Atomic(Handle) kept_scratch;

/* A byte tensor of at least `bytes`, owned by the caller until it gives it back; NULL when torch cannot allocate. */
static Handle scratch_take(void *Py_UNUSED(context), int64_t bytes) {
    Handle kept = atomic_exchange(&kept_scratch, NULL);
    if (kept) {
        int64_t *sizes;
        if (shim.get_sizes(kept, &sizes) == 0 && sizes[0] >= bytes) return kept;
        shim.delete_tensor_object(kept);
    }
    Handle made = NULL;
    if (shim.empty_strided(1, &bytes, &ONE, shim.dtype_uint8(), shim.device_type_cpu(), -1, &made)) return NULL;
    return made;
}

static void scratch_give(void *context, Handle scratch) {
    Graph *graph = context;
    int64_t *sizes;
    if (shim.get_sizes(scratch, &sizes) == 0 && sizes[0] <= graph->scratch_limit) {
        Handle none = NULL;
        if (atomic_compare_exchange_strong(&kept_scratch, &none, scratch)) return;
    }
    shim.delete_tensor_object(scratch);
}

/* ---- operators run through Python ---- */

static PyObject *arguments_of(const Handle *tensors, int64_t tensor_count, const int64_t *numbers, int64_t number_count) {
    PyObject *values = PyTuple_New(tensor_count + number_count);
    if (!values) return NULL;
    for (int64_t i = 0; i < tensor_count + number_count; i++) {
        PyObject *item;
        if (i >= tensor_count) {
            item = PyLong_FromLongLong(numbers[i - tensor_count]);
        } else if (tensors[i]) {
            item = tensor_wrap(tensors[i]);
        } else {
            item = Py_NewRef(Py_None);
        }
        if (!item) {
            Py_DECREF(values);
            return NULL;
        }
        PyTuple_SET_ITEM(values, i, item);
    }
    return values;
}

static int take_results(PyObject *returned, Handle *results, int64_t count) {
    if (!PyTuple_Check(returned) || PyTuple_GET_SIZE(returned) != count) {
        PyErr_Format(PyExc_RuntimeError, "[IND303] an operator returned other than %lld results", (long long)count);
        return -1;
    }
    for (int64_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(returned, i);
        void *cell;
        if (item == Py_None) continue;
        Handle borrowed = tensor_unwrap(item, &cell);
        if (!borrowed) return -1;
        if (shim.new_tensor_handle(borrowed, &results[i])) {
            shim_raise("taking a result");
            return -1;
        }
    }
    return 0;
}

/* Call operator `index` of the graph's table with these tensors (NULL is None) and numbers. Results are owned handles, NULL for
   None; what was filled in stays filled in on error. */
static int32_t call_operator(void *context, int64_t index, const Handle *tensors, int64_t tensor_count,
                             const int64_t *numbers, int64_t number_count, Handle *results, int64_t result_count) {
    Graph *graph = context;
    PyGILState_STATE state = PyGILState_Ensure();
    int failed = 1;
    PyObject *arguments = arguments_of(tensors, tensor_count, numbers, number_count);
    if (arguments) {
        PyObject *returned = PyObject_CallObject(PyTuple_GET_ITEM(graph->operators, index), arguments);
        Py_DECREF(arguments);
        if (returned) {
            failed = take_results(returned, results, result_count);
            Py_DECREF(returned);
        }
    }
    PyGILState_Release(state);
    return failed ? ENTRY_PYTHON_ERROR : ENTRY_OK;
}

static void add_note(const char *where) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *done = PyObject_CallMethod(value, "add_note", "N", PyUnicode_FromFormat("while running %s", where));
    if (!done) PyErr_Clear();
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

/* Turn a failed call at the user's line `where` ("" if not known) into a Python exception. */
static int32_t explain(int32_t code, const char *where) {
    PyGILState_STATE state = PyGILState_Ensure();
    if (code != ENTRY_PYTHON_ERROR) shim_raise("a library operator");
    if (*where) add_note(where);
    PyGILState_Release(state);
    return ENTRY_PYTHON_ERROR;
}

/* After a C function failed: the same call through Python raises the exception that eager would, of the right type. */
static int32_t retry(void *context, int64_t index, const Handle *tensors, int64_t tensor_count, const int64_t *numbers,
                     int64_t number_count, Handle *results, int64_t result_count, const char *where) {
    char text[2048] = "a library operator failed in torch";
    const char *given = shim.exception_text ? shim.exception_text() : NULL;
    if (given && *given) snprintf(text, sizeof(text), "%s", given);
    int32_t code = call_operator(context, index, tensors, tensor_count, numbers, number_count, results, result_count);
    for (int64_t i = 0; i < result_count; i++) {
        if (results[i]) shim.delete_tensor_object(results[i]);
    }
    PyGILState_STATE state = PyGILState_Ensure();
    if (code == ENTRY_OK) PyErr_SetString(PyExc_RuntimeError, text);
    if (*where) add_note(where);
    PyGILState_Release(state);
    return ENTRY_PYTHON_ERROR;
}

/* A kernel met an index from data that was out of range, at the user's line `where` ("" if not known). */
static int32_t index_error(const char *where) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_Format(PyExc_IndexError, *where ? "index out of range in self, at %s" : "index out of range in self", where);
    PyGILState_Release(state);
    return ENTRY_PYTHON_ERROR;
}

/* ---- by name ---- */

typedef struct {
    const char *name;
    void *address;
} Callback;

void *callback_lookup(const char *name) {
    const Callback callbacks[] = {
        {"fx_check_inputs", (void *)check_inputs}, {"fx_conform", (void *)conform},
        {"fx_scratch_take", (void *)scratch_take}, {"fx_scratch_give", (void *)scratch_give},
        {"fx_call_operator", (void *)call_operator}, {"fx_index_error", (void *)index_error},
        {"fx_explain", (void *)explain}, {"fx_retry", (void *)retry},
        {"fx_gpu_enter", (void *)gpu_enter}, {"fx_gpu_leave", (void *)gpu_leave},
        {"fx_gpu_launch", (void *)gpu_launch}, {"fx_watched_calls", (void *)&watched_calls},
        {"fx_watch", (void *)watching_step}, {"fx_product", (void *)product},
        {"fx_split_product", (void *)split_product},
    };
    for (size_t i = 0; i < sizeof(callbacks) / sizeof(callbacks[0]); i++) {
        if (strcmp(callbacks[i].name, name) == 0) return callbacks[i].address;
    }
    return NULL;
}
