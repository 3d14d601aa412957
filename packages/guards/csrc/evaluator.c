/* The evaluator object: runs the plan of the last unchanged check where there is one, else walks the tree. */
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
    int active;     /* checks in progress: user code that a check runs may check again */
    int stale_runs;
    Plan *plan; /* or NULL */
} Evaluator;

static int all_pass(Evaluator *self, const Roots *roots, Run *run) {
    for (Py_ssize_t i = 0; i < self->n_roots; i++)
        if (!root_passes(&self->roots[i], roots, run)) return 0;
    for (Py_ssize_t i = 0; i < self->n_relations; i++)
        if (!check_many(&self->relations[i], run->slots)) return fails(run, self->relations[i].guard);
    return 1;
}

enum { SMALL_RUN = 32, MOST_STALE_RUNS = 8 };

/* A walk that found nothing new is worth a plan; a plan that keeps meeting changes is not. Not while a nested or
 * concurrent check may be using the one there is. */
static void revise_plan(Evaluator *self, const Roots *roots, const Run *run, int result) {
    if (self->active > 1 || roots->locals_map != NULL) return;
    if (result && !run->changed) {
        plan_free(self->plan);
        self->plan = plan_record(self->roots, self->n_roots, roots, self->relations, self->n_relations, self->n_slots);
        self->stale_runs = 0;
    } else if (self->plan != NULL && ++self->stale_runs > MOST_STALE_RUNS) {
        plan_free(self->plan);
        self->plan = NULL;
    }
}

static void clear_slots(Evaluator *self, Run *run) {
    for (Py_ssize_t i = 0; i < self->n_slots; i++) Py_XDECREF(run->slots[i].obj);
    memset(run->slots, 0, (size_t)self->n_slots * sizeof(Slot));
}

static int plan_or_walk(Evaluator *self, const Roots *roots, Run *run) {
    if (self->plan != NULL && roots->locals_map == NULL) {
        PlanOutcome outcome = plan_run(self->plan, roots, self->relations, self->n_relations, run);
        if (outcome != PLAN_STALE) return outcome == PLAN_HOLDS;
        clear_slots(self, run);
        PyErr_Clear();
    }
    int result = all_pass(self, roots, run);
    if (dict_versions_work) revise_plan(self, roots, run, result);
    return result;
}

static int evaluate(Evaluator *self, const Roots *roots) {
    Slot small[SMALL_RUN];
    Run run = {small, -1, 0};
    if (self->n_slots > SMALL_RUN) run.slots = PyMem_New(Slot, self->n_slots);
    if (run.slots == NULL) return 0;
    if (self->n_slots > 0) memset(run.slots, 0, (size_t)self->n_slots * sizeof(Slot));
    Py_INCREF(self);
    self->active++;
    int result = plan_or_walk(self, roots, &run);
    self->active--;
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

Node *evaluator_roots(PyObject *evaluator, Py_ssize_t *n) {
    *n = ((Evaluator *)evaluator)->n_roots;
    return ((Evaluator *)evaluator)->roots;
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
    plan_free(self->plan);
    self->plan = NULL;
    return 0;
}

static void evaluator_dealloc(Evaluator *self) {
    PyObject_GC_UnTrack(self);
    evaluator_clear(self);
    plan_free(self->plan);
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

static PyObject *evaluator_plan(Evaluator *self, void *unused) {
    (void)unused;
    return self->plan == NULL ? Py_NewRef(Py_None) : plan_counts(self->plan);
}

static PyMethodDef evaluator_methods[] = {
    {"check", (PyCFunction)evaluator_check, METH_O, "check(scope) -> bool: whether every guard holds. Never raises."},
    {"check_call", (PyCFunction)(void (*)(void))evaluator_check_call, METH_FASTCALL,
     "check_call(function, *slots) -> bool: as at the entry of function's frame."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef evaluator_getset[] = {
    {"failed", (getter)evaluator_failed, NULL, "Index of the guard that failed last, or -1.", NULL},
    {"plan", (getter)evaluator_plan, NULL, "Entries of the plan by kind, or None while there is none.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Evaluator_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fx_guards._native.Evaluator",
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
