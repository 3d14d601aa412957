/* The evaluator: walks the tree of nodes, checks each value once, and remembers what only a changed dict could change. */
#include "native.h"

#include "dict_version.h"

typedef struct {
    PyObject_HEAD
    Node *roots;
    Py_ssize_t n_roots;
    Check *relations;
    Py_ssize_t n_relations;
    Py_ssize_t n_slots;
    int32_t failed; /* index of the guard that failed last, or -1 */
} Evaluator;

typedef struct {
    Slot *slots;
    int32_t failed;
} Run;

static int passes(Node *node, PyObject *value, int unchanged, Run *run);

static int fails(Run *run, int32_t guard) {
    run->failed = guard;
    return 0;
}

static int checks_pass(const Node *node, int from, int to, PyObject *value, Run *run) {
    for (int i = from; i < to; i++)
        if (!check_value(&node->checks[i], value)) return fails(run, node->checks[i].guard);
    return 1;
}

/* A size or stride wanted as a number only. 0: not readable this way. */
static int number_child(Node *child, PyObject *tensor, Run *run) {
    Slot *slot = &run->slots[child->slot];
    return slot->has_number =
               tensor_extent(tensor, child->access == ACCESS_STRIDE, child->index, &slot->number);
}

/* Remember a value for which everything that lasts with it has been checked. */
static inline void commit(Node *node, const Seen *pending) {
    if (pending->value != NULL && pending->n > 0 && pending->n <= SEEN_DICTS) node->seen = *pending;
}

static int child_passes(Node *child, PyObject *parent, Run *run) {
    if (child->number_only && number_child(child, parent, run)) return 1;
    int unchanged = 0;
    Seen pending;
    pending.value = NULL;
    PyObject *value = fetch_child(child, parent, &unchanged, &pending);
    if (value == NULL) return 0;
    int result = passes(child, value, unchanged, run);
    if (result && !unchanged) commit(child, &pending);
    Py_DECREF(value);
    return result;
}

static int passes(Node *node, PyObject *value, int unchanged, Run *run) {
    if (!checks_pass(node, 0, node->n_live_checks, value, run)) return 0;
    if (!unchanged && !checks_pass(node, node->n_live_checks, node->n_value_checks, value, run)) return 0;
    uint64_t version = PyDict_CheckExact(value) ? dict_version(value) : 0;
    int settled = version != 0 && node->ok_dict == value && node->ok_version == version;
    if (!settled && !checks_pass(node, node->n_value_checks, node->n_checks, value, run)) return 0;
    int count = settled ? node->n_live_children : node->n_children;
    for (int i = 0; i < count; i++)
        if (!child_passes(&node->children[i], value, run)) return 0;
    if (version != 0 && !settled) {
        node->ok_dict = value;
        node->ok_version = version;
    }
    if (node->slot >= 0) Py_XSETREF(run->slots[node->slot].obj, Py_NewRef(value));
    return 1;
}

static int root_passes(Node *root, const Roots *roots, Run *run) {
    int unchanged = 0;
    Seen pending;
    pending.value = NULL;
    PyObject *value = fetch_root(root, roots, &unchanged, &pending);
    if (value == NULL) return 0;
    int result = passes(root, value, unchanged, run);
    if (result && !unchanged) commit(root, &pending);
    Py_DECREF(value);
    return result;
}

static int all_pass(Evaluator *self, const Roots *roots, Run *run) {
    for (Py_ssize_t i = 0; i < self->n_roots; i++)
        if (!root_passes(&self->roots[i], roots, run)) return 0;
    for (Py_ssize_t i = 0; i < self->n_relations; i++)
        if (!check_many(&self->relations[i], run->slots)) return fails(run, self->relations[i].guard);
    return 1;
}

enum { SMALL_RUN = 32 };

static int evaluate(Evaluator *self, const Roots *roots) {
    Slot small[SMALL_RUN];
    Run run = {small, -1};
    if (self->n_slots > SMALL_RUN) run.slots = PyMem_New(Slot, self->n_slots);
    if (run.slots == NULL) return 0;
    if (self->n_slots > 0) memset(run.slots, 0, (size_t)self->n_slots * sizeof(Slot));
    Py_INCREF(self);
    int result = all_pass(self, roots, &run);
    for (Py_ssize_t i = 0; i < self->n_slots; i++) Py_XDECREF(run.slots[i].obj);
    if (run.slots != small) PyMem_Free(run.slots);
    self->failed = run.failed;
    Py_DECREF(self);
    return result;
}

int evaluator_check_frame(void *evaluator, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *func) {
    PyFunctionObject *function = (PyFunctionObject *)func;
    Roots roots = {fastlocals, nlocals, function->func_globals, function->func_builtins, function->func_closure, NULL, NULL};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int result = evaluate((Evaluator *)evaluator, &roots);
    PyErr_Restore(type, value, traceback);
    return result;
}

/* --- the Python object --- */

static int parse_relations(Evaluator *self, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    self->relations = PyMem_Calloc((size_t)count + 1, sizeof(Check));
    if (self->relations == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        self->n_relations++;
        if (check_parse(&self->relations[i], PyTuple_GET_ITEM(specs, i)) < 0) return -1;
    }
    return 0;
}

static int parse_roots(Evaluator *self, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    self->roots = PyMem_Calloc((size_t)count + 1, sizeof(Node));
    if (self->roots == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        self->n_roots++;
        if (node_parse(&self->roots[i], PyTuple_GET_ITEM(specs, i)) < 0) return -1;
    }
    return 0;
}

static PyObject *evaluator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *roots, *relations;
    Py_ssize_t n_slots;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!O!n", &PyTuple_Type, &roots, &PyTuple_Type, &relations, &n_slots)) return NULL;
    Evaluator *self = (Evaluator *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->n_slots = n_slots;
    self->failed = -1;
    if (parse_roots(self, roots) < 0 || parse_relations(self, relations) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int evaluator_traverse(Evaluator *self, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < self->n_roots; i++) {
        int r = node_traverse(&self->roots[i], visit, arg);
        if (r) return r;
    }
    for (Py_ssize_t i = 0; i < self->n_relations; i++) Py_VISIT(self->relations[i].obj);
    return 0;
}

static int evaluator_clear(Evaluator *self) {
    for (Py_ssize_t i = 0; i < self->n_roots; i++) node_clear(&self->roots[i]);
    for (Py_ssize_t i = 0; i < self->n_relations; i++) check_clear(&self->relations[i]);
    self->n_roots = self->n_relations = 0;
    return 0;
}

static void evaluator_dealloc(Evaluator *self) {
    PyObject_GC_UnTrack(self);
    evaluator_clear(self);
    PyMem_Free(self->roots);
    PyMem_Free(self->relations);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* check(scope): a fx_interface.source.Scope, or any object with its four attributes. */
static PyObject *evaluator_check(Evaluator *self, PyObject *scope) {
    PyObject *locals = PyObject_GetAttrString(scope, "locals");
    PyObject *globals = locals ? PyObject_GetAttrString(scope, "globals") : NULL;
    PyObject *closure = globals ? PyObject_GetAttrString(scope, "closure") : NULL;
    PyObject *builtins = closure ? PyObject_GetAttrString(scope, "builtins") : NULL;
    PyObject *answer = NULL;
    if (builtins != NULL) {
        Roots roots = {NULL, 0, globals, builtins, NULL, locals, closure};
        int result = evaluate(self, &roots);
        PyErr_Clear();
        answer = PyBool_FromLong(result);
    }
    Py_XDECREF(locals);
    Py_XDECREF(globals);
    Py_XDECREF(closure);
    Py_XDECREF(builtins);
    return answer;
}

/* check_call(function, *slots): as the frame hook does it, the slots in co_varnames order. */
static PyObject *evaluator_check_call(Evaluator *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs < 1 || !PyFunction_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "check_call takes a function, then the values of its argument slots");
        return NULL;
    }
    return PyBool_FromLong(evaluator_check_frame(self, (PyObject **)args + 1, nargs - 1, args[0]));
}

static PyObject *evaluator_failed(Evaluator *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->failed);
}

static PyMethodDef evaluator_methods[] = {
    {"check", (PyCFunction)evaluator_check, METH_O, "check(scope) -> bool: whether every guard holds. Never raises."},
    {"check_call", (PyCFunction)(void (*)(void))evaluator_check_call, METH_FASTCALL,
     "check_call(function, *slots) -> bool: as at the entry of function's frame."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef evaluator_getset[] = {
    {"failed", (getter)evaluator_failed, NULL, "Index of the guard that failed last, or -1.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Evaluator_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "guards._native.Evaluator",
    .tp_basicsize = sizeof(Evaluator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A guard set compiled to a tree: Evaluator(roots, relations, number of slots).",
    .tp_new = evaluator_new,
    .tp_traverse = (traverseproc)evaluator_traverse,
    .tp_clear = (inquiry)evaluator_clear,
    .tp_dealloc = (destructor)evaluator_dealloc,
    .tp_methods = evaluator_methods,
    .tp_getset = evaluator_getset,
};
