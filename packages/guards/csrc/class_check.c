/* isinstance() for code that looks at other people's objects: what an object is, not what it says that it is.
 *
 *   Python's asks an object that is no instance for its `__class__`, which may be a property of the program, below a
 *   `__getattribute__` of the program. Here its type answers. A class whose own class has an `__instancecheck__` (but
 *   ABCMeta's, which asks the object, and has one for classes) is asked as ever. */
#include "native.h"

static PyObject *name_instancecheck, *name_class, *abc_meta;

int class_check_ready(void) {
    name_instancecheck = PyUnicode_InternFromString("__instancecheck__");
    name_class = PyUnicode_InternFromString("__class__");
    PyObject *abc = name_instancecheck == NULL ? NULL : PyImport_ImportModule("abc");
    abc_meta = abc == NULL ? NULL : PyObject_GetAttrString(abc, "ABCMeta");
    Py_XDECREF(abc);
    return abc_meta == NULL ? -1 : 0;
}

static int checks_as_type(PyTypeObject *meta) {
    return meta == &PyType_Type ||
           _PyType_Lookup(meta, name_instancecheck) == _PyType_Lookup(&PyType_Type, name_instancecheck);
}

/* Whether reading `value.__class__` gives the type and runs nothing else. */
static int shows_its_type(PyTypeObject *type) {
    return type->tp_getattro == PyObject_GenericGetAttr &&
           _PyType_Lookup(type, name_class) == _PyType_Lookup(&PyBaseObject_Type, name_class);
}

static int is_one(PyObject *value, PyObject *cls) {
    PyTypeObject *type = Py_TYPE(value);
    if ((PyObject *)type == cls) return 1;
    if (PyTuple_Check(cls)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cls); i++) {
            int found = is_one(value, PyTuple_GET_ITEM(cls, i));
            if (found != 0) return found;
        }
        return 0;
    }
    if (PyType_Check(cls) && checks_as_type(Py_TYPE(cls))) return PyType_IsSubtype(type, (PyTypeObject *)cls);
    if ((PyObject *)Py_TYPE(cls) == abc_meta && !shows_its_type(type)) return PyObject_IsSubclass((PyObject *)type, cls);
    return PyObject_IsInstance(value, cls);
}

PyObject *is_instance(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "isinstance expected 2 arguments, got %zd", nargs);
    int found = is_one(args[0], args[1]);
    return found < 0 ? NULL : PyBool_FromLong(found);
}
