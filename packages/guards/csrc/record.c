/* Making records: the stack's frozen dataclasses with slots are made by the hundred thousand while a graph is compiled.
 *
 *   cls(a, b, c=1)  ->  memory, and a store for each field    instead of  type_call -> __new__, __init__ in Python
 *
 * A class gets a plan of its fields once its `__init__` has been written (fx_interface.python_runtime.quick_dataclasses),
 * and a vectorcall that follows it. Calls that the plan cannot serve (an argument too many, one that is missing or unknown,
 * an `__init__` that somebody has replaced since) are made as Python makes them, which words what is wrong. */
#include "native.h"

#include <structmember.h>

enum { BY_POSITION = 1, BY_NAME = 2, HAS_VALUE = 4, HAS_FACTORY = 8 };

typedef struct {
    PyObject *name, *value; /* of the field; its default, or what makes it, or NULL */
    Py_ssize_t offset;      /* of its slot in an instance */
    int way;
} RecordField;

typedef struct {
    PyObject_VAR_HEAD
    PyTypeObject *type;
    PyObject *init; /* the `__init__` that does the same */
    Py_ssize_t positional;
    int has_post_init;
    RecordField fields[];
} RecordPlan;

static PyObject *name_plan, *name_init, *name_post_init;

static int plan_traverse(PyObject *self, visitproc visit, void *arg) {
    RecordPlan *plan = (RecordPlan *)self;
    Py_VISIT(plan->type);
    Py_VISIT(plan->init);
    for (Py_ssize_t i = 0; i < Py_SIZE(plan); i++) Py_VISIT(plan->fields[i].value);
    return 0;
}

static int plan_clear(PyObject *self) {
    RecordPlan *plan = (RecordPlan *)self;
    Py_CLEAR(plan->init);
    Py_CLEAR(plan->type);
    for (Py_ssize_t i = 0; i < Py_SIZE(plan); i++) Py_CLEAR(plan->fields[i].value);
    return 0;
}

static void plan_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    plan_clear(self);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) Py_XDECREF(((RecordPlan *)self)->fields[i].name);
    PyObject_GC_Del(self);
}

static PyTypeObject RecordPlan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fx_guards._native.RecordPlan",
    .tp_basicsize = offsetof(RecordPlan, fields),
    .tp_itemsize = sizeof(RecordField),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = plan_traverse,
    .tp_clear = plan_clear,
    .tp_dealloc = plan_dealloc,
};

int record_ready(void) {
    name_plan = PyUnicode_InternFromString("__record_plan__");
    name_init = PyUnicode_InternFromString("__init__");
    name_post_init = PyUnicode_InternFromString("__post_init__");
    if (name_plan == NULL || name_init == NULL || name_post_init == NULL) return -1;
    return PyType_Ready(&RecordPlan_Type);
}

static PyObject *as_python(PyObject *cls, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *given = PyTuple_New(nargs), *named = kwnames == NULL ? NULL : PyDict_New(), *made = NULL;
    if (given == NULL || (kwnames != NULL && named == NULL)) goto done;
    for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; named != NULL && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) goto done;
    made = PyType_Type.tp_call(cls, given, named);
done:
    Py_XDECREF(given);
    Py_XDECREF(named);
    return made;
}

static PyObject **slot_of(PyObject *self, const RecordField *field) { return (PyObject **)((char *)self + field->offset); }

/* Store what is given by name; 0 where Python has something to say about it. */
static int store_named(PyObject *self, RecordPlan *plan, PyObject *const *values, PyObject *kwnames) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
        Py_ssize_t i = 0;
        while (i < Py_SIZE(plan) && plan->fields[i].name != PyTuple_GET_ITEM(kwnames, k)) i++;
        if (i == Py_SIZE(plan) || !(plan->fields[i].way & (BY_POSITION | BY_NAME))) return 0;
        PyObject **slot = slot_of(self, &plan->fields[i]);
        if (*slot != NULL) return 0;
        *slot = Py_NewRef(values[k]);
    }
    return 1;
}

/* Store what is not given; -1 with an exception that a factory raises. */
static int store_rest(PyObject *self, RecordPlan *plan) {
    for (Py_ssize_t i = 0; i < Py_SIZE(plan); i++) {
        RecordField *field = &plan->fields[i];
        PyObject **slot = slot_of(self, field);
        if (*slot != NULL || !(field->way & HAS_VALUE)) continue;
        PyObject *value = field->way & HAS_FACTORY ? PyObject_CallNoArgs(field->value) : Py_NewRef(field->value);
        if (value == NULL) return -1;
        *slot = value;
    }
    return 0;
}

static int is_complete(PyObject *self, RecordPlan *plan) {
    for (Py_ssize_t i = 0; i < Py_SIZE(plan); i++)
        if (!(plan->fields[i].way & HAS_VALUE) && plan->fields[i].way && *slot_of(self, &plan->fields[i]) == NULL) return 0;
    return 1;
}

static PyObject *make_record(PyObject *cls, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyTypeObject *type = (PyTypeObject *)cls;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    RecordPlan *plan = (RecordPlan *)_PyType_Lookup(type, name_plan);
    if (plan == NULL || !Py_IS_TYPE(plan, &RecordPlan_Type) || plan->type != type || nargs > plan->positional ||
        _PyType_Lookup(type, name_init) != plan->init)
        return as_python(cls, args, nargs, kwnames);
    PyObject *self = type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    Py_ssize_t given = 0;
    for (Py_ssize_t i = 0; given < nargs; i++)
        if (plan->fields[i].way & BY_POSITION) *slot_of(self, &plan->fields[i]) = Py_NewRef(args[given++]);
    if ((kwnames != NULL && !store_named(self, plan, args + nargs, kwnames)) || !is_complete(self, plan)) {
        Py_DECREF(self);
        return as_python(cls, args, nargs, kwnames);
    }
    PyObject *done = NULL;
    if (store_rest(self, plan) == 0)
        done = plan->has_post_init ? PyObject_CallMethodNoArgs(self, name_post_init) : Py_NewRef(Py_None);
    if (done == NULL) Py_CLEAR(self);
    Py_XDECREF(done);
    return self;
}

/* Read a field of the plan: (name, the slot's descriptor, way, value). */
static int read_field(RecordField *field, PyObject *given) {
    PyObject *name, *member, *value;
    int way;
    if (!PyArg_ParseTuple(given, "UOiO", &name, &member, &way, &value)) return -1;
    if (!Py_IS_TYPE(member, &PyMemberDescr_Type) || ((PyMemberDescrObject *)member)->d_member->type != T_OBJECT_EX) {
        PyErr_SetString(PyExc_TypeError, "a record's field is no slot");
        return -1;
    }
    PyObject *interned = Py_NewRef(name);
    PyUnicode_InternInPlace(&interned);
    field->name = interned;
    field->offset = ((PyMemberDescrObject *)member)->d_member->offset;
    field->way = way;
    field->value = way & HAS_VALUE ? Py_NewRef(value) : NULL;
    return 0;
}

/* make_natively(cls, init, fields): see above. */
PyObject *make_natively(PyObject *module, PyObject *args) {
    PyTypeObject *type;
    PyObject *init, *fields;
    if (!PyArg_ParseTuple(args, "O!OO!", &PyType_Type, &type, &init, &PyTuple_Type, &fields)) return NULL;
    if (!Py_IS_TYPE(type, &PyType_Type) || type->tp_new != PyBaseObject_Type.tp_new || type->tp_vectorcall != NULL)
        Py_RETURN_NONE;
    Py_ssize_t n = PyTuple_GET_SIZE(fields);
    RecordPlan *plan = PyObject_GC_NewVar(RecordPlan, &RecordPlan_Type, n);
    if (plan == NULL) return NULL;
    memset(plan->fields, 0, n * sizeof(RecordField));
    plan->type = (PyTypeObject *)Py_NewRef(type);
    plan->init = Py_NewRef(init);
    plan->positional = 0;
    plan->has_post_init = _PyType_Lookup(type, name_post_init) != NULL;
    PyObject_GC_Track(plan);
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < n; i++) {
        failed = read_field(&plan->fields[i], PyTuple_GET_ITEM(fields, i)) < 0;
        if (plan->fields[i].way & BY_POSITION) plan->positional++;
    }
    failed = failed || PyObject_SetAttr((PyObject *)type, name_plan, (PyObject *)plan) < 0;
    Py_DECREF(plan);
    if (failed) return NULL;
    type->tp_vectorcall = make_record;
    Py_RETURN_NONE;
}
