/* The call of a compiled module, without a Python frame, a tuple and a dict in between. */
#include "forwarded_call.h"
#include "watched_name.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *attribute;
    FXSWatchedName flag; /* owns its dict and its name */
    PyObject *dict;
} Forwarded;

static PyObject *forwarded_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Forwarded *forwarded = (Forwarded *)self;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (FXS_UNLIKELY(count < 1 || fxs_named(&forwarded->flag) != Py_False)) {
        return PyObject_Vectorcall(forwarded->function, args, nargsf, names);
    }
    PyObject *target = PyObject_GetAttr(args[0], forwarded->attribute);
    if (target == NULL) {
        return NULL;
    }
    PyObject *result = PyObject_Vectorcall(target, args + 1, (size_t)(count - 1), names);
    Py_DECREF(target);
    return result;
}

static PyObject *forwarded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "attribute", "variables", "flag", NULL};
    PyObject *function, *attribute, *variables, *flag;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OUO!U", names, &function, &attribute, &PyDict_Type, &variables,
                                     &flag)) {
        return NULL;
    }
    if (!PyFunction_Check(function)) {
        PyErr_Format(PyExc_TypeError, "a Python function is needed, not %R", Py_TYPE(function));
        return NULL;
    }
    Forwarded *forwarded = (Forwarded *)type->tp_alloc(type, 0);
    if (forwarded == NULL) {
        return NULL;
    }
    forwarded->vectorcall = forwarded_vectorcall;
    forwarded->function = Py_NewRef(function);
    forwarded->attribute = Py_NewRef(attribute);
    PyUnicode_InternInPlace(&forwarded->attribute); /* the class's cache of lookups knows it then */
    forwarded->flag.dict = Py_NewRef(variables);
    forwarded->flag.name = Py_NewRef(flag);
    return (PyObject *)forwarded;
}

static int forwarded_traverse(PyObject *self, visitproc visit, void *arg)
{
    Forwarded *forwarded = (Forwarded *)self;
    Py_VISIT(forwarded->function);
    Py_VISIT(forwarded->flag.dict);
    Py_VISIT(forwarded->dict);
    return 0;
}

static int forwarded_clear(PyObject *self)
{
    Py_CLEAR(((Forwarded *)self)->dict); /* the rest stays: a finalizer may still call us */
    return 0;
}

static void forwarded_dealloc(PyObject *self)
{
    Forwarded *forwarded = (Forwarded *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(forwarded->function);
    Py_XDECREF(forwarded->attribute);
    Py_XDECREF(forwarded->flag.dict);
    Py_XDECREF(forwarded->flag.name);
    Py_XDECREF(forwarded->dict);
    Py_TYPE(self)->tp_free(self);
}

/* As a function does: a method when read from an instance. */
static PyObject *forwarded_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyMemberDef forwarded_members[] = {
    {"function", T_OBJECT, offsetof(Forwarded, function), READONLY, "The same in Python."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef forwarded_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject FXSForwardedCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.ForwardedCall",
    .tp_basicsize = sizeof(Forwarded),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = forwarded_new,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Forwarded, vectorcall),
    .tp_traverse = forwarded_traverse,
    .tp_clear = forwarded_clear,
    .tp_dealloc = forwarded_dealloc,
    .tp_descr_get = forwarded_get,
    .tp_members = forwarded_members,
    .tp_getset = forwarded_getset,
    .tp_dictoffset = offsetof(Forwarded, dict),
};
