/* Tensor metadata read from the C++ object at offsets that Python measured and this file's readings were checked against.
 *
 * No torch header: the offsets come from fx_guards/calibration.py, which compares `tensor_metadata` with the attributes of a
 * range of tensors before it lets `tensor_ready` stand. Until then, and for tensors that keep their metadata
 * elsewhere (subclasses, sparse), the record's own `holds` decides. */
#define _GNU_SOURCE
#include "native.h"

#include <dlfcn.h>

enum { ANY = -1, INLINE_RANK = 5 };

struct TensorFacts {
    PyTypeObject *type;
    PyObject *holds; /* the record's own answer */
    uint64_t keys;
    int readable; /* the tensors that match keep their metadata in the usual place */
    int dtype, device_type, device_index, requires_grad, is_leaf, has_strides;
    int exact; /* no extent is left open, and the rank is one that tensors keep inline */
    Py_ssize_t rank;
    int64_t extents[]; /* sizes, then strides; ANY where any number holds */
};

int tensor_ready = 0;

static struct {
    Py_ssize_t impl, keys, sizes, dtype, device, autograd, storage;
    Py_ssize_t grad_flag; /* in the autograd metadata; -1: not found */
    uint64_t odd_keys; /* dispatch keys of tensors whose metadata is not in the usual place */
} at;

static int (*impl_requires_grad)(const void *impl);
static int (*tensor_is_leaf)(const void *handle);
static PyObject *plain_types; /* tuple: Tensor, Parameter, ... */

static void *symbol(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == NULL) return NULL;
    void *found = dlsym(handle, name);
    dlclose(handle);
    return found;
}

/* offsets: (impl, keys, sizes, dtype, device, autograd, storage, grad flag, odd keys, plain types); None: no native
 * reading. */
int tensor_init(PyObject *offsets) {
    tensor_ready = 0;
    if (offsets == Py_None) return 0;
    unsigned long long odd;
    PyObject *types;
    if (!PyArg_ParseTuple(offsets, "nnnnnnnnKO!", &at.impl, &at.keys, &at.sizes, &at.dtype, &at.device, &at.autograd,
                          &at.storage, &at.grad_flag, &odd, &PyTuple_Type, &types))
        return -1;
    at.odd_keys = odd;
    impl_requires_grad = (int (*)(const void *))symbol("libc10.so", "_ZNK3c1010TensorImpl13requires_gradEv");
    tensor_is_leaf = (int (*)(const void *))symbol("libtorch_cpu.so", "_ZNK2at10TensorBase7is_leafEv");
    if (impl_requires_grad == NULL || tensor_is_leaf == NULL) {
        PyErr_SetString(PyExc_OSError, "torch's libraries lack a symbol");
        return -1;
    }
    Py_XSETREF(plain_types, Py_NewRef(types));
    tensor_ready = 1;
    return 0;
}

/* --- reading; all on an impl pointer that is not NULL --- */

static inline const char *impl_of(PyObject *tensor) { return *(const char **)((char *)tensor + at.impl); }
static inline uint64_t keys_of(const char *impl) { return *(const uint64_t *)(impl + at.keys); }
static inline Py_ssize_t rank_of(const char *impl) { return *(const Py_ssize_t *)(impl + at.sizes); }
static inline int dtype_of(const char *impl) { return *(const uint16_t *)(impl + at.dtype); }
static inline int device_type_of(const char *impl) { return *(const int8_t *)(impl + at.device); }
static inline int device_index_of(const char *impl) { return *(const int8_t *)(impl + at.device + 1); }

static inline const int64_t *extents_of(const char *impl, int strides) {
    Py_ssize_t rank = rank_of(impl);
    const char *storage = impl + at.sizes + sizeof(int64_t);
    if (rank <= INLINE_RANK) return (const int64_t *)storage + (strides ? INLINE_RANK : 0);
    return *(const int64_t *const *)storage + (strides ? rank : 0);
}

/* A tensor without autograd metadata does not require grad; one whose flag is set does; else there may be a grad_fn. */
static inline int requires_grad_of(const char *impl) {
    const char *autograd = *(const char *const *)(impl + at.autograd);
    if (autograd == NULL) return 0;
    if (at.grad_flag >= 0 && autograd[at.grad_flag] == 1) return 1;
    return (impl_requires_grad(impl) & 0xff) != 0;
}

int tensor_is_plain_type(PyTypeObject *type) {
    if (!tensor_ready) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(plain_types); i++)
        if ((PyObject *)type == PyTuple_GET_ITEM(plain_types, i)) return 1;
    return 0;
}

int tensor_is_plain(PyObject *value) {
    if (!tensor_is_plain_type(Py_TYPE(value))) return 0;
    const char *impl = impl_of(value);
    return impl != NULL && (keys_of(impl) & at.odd_keys) == 0;
}

int tensor_extent(PyObject *value, int stride, Py_ssize_t dim, int64_t *result) {
    if (!tensor_is_plain(value)) return 0;
    const char *impl = impl_of(value);
    Py_ssize_t rank = rank_of(impl);
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank) return 0;
    *result = extents_of(impl, stride)[dim];
    return 1;
}

uint64_t tensor_keys(PyObject *plain) { return keys_of(impl_of(plain)); }
int tensor_dtype(PyObject *plain) { return dtype_of(impl_of(plain)); }
void *tensor_handle(PyObject *tensor) { return (char *)tensor + at.impl; }

const void *tensor_storage(PyObject *value) {
    return tensor_is_plain(value) ? *(const void *const *)(impl_of(value) + at.storage) : NULL;
}

/* --- the check --- */

/* (type, holds, keys, dtype, device type, device index, requires_grad, is_leaf or -1, sizes, strides or None, readable) */
TensorFacts *tensor_facts_parse(PyObject *spec) {
    PyObject *type, *holds, *sizes, *strides;
    unsigned long long keys;
    int dtype, device_type, device_index, requires_grad, is_leaf, readable;
    if (!PyArg_ParseTuple(spec, "O!OKiiipiO!Op", &PyType_Type, &type, &holds, &keys, &dtype, &device_type, &device_index,
                          &requires_grad, &is_leaf, &PyTuple_Type, &sizes, &strides, &readable))
        return NULL;
    Py_ssize_t rank = PyTuple_GET_SIZE(sizes);
    TensorFacts *facts = PyMem_Calloc(1, sizeof *facts + 2 * (size_t)rank * sizeof(int64_t));
    if (facts == NULL) return (TensorFacts *)PyErr_NoMemory();
    facts->type = (PyTypeObject *)Py_NewRef(type);
    facts->holds = Py_NewRef(holds);
    facts->keys = keys;
    facts->dtype = dtype;
    facts->device_type = device_type;
    facts->device_index = device_index;
    facts->requires_grad = requires_grad;
    facts->is_leaf = is_leaf;
    facts->readable = readable;
    facts->rank = rank;
    facts->has_strides = strides != Py_None;
    for (Py_ssize_t i = 0; i < rank; i++) {
        facts->extents[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
        facts->extents[rank + i] = facts->has_strides ? PyLong_AsLongLong(PyTuple_GetItem(strides, i)) : ANY;
    }
    facts->exact = rank <= INLINE_RANK;
    for (Py_ssize_t i = 0; i < 2 * rank; i++) facts->exact = facts->exact && facts->extents[i] != ANY;
    if (PyErr_Occurred()) {
        tensor_facts_clear(facts);
        return NULL;
    }
    return facts;
}

void tensor_facts_clear(TensorFacts *facts) {
    Py_CLEAR(facts->type);
    Py_CLEAR(facts->holds);
    PyMem_Free(facts);
}

int tensor_traverse(TensorFacts *facts, visitproc visit, void *arg) {
    Py_VISIT(facts->type);
    Py_VISIT(facts->holds);
    return 0;
}

static int record_holds(const TensorFacts *facts, PyObject *value) {
    PyObject *answer = PyObject_CallOneArg(facts->holds, value);
    int holds = answer == Py_True;
    Py_XDECREF(answer);
    return holds;
}

/* Whether tensors that fit one of two native checks fit the other. */
int tensor_facts_equal(const TensorFacts *a, const TensorFacts *b) {
    return a->type == b->type && a->keys == b->keys && a->dtype == b->dtype && a->device_type == b->device_type &&
           a->device_index == b->device_index && a->requires_grad == b->requires_grad && a->is_leaf == b->is_leaf &&
           a->rank == b->rank && memcmp(a->extents, b->extents, 2 * (size_t)a->rank * sizeof(int64_t)) == 0;
}

/* The usual case: sizes and strides are all fixed and lie in the tensor's own memory. */
static inline int inline_extents_are(const TensorFacts *facts, const char *impl) {
    const int64_t *actual = (const int64_t *)(impl + at.sizes) + 1;
    Py_ssize_t rank = facts->rank;
    int64_t difference = 0;
    for (Py_ssize_t i = 0; i < rank; i++)
        difference |= (actual[i] ^ facts->extents[i]) | (actual[INLINE_RANK + i] ^ facts->extents[rank + i]);
    return difference == 0;
}

static int extents_are(const TensorFacts *facts, const char *impl) {
    const int64_t *sizes = extents_of(impl, 0), *strides = extents_of(impl, 1);
    Py_ssize_t rank = facts->rank;
    for (Py_ssize_t i = 0; i < rank; i++) {
        if (facts->extents[i] != ANY && facts->extents[i] != sizes[i]) return 0;
        if (facts->extents[rank + i] != ANY && facts->extents[rank + i] != strides[i]) return 0;
    }
    return 1;
}

int tensor_check_is_native(const TensorFacts *facts) { return tensor_ready && facts->readable; }

static inline __attribute__((always_inline)) int metadata_fits(const TensorFacts *facts, PyObject *value) {
    const char *impl = impl_of(value);
    if (impl == NULL || keys_of(impl) != facts->keys || dtype_of(impl) != facts->dtype) return 0;
    if (rank_of(impl) != facts->rank || device_type_of(impl) != facts->device_type) return 0;
    if (device_index_of(impl) != facts->device_index) return 0;
    if (!(facts->exact ? inline_extents_are(facts, impl) : extents_are(facts, impl))) return 0;
    if (requires_grad_of(impl) != facts->requires_grad) return 0;
    return facts->is_leaf < 0 || ((tensor_is_leaf((char *)value + at.impl) & 0xff) != 0) == facts->is_leaf;
}

int tensor_holds(const TensorFacts *facts, PyObject *value) {
    if (Py_TYPE(value) != facts->type) return 0;
    return tensor_ready && facts->readable ? metadata_fits(facts, value) : record_holds(facts, value);
}

static uint64_t sizes_fingerprint(int dtype, const int64_t *sizes, Py_ssize_t rank) {
    uint64_t hash = (uint64_t)dtype + 1;
    for (Py_ssize_t i = 0; i < rank; i++) hash = (hash ^ (uint64_t)sizes[i]) * 0x9E3779B97F4A7C15u + (uint64_t)i + 1;
    return hash == 0 ? 1 : hash;
}

uint64_t tensor_fingerprint(PyObject *value) {
    const char *impl = impl_of(value);
    return sizes_fingerprint(dtype_of(impl), extents_of(impl, 0), rank_of(impl));
}

uint64_t tensor_facts_fingerprint(const TensorFacts *facts) {
    if (!tensor_ready || !facts->readable) return 0;
    for (Py_ssize_t i = 0; i < facts->rank; i++)
        if (facts->extents[i] == ANY) return 0;
    return sizes_fingerprint(facts->dtype, facts->extents, facts->rank);
}

PyTypeObject *tensor_facts_type(const TensorFacts *facts) { return facts->type; }

enum { OBJECT_AHEAD = 24, IMPL_AHEAD = 16, AUTOGRAD_AHEAD = 8, LINE = 64 };

/* A tensor's facts lie behind three pointers, one after the other: Python object, impl, autograd metadata. For a thousand
 * parameters the processor would wait for most of them, so they are asked for ahead, each when the one before is there.
 * The objects are alive, and an object keeps its layout whatever its class becomes. */
static inline __attribute__((always_inline)) void ask_ahead(const TensorFact *checks, int i, int n) {
    if (i + OBJECT_AHEAD < n) __builtin_prefetch((char *)checks[i + OBJECT_AHEAD].object + at.impl);
    if (i + IMPL_AHEAD < n) {
        const char *impl = impl_of(checks[i + IMPL_AHEAD].object);
        for (int line = 0; line < 3; line++) __builtin_prefetch(impl + line * LINE);
    }
    if (i + AUTOGRAD_AHEAD < n) {
        const char *impl = impl_of(checks[i + AUTOGRAD_AHEAD].object);
        if (impl != NULL && at.grad_flag >= 0)
            __builtin_prefetch(*(const char *const *)(impl + at.autograd) + at.grad_flag);
    }
}

/* Many native checks at once: how many hold before the first that does not. */
int tensors_that_fit(const TensorFact *checks, int n) {
    for (int i = 0; i < n; i++) {
        ask_ahead(checks, i, n);
        if (Py_TYPE(checks[i].object) != checks[i].facts->type || !metadata_fits(checks[i].facts, checks[i].object))
            return i;
    }
    return n;
}

/* (keys, dtype, device type, device index, requires_grad, is_leaf, sizes, strides, storage) as read. For calibration. */
PyObject *tensor_metadata(PyObject *module, PyObject *tensor) {
    (void)module;
    const char *impl = tensor_ready ? impl_of(tensor) : NULL;
    if (impl == NULL) {
        PyErr_SetString(PyExc_ValueError, "tensor metadata is not readable");
        return NULL;
    }
    Py_ssize_t rank = rank_of(impl);
    if (rank < 0 || rank > 64) {
        PyErr_SetString(PyExc_ValueError, "implausible rank");
        return NULL;
    }
    PyObject *extents[2] = {PyTuple_New(rank), PyTuple_New(rank)};
    for (int which = 0; which < 2; which++)
        for (Py_ssize_t i = 0; extents[which] != NULL && i < rank; i++)
            PyTuple_SET_ITEM(extents[which], i, PyLong_FromLongLong(extents_of(impl, which)[i]));
    int leaf = (tensor_is_leaf((char *)tensor + at.impl) & 0xff) != 0;
    return Py_BuildValue("KiiiNNNNK", (unsigned long long)keys_of(impl), dtype_of(impl), device_type_of(impl),
                         device_index_of(impl), PyBool_FromLong(requires_grad_of(impl)), PyBool_FromLong(leaf), extents[0],
                         extents[1], (unsigned long long)*(const uintptr_t *)(impl + at.storage));
}
