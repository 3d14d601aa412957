/* The extension module fxstack_artifact._native: the core's graphs as Python callables. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "../core/graph.h"
#include "../core/target.h"
#include "hashes.h"

static PyTypeObject *tensor_type, *parameter_type;
static PyObject *artifact_error, *contract_error;
static PyObject *(*wrap)(Handle);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Graph graph;
    PyObject *operators; /* tuple of callables */
    bool release_gil;
} GraphObject;

/* ---- errors ---- */

static PyObject *raise_coded(PyObject *type, const FxaError *error) {
    PyObject *made = PyObject_CallFunction(type, "Nss", PyUnicode_FromFormat("FXA%d", (int)error->code), error->text,
                                           error->action);
    if (made) {
        PyErr_SetObject(type, made);
        Py_DECREF(made);
    }
    return NULL;
}

static PyObject *raise_error(const FxaError *error) {
    switch (error->code) {
        case FXA_RAISED:
            if (PyErr_Occurred()) return NULL;
            break;
        case FXA_INDEX: PyErr_SetString(PyExc_IndexError, error->text); return NULL;
        case FXA_NO_MEMORY: return PyErr_NoMemory();
        default:
            if (error->code >= 300) return raise_coded(contract_error, error);
            if (error->code >= 100) return raise_coded(artifact_error, error);
    }
    PyErr_SetString(PyExc_RuntimeError, error->text);
    return NULL;
}

/* ---- tensors ---- */

/* The implementation of a tensor object; a cell that holds it is a handle. */
static void *implementation_of(PyObject *object) {
    PyObject *address = PyObject_GetAttrString(object, "_cdata");
    if (!address) return NULL;
    void *pointer = PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    return pointer;
}

/* ---- operators that are run through Python ---- */

static PyObject *arguments_of(const Handle *tensors, int64_t tensor_count, const int64_t *numbers, int64_t number_count) {
    PyObject *values = PyTuple_New(tensor_count + number_count);
    for (int64_t i = 0; values && i < tensor_count + number_count; i++) {
        PyObject *item = i >= tensor_count ? PyLong_FromLongLong(numbers[i - tensor_count])
                         : tensors[i]      ? wrap(tensors[i])
                                           : Py_NewRef(Py_None);
        if (!item) {
            Py_CLEAR(values);
        } else {
            PyTuple_SET_ITEM(values, i, item);
        }
    }
    return values;
}

static int take_results(PyObject *returned, Handle *results, int64_t count) {
    if (!PyTuple_Check(returned) || PyTuple_GET_SIZE(returned) != count) {
        PyErr_Format(PyExc_RuntimeError, "an operator returned other than %lld results", (long long)count);
        return -1;
    }
    for (int64_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(returned, i);
        if (item == Py_None) continue;
        void *cell = implementation_of(item);
        if (!cell) return -1;
        if (torch_functions.new_tensor_handle(&cell, &results[i])) {
            PyErr_SetString(PyExc_RuntimeError, fxa_torch_says());
            return -1;
        }
    }
    return 0;
}

static int32_t call_operator(void *host, int64_t index, const Handle *tensors, int64_t tensor_count, const int64_t *numbers,
                             int64_t number_count, Handle *results, int64_t result_count) {
    GraphObject *self = host;
    PyGILState_STATE state = PyGILState_Ensure();
    int bad = -1;
    PyObject *arguments = NULL, *returned = NULL;
    if (index < 0 || index >= PyTuple_GET_SIZE(self->operators)) {
        PyErr_SetString(PyExc_RuntimeError, "a native object calls an operator that its artifact does not list");
    } else {
        arguments = arguments_of(tensors, tensor_count, numbers, number_count);
    }
    if (arguments) returned = PyObject_CallObject(PyTuple_GET_ITEM(self->operators, index), arguments);
    if (returned) bad = take_results(returned, results, result_count);
    Py_XDECREF(arguments);
    Py_XDECREF(returned);
    PyGILState_Release(state);
    return bad ? ENTRY_HOST_ERROR : ENTRY_OK;
}

/* ---- a call ---- */

static int number_of(PyObject *argument, int64_t kind, int64_t *out) {
    if (kind == LEAF_INTEGER) {
        *out = PyLong_AsLongLong(argument);
        return *out == -1 && PyErr_Occurred() ? -1 : 0;
    }
    double value = PyFloat_AsDouble(argument);
    memcpy(out, &value, sizeof(value));
    return value == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static int wrong_kind(const Contract *contract, int64_t index, PyObject *argument) {
    static const char *const WANTED[] = {"a torch.Tensor", "an int", "a float"};
    FxaError error;
    fxa_fail(&error, FXA_KIND, "%s is of type %.100s, the artifact takes %s", contract->names[index],
             Py_TYPE(argument)->tp_name, WANTED[contract->leaves[index].kind]);
    raise_coded(contract_error, &error);
    return -1;
}

static int too_large(const Contract *contract, int64_t index) {
    FxaError error;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    PyErr_Clear();
    fxa_fail(&error, FXA_KIND, "%s has more than 64 bits", contract->names[index]);
    raise_coded(contract_error, &error);
    return -1;
}

/* Fill `leaves`; a handle of tensor i is the address of `cells[i]`. */
static int unpack(const Contract *contract, PyObject *const *arguments, Value *leaves, void **cells) {
    for (int64_t i = 0; i < contract->leaf_count; i++) {
        PyObject *argument = arguments[i];
        int64_t kind = contract->leaves[i].kind;
        if (kind == LEAF_ANYTHING) continue;
        if (kind == LEAF_TENSOR) {
            if (Py_TYPE(argument) != tensor_type && Py_TYPE(argument) != parameter_type) return wrong_kind(contract, i, argument);
            if (!(cells[i] = implementation_of(argument))) return -1;
            leaves[i].tensor = &cells[i];
        } else {
            bool fits = kind == LEAF_INTEGER ? PyLong_CheckExact(argument) : PyFloat_CheckExact(argument);
            if (!fits) return wrong_kind(contract, i, argument);
            if (number_of(argument, kind, &leaves[i].number) < 0) return too_large(contract, i);
        }
    }
    return 0;
}

/* A tuple of the results; drops the handles, whatever happens. */
static PyObject *pack(const Contract *contract, Handle *results, const int64_t *numbers) {
    PyObject *made = PyTuple_New(contract->result_count);
    for (int64_t i = 0; i < contract->result_count; i++) {
        PyObject *item = NULL;
        switch (contract->results[i]) {
            case RESULT_TENSOR:
                if (made) item = wrap(results[i]);
                torch_functions.delete_tensor_object(results[i]);
                break;
            case RESULT_INTEGER: item = PyLong_FromLongLong(*numbers++); break;
            case RESULT_FLOAT: {
                double value;
                memcpy(&value, numbers++, sizeof(value));
                item = PyFloat_FromDouble(value);
                break;
            }
            default: item = Py_NewRef(Py_None);
        }
        if (made && item) {
            PyTuple_SET_ITEM(made, i, item);
        } else {
            Py_XDECREF(item);
            Py_CLEAR(made);
        }
    }
    return made;
}

static PyObject *call_in(GraphObject *self, PyObject *const *arguments, int64_t *room) {
    const Contract *contract = &self->graph.contract;
    int64_t leaf_count = contract->leaf_count, result_count = contract->result_count;
    Value *leaves = (Value *)room;
    void **cells = (void **)(room + 2 * leaf_count);
    Handle *results = (Handle *)(room + 3 * leaf_count);
    int64_t *numbers = room + 3 * leaf_count + result_count;
    FxaError error;
    if (unpack(contract, arguments, leaves, cells) < 0) return NULL;
    Py_INCREF(self); /* an operator run through Python may drop the last reference to us */
    PyThreadState *state = self->release_gil ? PyEval_SaveThread() : NULL;
    FxaCode code = fxa_graph_run(&self->graph, leaves, results, numbers, &error);
    if (state) PyEval_RestoreThread(state);
    PyObject *returned = code ? raise_error(&error) : pack(contract, results, numbers);
    Py_DECREF(self);
    return returned;
}

enum { INLINE_WORDS = 256 };

static PyObject *graph_vectorcall(PyObject *object, PyObject *const *arguments, size_t nargsf, PyObject *names) {
    GraphObject *self = (GraphObject *)object;
    const Contract *contract = &self->graph.contract;
    if ((names && PyTuple_GET_SIZE(names)) || PyVectorcall_NARGS(nargsf) != contract->leaf_count) {
        PyErr_Format(PyExc_TypeError, "a graph takes %lld positional arguments", (long long)contract->leaf_count);
        return NULL;
    }
    int64_t words = 3 * contract->leaf_count + 2 * contract->result_count;
    if (words <= INLINE_WORDS) {
        int64_t room[INLINE_WORDS];
        memset(room, 0, words * sizeof(int64_t));
        return call_in(self, arguments, room);
    }
    int64_t *room = PyMem_Calloc(words, sizeof(int64_t));
    if (!room) return PyErr_NoMemory();
    PyObject *returned = call_in(self, arguments, room);
    PyMem_Free(room);
    return returned;
}

/* ---- making one ---- */

static FxaCode open_graph(GraphObject *self, const int64_t *words, int64_t count, const char *names,
                          const Py_buffer *content, PyObject *constants, FxaError *error) {
    Contract contract;
    FxaCode code = fxa_contract_read(&contract, words, count, names, error);
    int64_t given = PyTuple_GET_SIZE(constants);
    void **cells = PyMem_Calloc(2 * given + 1, sizeof(void *)); /* implementations, then handles */
    if (!code && !cells) code = fxa_fail(error, FXA_NO_MEMORY, "out of memory");
    if (!code && given != contract.constant_count) {
        code = fxa_fail(error, FXA_BAD_PROGRAM, "a graph of %lld constants was given %lld", (long long)contract.constant_count,
                        (long long)given);
    }
    for (int64_t i = 0; !code && i < given; i++) {
        cells[i] = implementation_of(PyTuple_GET_ITEM(constants, i));
        cells[given + i] = &cells[i];
        if (!cells[i]) code = fxa_fail(error, FXA_RAISED, "a constant is no tensor");
    }
    if (!code) code = fxa_graph_open(&self->graph, &contract, content->buf, content->len, cells + given, error);
    fxa_contract_free(&contract);
    PyMem_Free(cells);
    return code;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"contract", "names", "content", "constants", "operators", "release_gil", "scratch_limit", NULL};
    Py_buffer contract, content;
    const char *names;
    PyObject *constants, *operators;
    int release_gil = 0;
    long long scratch_limit = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*sy*O!O!|pL", keywords, &contract, &names, &content, &PyTuple_Type, &constants,
                                     &PyTuple_Type, &operators, &release_gil, &scratch_limit)) {
        return NULL;
    }
    GraphObject *self = tensor_type ? (GraphObject *)type->tp_alloc(type, 0) : NULL;
    if (self) {
        FxaError error;
        self->vectorcall = graph_vectorcall;
        self->operators = Py_NewRef(operators);
        self->release_gil = release_gil != 0;
        FxaCode code = open_graph(self, contract.buf, contract.len / (Py_ssize_t)sizeof(int64_t), names, &content, constants, &error);
        self->graph.scratch_limit = scratch_limit;
        self->graph.host = self;
        self->graph.call_operator = call_operator;
        if (code) {
            raise_error(&error);
            Py_CLEAR(self);
        }
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_RuntimeError, "bind() has not been called");
    }
    PyBuffer_Release(&contract);
    PyBuffer_Release(&content);
    return (PyObject *)self;
}

static int graph_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((GraphObject *)object)->operators);
    return 0;
}

static void graph_dealloc(PyObject *object) {
    GraphObject *self = (GraphObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    fxa_graph_close(&self->graph);
    Py_XDECREF(self->operators);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef graph_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(GraphObject, vectorcall), READONLY, NULL},
    {NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, "A compiled graph: called with the leaves of its inputs, it checks them and returns a tuple of its results."},
    {Py_tp_new, graph_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, graph_traverse},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_members, graph_members},
    {0, NULL},
};

static PyType_Spec graph_spec = {
    .name = "fxstack_artifact._native.Graph",
    .basicsize = sizeof(GraphObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_slots,
};

/* ---- the module ---- */

static PyObject *bind(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *tensor, *parameter, *artifact, *contract;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyType_Type, &tensor, &PyType_Type, &parameter, &artifact, &contract)) return NULL;
    Py_XSETREF(artifact_error, Py_NewRef(artifact));
    Py_XSETREF(contract_error, Py_NewRef(contract));
    FxaError error;
    if (fxa_find_torch(&error)) return raise_error(&error);
    void *library = dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD);
    wrap = library ? (PyObject * (*)(Handle)) dlsym(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE") : NULL;
    if (!wrap) {
        fxa_fail(&error, FXA_NO_TORCH, "torch is not loaded, or is of a version whose tensors cannot be wrapped");
        return raise_error(&error);
    }
    Py_INCREF(tensor);
    Py_XSETREF(tensor_type, (PyTypeObject *)tensor);
    Py_INCREF(parameter);
    Py_XSETREF(parameter_type, (PyTypeObject *)parameter);
    Py_RETURN_NONE;
}

static PyObject *cpu_levels(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    PyObject *made = PyList_New(0);
    for (int i = 0; made && fxa_cpu_levels()[i]; i++) {
        PyObject *name = PyUnicode_FromString(fxa_cpu_levels()[i]);
        if (!name || PyList_Append(made, name) < 0) Py_CLEAR(made);
        Py_XDECREF(name);
    }
    return made;
}

static PyMethodDef methods[] = {
    {"digest", fxa_digest_of, METH_VARARGS,
     "digest(content, level): its BLAKE3, in 64 hexadecimal digits, as a processor of this or its own level computes it."},
    {"checksum", fxa_checksum_of, METH_VARARGS, "checksum(content, level): its checksum, in 16 hexadecimal digits, computed likewise."},
    {"bind", bind, METH_VARARGS,
     "bind(tensor_type, parameter_type, artifact_error, contract_error): find torch's functions, and learn what to raise."},
    {"cpu_levels", cpu_levels, METH_NOARGS, "The names of the targets that this processor can run, the best first."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "fxstack_artifact._native", "Calls graphs of artifacts on tensors.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    PyObject *type = PyType_FromSpec(&graph_spec);
    if (!type || PyModule_AddObjectRef(module, "Graph", type) < 0 ||
        PyModule_AddIntConstant(module, "ENTRY_ABI", FXA_ENTRY_ABI) < 0) {
        Py_CLEAR(module);
    }
    Py_XDECREF(type);
    return module;
}
