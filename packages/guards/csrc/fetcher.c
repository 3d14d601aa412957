/* The fetcher: reads many values below a few roots in one call; by the plan of the last one where nothing has changed. */
#include "native.h"

#include "dict_version.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Node *roots; /* one per positional argument */
    Py_ssize_t n_roots, n_results;
    PyObject *sources; /* the root sources, for whoever passes their values */
    Plan *plan;        /* of the roots that are objects with attributes, or NULL */
    int active;        /* calls in progress: user code that a read runs may fetch again */
    int stale_runs, failed_plans;
} Fetcher;

enum { MOST_STALE_RUNS = 8, MOST_FAILED_PLANS = 4 };

/* `changed`: something was read that was not read before, or that has changed since. */
static int gather(Node *node, PyObject *value, PyObject *results, int *changed) {
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
        if (!unchanged && pending.value != NULL && pending.n > 0 && pending.n <= SEEN_DICTS) {
            child->seen = pending;
            *changed = 1;
        }
        int result = gather(child, found, results, changed);
        Py_DECREF(found);
        if (result < 0) return -1;
    }
    return 0;
}

/* An argument, or a tuple of them, is another at each call: it is read as it comes. */
static int is_passing(const Node *root) {
    for (int i = 0; i < root->n_children; i++) {
        const Node *child = &root->children[i];
        if (child->access != ACCESS_ITEM || child->index == INT32_MIN || child->n_children > 0) return 0;
    }
    return 1;
}

/* Whether reading what passes runs no user code. */
static int reads_plainly(const Fetcher *self, PyObject *const *args) {
    for (Py_ssize_t i = 0; i < self->n_roots; i++) {
        const Node *root = &self->roots[i];
        if (root->n_children > 0 && is_passing(root) && !PyTuple_CheckExact(args[i])) return 0;
    }
    return 1;
}

/* Whether the plan holds and has given `results`, which were empty. Where it has not, the walk begins anew. */
static int by_plan(Fetcher *self, PyObject *const *args, PyObject *results) {
    Roots given = {(PyObject **)args, self->n_roots, NULL, NULL, NULL, NULL, NULL};
    if (self->plan == NULL || !reads_plainly(self, args) || !plan_read(self->plan, &given, results)) return 0;
    for (Py_ssize_t i = 0; i < self->n_roots; i++) {
        int changed = 0;
        if (is_passing(&self->roots[i]) && gather(&self->roots[i], args[i], results, &changed) < 0) {
            PyErr_Clear(); /* a tuple that is too short: the walk will say so */
            return 0;
        }
    }
    return 1;
}

/* As in evaluator.c. */
static void revise_plan(Fetcher *self, PyObject *const *args, int changed) {
    if (self->active > 1 || !dict_versions_work) return;
    if (!changed && self->failed_plans < MOST_FAILED_PLANS) {
        Roots given = {(PyObject **)args, self->n_roots, NULL, NULL, NULL, NULL, NULL};
        plan_free(self->plan);
        self->plan = reads_plainly(self, args) ? plan_record_reads(self->roots, self->n_roots, &given, is_passing) : NULL;
        self->failed_plans += self->plan == NULL;
        self->stale_runs = 0;
    } else if (self->plan != NULL && ++self->stale_runs > MOST_STALE_RUNS) {
        plan_free(self->plan);
        self->plan = NULL;
    }
}

static PyObject *by_walk(Fetcher *self, PyObject *const *args, PyObject *results) {
    int changed = 0;
    for (Py_ssize_t i = 0; i < self->n_roots; i++)
        if (gather(&self->roots[i], args[i], results, &changed) < 0) {
            Py_DECREF(results);
            return NULL;
        }
    revise_plan(self, args, changed);
    return results;
}

static PyObject *fetcher_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Fetcher *self = (Fetcher *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargs != self->n_roots || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0)) {
        PyErr_Format(PyExc_TypeError, "fetcher takes %zd positional arguments, got %zd", self->n_roots, nargs);
        return NULL;
    }
    PyObject *results = PyTuple_New(self->n_results);
    if (results == NULL) return NULL;
    Py_INCREF(self);
    self->active++;
    if (!by_plan(self, args, results)) results = by_walk(self, args, results);
    self->active--;
    Py_DECREF(self);
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
        self->roots[i].index = (int32_t)i; /* of the argument */
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
    plan_free(self->plan);
    self->plan = NULL;
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

static PyObject *fetcher_plan(Fetcher *self, void *unused) {
    (void)unused;
    return self->plan == NULL ? Py_NewRef(Py_None) : plan_counts(self->plan);
}

static PyGetSetDef fetcher_getset[] = {
    {"plan", (getter)fetcher_plan, NULL, "Entries of the plan by kind, or None while there is none.", NULL},
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
