#include "graph.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "callbacks.h"
#include "tensors.h"
#include "watching.h"

/* Inputs and outputs up to this many need no heap memory in a call. */
enum { INLINE_ROOM = 48 };

/* c10::DeviceType */
enum { CPU = 0, CUDA = 1 };

/* ---- a call ---- */

typedef struct {
    Handle *tensors;
    Handle *owned; /* one for each tensor, as graph.h tells */
    int64_t *numbers;
    void **cells; /* only without a known tensor slot */
} Unpacked;

static int number_of(PyObject *argument, char kind, int64_t *out) {
    if (kind == 'i') {
        *out = PyLong_AsLongLong(argument);
        return *out == -1 && PyErr_Occurred() ? -1 : 0;
    }
    double value = PyFloat_AsDouble(argument);
    memcpy(out, &value, sizeof(value));
    return value == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static int unpack(const Graph *graph, PyObject *const *arguments, Unpacked *into) {
    Handle *tensors = into->tensors;
    int64_t *numbers = into->numbers;
    void **cells = into->cells;
    for (Py_ssize_t i = 0; i < graph->input_count; i++) {
        char kind = graph->input_kinds[i];
        if (kind == 't') {
            Handle handle = tensor_unwrap(arguments[i], cells++);
            if (!handle) return -1;
            *tensors++ = handle;
        } else if (kind != 'u' && number_of(arguments[i], kind, numbers++) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Make the call the owner of the tensors at `positions` (ascending) of the list `given`, which lets go of them. */
static int take_over(const Graph *graph, PyObject *given, PyObject *positions, const Unpacked *unpacked) {
    Py_ssize_t next = 0, tensor = 0, count = PyTuple_GET_SIZE(positions);
    for (Py_ssize_t i = 0; i < graph->input_count && next < count; i++) {
        int is_tensor = graph->input_kinds[i] == 't';
        Py_ssize_t wanted = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, next));
        if (wanted == -1 && PyErr_Occurred()) return -1;
        if (wanted == i) {
            next++;
            if (is_tensor) {
                if (shim.new_tensor_handle(unpacked->tensors[tensor], &unpacked->owned[tensor])) {
                    shim_raise("an input of a compiled graph");
                    return -1;
                }
                unpacked->tensors[tensor] = unpacked->owned[tensor];
            }
            PyList_SetItem(given, i, Py_NewRef(Py_None));
        }
        tensor += is_tensor;
    }
    return 0;
}

static PyObject *take_number(char kind, int64_t number) {
    if (kind == 'i') return PyLong_FromLongLong(number);
    double value;
    memcpy(&value, &number, sizeof(value));
    return PyFloat_FromDouble(value);
}

/* Wrap the results and drop the handles, whatever happens. */
static PyObject *pack(const Graph *graph, Handle *tensors, const int64_t *numbers) {
    PyObject *results = PyTuple_New(graph->output_count);
    for (Py_ssize_t i = 0; i < graph->output_count; i++) {
        char kind = graph->output_kinds[i];
        PyObject *item = NULL;
        if (kind == 't') {
            if (results) item = tensor_wrap(*tensors);
            shim.delete_tensor_object(*tensors++);
        } else if (results) {
            item = kind == 'n' ? Py_NewRef(Py_None) : take_number(kind, *numbers++);
        }
        if (results && !item) Py_CLEAR(results);
        if (results) PyTuple_SET_ITEM(results, i, item);
    }
    return results;
}

static PyObject *fail(const Graph *graph, int32_t code, Handle *tensors) {
    for (Py_ssize_t i = 0; i < graph->tensor_output_count; i++) {
        if (tensors[i]) shim.delete_tensor_object(tensors[i]);
    }
    if (code != ENTRY_PYTHON_ERROR || !PyErr_Occurred()) shim_raise("a library call of a compiled graph");
    return NULL;
}

/* The entry runs as under no_grad and without autocast: what it calls must not be recorded by autograd, and the graph has the
   casts that autocast made when it was captured. */
static int32_t enter(Graph *graph, const Unpacked *unpacked, Handle *results, int64_t *numbers) {
    bool grad_mode = shim.grad_mode_is_enabled();
    bool autocast = shim.autocast_is_enabled(CPU), autocast_cuda = shim.autocast_is_enabled(CUDA);
    if (grad_mode) shim.grad_mode_set_enabled(false);
    if (autocast) shim.autocast_set_enabled(CPU, false);
    if (autocast_cuda) shim.autocast_set_enabled(CUDA, false);
    WatchedCall watched = watching_enter(graph->prepare == Py_None);
    int32_t code;
    if (graph->release_gil) {
        PyThreadState *state = PyEval_SaveThread();
        code = graph->entry(graph, unpacked->tensors, unpacked->numbers, results, numbers);
        PyEval_RestoreThread(state);
    } else {
        code = graph->entry(graph, unpacked->tensors, unpacked->numbers, results, numbers);
    }
    watching_leave(watched);
    if (autocast) shim.autocast_set_enabled(CPU, true);
    if (autocast_cuda) shim.autocast_set_enabled(CUDA, true);
    if (grad_mode) shim.grad_mode_set_enabled(true);
    return code;
}

static PyObject *run(Graph *graph, const Unpacked *unpacked, Handle *results) {
    int64_t *numbers = (int64_t *)results + graph->output_count;
    Py_INCREF(graph); /* an operator run through Python may drop the last reference to us */
    int32_t code = enter(graph, unpacked, results, numbers);
    PyObject *returned = code == ENTRY_OK ? pack(graph, results, numbers) : fail(graph, code, results);
    Py_DECREF(graph);
    return returned;
}

/* `room` is zeroed memory for 4 words an input and 2 an output; the call owns the tensors at `positions` of the list `given`, if
   there is one, whose items `arguments` are. */
static PyObject *call_in(Graph *graph, PyObject *const *arguments, int64_t *room, PyObject *given, PyObject *positions) {
    Py_ssize_t inputs = graph->input_count;
    Unpacked unpacked = {.tensors = (Handle *)room,
                         .owned = (Handle *)(room + inputs),
                         .numbers = room + 2 * inputs,
                         .cells = (void **)(room + 3 * inputs)};
    Handle *results = (Handle *)(room + 4 * inputs);
    if (unpack(graph, arguments, &unpacked) < 0) return NULL;
    if (!given) return run(graph, &unpacked, results);
    PyObject *returned = take_over(graph, given, positions, &unpacked) < 0 ? NULL : run(graph, &unpacked, results);
    for (Py_ssize_t i = 0; i < inputs; i++) {
        if (unpacked.owned[i]) shim.delete_tensor_object(unpacked.owned[i]);
    }
    return returned;
}

static PyObject *call_with(Graph *graph, PyObject *const *arguments, PyObject *given, PyObject *positions) {
    Py_ssize_t words = 4 * graph->input_count + 2 * graph->output_count;
    if (graph->input_count <= INLINE_ROOM && graph->output_count <= INLINE_ROOM) {
        int64_t room[6 * INLINE_ROOM];
        memset(room, 0, words * sizeof(int64_t));
        return call_in(graph, arguments, room, given, positions);
    }
    int64_t *room = PyMem_Calloc(words, sizeof(int64_t));
    if (!room) return PyErr_NoMemory();
    PyObject *returned = call_in(graph, arguments, room, given, positions);
    PyMem_Free(room);
    return returned;
}

static int wrong_count(const Graph *graph, Py_ssize_t given) {
    if (given == graph->input_count) return 0;
    PyErr_Format(PyExc_TypeError, "a compiled graph of %zd inputs was called with %zd", graph->input_count, given);
    return 1;
}

static PyObject *graph_vectorcall(PyObject *self, PyObject *const *arguments, size_t nargsf, PyObject *names) {
    Graph *graph = (Graph *)self;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    if (names && PyTuple_GET_SIZE(names)) {
        PyErr_SetString(PyExc_TypeError, "a compiled graph takes no keyword arguments");
        return NULL;
    }
    if (wrong_count(graph, given)) return NULL;
    return call_with(graph, arguments, NULL, NULL);
}

static PyObject *graph_call_owning(PyObject *self, PyObject *args) {
    PyObject *given, *positions;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &given, &PyTuple_Type, &positions)) return NULL;
    if (wrong_count((Graph *)self, PyList_GET_SIZE(given))) return NULL;
    return call_with((Graph *)self, ((PyListObject *)given)->ob_item, given, positions);
}

static PyMethodDef graph_methods[] = {
    {"call_owning", graph_call_owning, METH_VARARGS,
     "call_owning(inputs, positions): as a call with the list of inputs, but the tensors at these positions (a tuple, "
     "ascending) are taken out of the list and freed when the graph has read them for the last time."},
    {NULL},
};

/* ---- making one ---- */

static int open_library(Graph *graph, const char *path) {
    graph->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!graph->library) {
        PyErr_Format(PyExc_OSError, "cannot load a compiled graph: %s", dlerror());
        return -1;
    }
    const int32_t *version = dlsym(graph->library, "fx_abi");
    graph->entry = (Entry)dlsym(graph->library, "fx_entry");
    int32_t (*bind)(void *(*)(const char *), const char **) =
        (int32_t (*)(void *(*)(const char *), const char **))dlsym(graph->library, "fx_bind");
    if (!version || *version != ENTRY_ABI || !graph->entry || !bind) {
        PyErr_Format(PyExc_OSError, "%s is not a compiled graph of this version", path);
        return -1;
    }
    const char *missing = "?";
    if (bind(shim_lookup, &missing)) {
        PyErr_Format(PyExc_OSError, "a compiled graph needs %s, which this torch does not export", missing);
        return -1;
    }
    return 0;
}

static char *copy_kinds(const char *kinds, const char *allowed) {
    if (strspn(kinds, allowed) != strlen(kinds)) {
        PyErr_Format(PyExc_ValueError, "kinds are a string over %s, got %s", allowed, kinds);
        return NULL;
    }
    char *copy = PyMem_Malloc(strlen(kinds) + 1);
    if (!copy) {
        PyErr_NoMemory();
        return NULL;
    }
    return strcpy(copy, kinds);
}

static int fill(Graph *graph, const char *inputs, const char *outputs) {
    graph->input_kinds = copy_kinds(inputs, "tifu");
    if (!graph->input_kinds) return -1;
    graph->output_kinds = copy_kinds(outputs, "tifn");
    if (!graph->output_kinds) return -1;
    graph->input_count = strlen(inputs);
    graph->output_count = strlen(outputs);
    for (const char *kind = outputs; *kind; kind++) graph->tensor_output_count += *kind == 't';
    return 0;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"path",        "input_kinds",   "output_kinds", "operators",
                            "release_gil", "scratch_limit", "metadata",     "prepare",   NULL};
    PyObject *path, *operators, *metadata = Py_None, *prepare = Py_None;
    const char *inputs, *outputs;
    int release_gil = 0;
    long long scratch_limit = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UssO!|pLOO", names, &path, &inputs, &outputs, &PyTuple_Type,
                                     &operators, &release_gil, &scratch_limit, &metadata, &prepare)) {
        return NULL;
    }
    if (!tensor_type) {
        PyErr_SetString(PyExc_RuntimeError, "calibrate() has not been called");
        return NULL;
    }
    Graph *graph = (Graph *)type->tp_alloc(type, 0);
    if (!graph) return NULL;
    graph->vectorcall = graph_vectorcall;
    graph->path = Py_NewRef(path);
    graph->operators = Py_NewRef(operators);
    graph->metadata = Py_NewRef(metadata);
    graph->prepare = Py_NewRef(prepare);
    graph->release_gil = release_gil != 0;
    graph->scratch_limit = scratch_limit;
    PyObject *name = PyUnicode_EncodeFSDefault(path); /* bytes: a file's name need not be UTF-8 */
    int made = name && fill(graph, inputs, outputs) == 0 && open_library(graph, PyBytes_AS_STRING(name)) == 0;
    Py_XDECREF(name);
    if (!made) {
        Py_DECREF(graph);
        return NULL;
    }
    return (PyObject *)graph;
}

static int graph_traverse(PyObject *self, visitproc visit, void *arg) {
    Graph *graph = (Graph *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(graph->operators);
    Py_VISIT(graph->metadata);
    Py_VISIT(graph->prepare);
    return 0;
}

static int graph_clear(PyObject *self) {
    Graph *graph = (Graph *)self;
    Py_CLEAR(graph->metadata);
    return 0;
}

static void graph_dealloc(PyObject *self) {
    Graph *graph = (Graph *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (graph->weak_references) PyObject_ClearWeakRefs(self);
    Handle scratch = atomic_exchange(&kept_scratch, NULL);
    if (scratch) shim.delete_tensor_object(scratch);
    if (graph->library) dlclose(graph->library);
    PyMem_Free(graph->input_kinds);
    PyMem_Free(graph->output_kinds);
    Py_XDECREF(graph->path);
    Py_XDECREF(graph->metadata);
    Py_XDECREF(graph->operators);
    Py_XDECREF(graph->prepare);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *graph_repr(PyObject *self) {
    Graph *graph = (Graph *)self;
    return PyUnicode_FromFormat("<CompiledGraph of %zd inputs and %zd outputs in %R>", graph->input_count,
                                graph->output_count, graph->path);
}

static PyMemberDef graph_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Graph, vectorcall), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Graph, weak_references), READONLY, NULL},
    {"path", T_OBJECT_EX, offsetof(Graph, path), READONLY, "The shared library."},
    {"metadata", T_OBJECT_EX, offsetof(Graph, metadata), READONLY, "The record that it was loaded from."},
    {"input_count", T_PYSSIZET, offsetof(Graph, input_count), READONLY, "How many inputs a call takes."},
    {"output_count", T_PYSSIZET, offsetof(Graph, output_count), READONLY, "How many results a call returns."},
    {NULL},
};

static PyObject *artifact_key(PyObject *self, void *Py_UNUSED(closure)) {
    return PyObject_GetAttrString(((Graph *)self)->metadata, "key");
}

static PyGetSetDef graph_getset[] = {
    {"artifact_key", artifact_key, NULL, "The key under which the artifact store keeps this graph.", NULL},
    {NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, "A compiled graph: called with its inputs positionally, it returns a tuple of its outputs."},
    {Py_tp_new, graph_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, graph_traverse},
    {Py_tp_clear, graph_clear},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_repr, graph_repr},
    {Py_tp_members, graph_members},
    {Py_tp_methods, graph_methods},
    {Py_tp_getset, graph_getset},
    {0, NULL},
};

PyType_Spec graph_spec = {
    .name = "inductor_codegen._runtime.CompiledGraph",
    .basicsize = sizeof(Graph),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_slots,
};
