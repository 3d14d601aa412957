/* The fetcher: reads many values below a few roots in one call. */
#include "native.h"

#include "dict_version.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Node *roots; /* one per positional argument */
    Py_ssize_t n_roots, n_results;
    PyObject *sources; /* the root sources, for whoever passes their values */
} Fetcher;

static int gather(Node *node, PyObject *value, PyObject *results) {
    if (node->slot >= 0) {
        PyObject *old = PyTuple_GET_ITEM(results, node->slot);
        PyTuple_SET_ITEM(results, node->slot, Py_NewRef(value));
        Py_XDECREF(old);
    }
    for (int i = 0; i < node->n_children; i++) {
        Node *child = &node->children[i];
        int unchanged = 0;
        Seen pending;
        pending.value = NULL;
        PyObject *found = fetch_child(child, value, &unchanged, &pending);
        if (found == NULL) return -1;
        if (!unchanged && pending.value != NULL && pending.n > 0 && pending.n <= SEEN_DICTS) child->seen = pending;
        int result = gather(child, found, results);
        Py_DECREF(found);
        if (result < 0) return -1;
    }
    return 0;
}

static PyObject *fetcher_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Fetcher *self = (Fetcher *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargs != self->n_roots || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0)) {
        PyErr_Format(PyExc_TypeError, "fetcher takes %zd positional arguments, got %zd", self->n_roots, nargs);
        return NULL;
    }
    PyObject *results = PyTuple_New(self->n_results);
    for (Py_ssize_t i = 0; results != NULL && i < nargs; i++)
        if (gather(&self->roots[i], args[i], results) < 0) Py_CLEAR(results);
    return results;
}

static PyObject *fetcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *specs, *sources;
    Py_ssize_t n_results;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!nO", &PyTuple_Type, &specs, &n_results, &sources)) return NULL;
    Fetcher *self = (Fetcher *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = fetcher_call;
    self->n_results = n_results;
    self->sources = Py_NewRef(sources);
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    self->roots = PyMem_Calloc((size_t)count + 1, sizeof(Node));
    for (Py_ssize_t i = 0; self->roots != NULL && i < count; i++) {
        self->n_roots++;
        if (node_parse(&self->roots[i], PyTuple_GET_ITEM(specs, i)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    if (self->roots == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int fetcher_traverse(Fetcher *self, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < self->n_roots; i++) {
        int r = node_traverse(&self->roots[i], visit, arg);
        if (r) return r;
    }
    Py_VISIT(self->sources);
    return 0;
}

static int fetcher_clear(Fetcher *self) {
    Py_CLEAR(self->sources);
    for (Py_ssize_t i = 0; i < self->n_roots; i++) node_clear(&self->roots[i]);
    self->n_roots = 0;
    return 0;
}

static void fetcher_dealloc(Fetcher *self) {
    PyObject_GC_UnTrack(self);
    fetcher_clear(self);
    PyMem_Free(self->roots);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *fetcher_roots(Fetcher *self, void *unused) {
    (void)unused;
    return Py_NewRef(self->sources == NULL ? Py_None : self->sources);
}

static PyGetSetDef fetcher_getset[] = {
    {"roots", (getter)fetcher_roots, NULL, "The sources whose values the call takes, in order.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Fetcher_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fx_guards._native.Fetcher",
    .tp_basicsize = sizeof(Fetcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Reads many values below its positional arguments: Fetcher(nodes, number of results, root sources).",
    .tp_new = fetcher_new,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Fetcher, vectorcall),
    .tp_traverse = (traverseproc)fetcher_traverse,
    .tp_clear = (inquiry)fetcher_clear,
    .tp_dealloc = (destructor)fetcher_dealloc,
    .tp_getset = fetcher_getset,
};
