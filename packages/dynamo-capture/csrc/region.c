/* RegionFunction(function, callback): calling it activates the callback (None: nothing) in this thread for the call. */
#include "region.h"
#include "profiling.h"
#include "stock_stance.h"
#include "thread_state.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *callback; /* NULL: deactivate */
    PyObject *dict;
    PyObject *weakrefs;
} Region;

static PyObject *region_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Region *region = (Region *)self;
    FXSThread *thread = &fxs_thread;
    if (FXS_UNLIKELY(fxs_stack_is_low(thread)) && fxs_stack_pointer() < thread->stack_end) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is used up");
        return NULL;
    }
    int activates = region->callback != NULL; /* what deactivates does so under every stance */
    if (thread->callback == region->callback || FXS_UNLIKELY(fxs_paused)
        || (activates && FXS_UNLIKELY(fxs_stock_forces_eager()))) {
        return PyObject_Vectorcall(region->function, args, nargsf, names);
    }
    Py_INCREF(self);
    PyObject *range = fxs_begin_range(self);
    PyObject *rival = region->callback == NULL ? NULL : fxs_rival_off(); /* first: it may take hooks above its own away */
    PyObject *previous = fxs_activate(thread, Py_XNewRef(region->callback));
    PyObject *result = PyObject_Vectorcall(region->function, args, nargsf, names);
    Py_XDECREF(fxs_activate(thread, previous));
    fxs_rival_back(rival);
    if (FXS_UNLIKELY(range != NULL)) {
        fxs_end_range(range);
    }
    Py_DECREF(self);
    return result;
}

static PyObject *region_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "callback", NULL};
    PyObject *function, *callback;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &function, &callback)) {
        return NULL;
    }
    if (!PyCallable_Check(function) || (callback != Py_None && !PyCallable_Check(callback))) {
        PyErr_SetString(PyExc_TypeError, "RegionFunction(function, callback): both are callable, or callback is None");
        return NULL;
    }
    Region *region = (Region *)type->tp_alloc(type, 0);
    if (region == NULL) {
        return NULL;
    }
    region->vectorcall = region_vectorcall;
    region->function = Py_NewRef(function);
    region->callback = callback == Py_None ? NULL : Py_NewRef(callback);
    return (PyObject *)region;
}

static int region_traverse(PyObject *self, visitproc visit, void *arg)
{
    Region *region = (Region *)self;
    Py_VISIT(region->function);
    Py_VISIT(region->callback);
    Py_VISIT(region->dict);
    return 0;
}

static int region_clear(PyObject *self)
{
    Region *region = (Region *)self;
    Py_CLEAR(region->dict);
    Py_CLEAR(region->callback); /* the function stays: a finalizer may still call us */
    return 0;
}

static void region_dealloc(PyObject *self)
{
    Region *region = (Region *)self;
    PyObject_GC_UnTrack(self);
    if (region->weakrefs != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    Py_XDECREF(region->function);
    Py_XDECREF(region->callback);
    Py_XDECREF(region->dict);
    Py_TYPE(self)->tp_free(self);
}

/* As a function does: a method when read from an instance. */
static PyObject *region_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, instance);
}

static PyObject *region_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<optimized %R>", ((Region *)self)->function);
}

/* Pickled and copied by name, as functions are. */
static PyObject *region_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyMethodDef region_methods[] = {
    {"__reduce__", region_reduce, METH_NOARGS, "The qualified name: pickled and copied as functions are."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef region_members[] = {
    {"function", T_OBJECT, offsetof(Region, function), READONLY, "The function as it is."},
    {"callback", T_OBJECT, offsetof(Region, callback), READONLY, "What is active while it runs; None: nothing."},
    {NULL, 0, 0, 0, NULL},
};

/* What a function written in Python says of itself, by which inspect and its like take a callable for one. */
static PyObject *region_of_function(PyObject *self, void *name)
{
    PyObject *dict = ((Region *)self)->dict;
    PyObject *function = dict == NULL ? NULL : PyDict_GetItemString(dict, "__wrapped__");
    if (function == NULL || !PyFunction_Check(function)) {
        PyErr_Format(PyExc_AttributeError, "%R is no function, and has no attribute '%s'", self, (char *)name);
        return NULL;
    }
    return PyObject_GetAttrString(function, (char *)name);
}

/* An optimized function or method is a function for isinstance, which tells what inspect, torch.fx and torch.jit take. */
static PyObject *region_class(PyObject *self, void *Py_UNUSED(closure))
{
    Region *region = (Region *)self;
    PyObject *wrapped = region->dict == NULL ? NULL : PyDict_GetItemString(region->dict, "__wrapped__");
    bool is_function = wrapped != NULL && (PyFunction_Check(wrapped) || PyMethod_Check(wrapped));
    return Py_NewRef(is_function && region->callback != NULL ? (PyObject *)&PyFunction_Type : (PyObject *)Py_TYPE(self));
}

/* Stock's compiler leaves alone what has this mark: a function that this stack compiles is none that it should inline. */
static PyObject *region_stock_disable(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    return Py_NewRef(Py_True);
}

static PyGetSetDef region_getset[] = {
    {"__class__", region_class, NULL, "FunctionType for an optimized function.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"_torchdynamo_disable", region_stock_disable, NULL, "Stock's compiler does not look into it.", NULL},
    {"__code__", region_of_function, NULL, "The function's code.", "__code__"},
    {"__defaults__", region_of_function, NULL, "The function's defaults.", "__defaults__"},
    {"__kwdefaults__", region_of_function, NULL, "The function's defaults by name.", "__kwdefaults__"},
    {"__globals__", region_of_function, NULL, "The function's globals.", "__globals__"},
    {"__closure__", region_of_function, NULL, "The function's free variables.", "__closure__"},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject FXSRegion_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.RegionFunction",
    .tp_basicsize = sizeof(Region),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = region_new,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Region, vectorcall),
    .tp_traverse = region_traverse,
    .tp_clear = region_clear,
    .tp_dealloc = region_dealloc,
    .tp_descr_get = region_get,
    .tp_repr = region_repr,
    .tp_methods = region_methods,
    .tp_members = region_members,
    .tp_getset = region_getset,
    .tp_dictoffset = offsetof(Region, dict),
    .tp_weaklistoffset = offsetof(Region, weakrefs),
};
