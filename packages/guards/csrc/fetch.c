/* Reading a value from its parent's, with what was read before where nothing has changed. */
#include "native.h"

#include "dict_version.h"

static PyObject *names_params, *names_buffers, *names_modules, *name_dict, *name_getattribute, *name_getattr,
    *name_getitem;

static int intern_names(void) {
    if (names_params != NULL) return 0;
    name_dict = PyUnicode_InternFromString("__dict__");
    name_getattribute = PyUnicode_InternFromString("__getattribute__");
    name_getattr = PyUnicode_InternFromString("__getattr__");
    name_getitem = PyUnicode_InternFromString("__getitem__");
    names_buffers = PyUnicode_InternFromString("_buffers");
    names_modules = PyUnicode_InternFromString("_modules");
    names_params = PyUnicode_InternFromString("_parameters");
    return names_params && names_buffers && names_modules && name_dict && name_getattribute && name_getattr && name_getitem
               ? 0
               : -1;
}

static inline void seen_add(Seen *seen, PyObject *dict, uint64_t version) {
    if (version == 0) seen->n = SEEN_DICTS + 1; /* not to be committed */
    if (seen->n >= SEEN_DICTS) return;
    seen->dict[seen->n] = dict;
    seen->version[seen->n++] = version;
}

/* The chain below dict number 1 is alive because dict number 0, just read from a live object, is unchanged. */
static inline PyObject *seen_value(const Seen *seen, PyObject *first) {
    if (seen->value == NULL || seen->dict[0] != first) return NULL;
    for (int i = 0; i < seen->n; i++)
        if (dict_version(seen->dict[i]) != seen->version[i]) return NULL;
    return seen->value;
}

static PyObject *missing(PyObject *key) {
    if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
    return NULL;
}

/* Borrowed; NULL with or without an exception. `dict` reads as a dict. */
static inline PyObject *lookup(PyObject *dict, PyObject *key, Py_hash_t hash) {
    return hash == -1 ? PyDict_GetItemWithError(dict, key) : _PyDict_GetItem_KnownHash(dict, key, hash);
}

static PyObject *dict_item(Node *node, PyObject *dict, int *unchanged, Seen *pending) {
    PyObject *value = seen_value(&node->seen, dict);
    if (value != NULL) {
        *unchanged = 1;
        return Py_NewRef(value);
    }
    uint64_t version = dict_version(dict);
    value = lookup(dict, node->key, node->hash);
    if (value == NULL) return missing(node->key);
    pending->n = 0;
    pending->value = value;
    seen_add(pending, dict, version);
    return Py_NewRef(value);
}

static PyObject *from_mapping(Node *node, PyObject *mapping, int *unchanged, Seen *pending) {
    if (PyDict_CheckExact(mapping)) return dict_item(node, mapping, unchanged, pending);
    return PyObject_GetItem(mapping, node->key);
}

static PyObject *unbound(Node *node) {
    PyErr_Format(PyExc_KeyError, "%S", node->key);
    return NULL;
}

static PyObject *closure_value(Node *node, const Roots *roots) {
    if (roots->closure_map != NULL) return PyObject_GetItem(roots->closure_map, node->key);
    if (roots->closure == NULL || node->index < 0 || node->index >= PyTuple_GET_SIZE(roots->closure))
        return unbound(node);
    PyObject *value = PyCell_GET(PyTuple_GET_ITEM(roots->closure, node->index));
    return value == NULL ? unbound(node) : Py_NewRef(value);
}

PyObject *fetch_root(Node *node, const Roots *roots, int *unchanged, Seen *pending) {
    switch ((Access)node->access) {
    case ACCESS_LOCAL:
        if (roots->locals_map != NULL) return PyObject_GetItem(roots->locals_map, node->key);
        if (node->index < 0 || node->index >= roots->n_locals || roots->locals[node->index] == NULL)
            return unbound(node);
        return Py_NewRef(roots->locals[node->index]);
    case ACCESS_GLOBAL: return from_mapping(node, roots->globals, unchanged, pending);
    case ACCESS_BUILTIN: return from_mapping(node, roots->builtins, unchanged, pending);
    case ACCESS_CLOSURE: return closure_value(node, roots);
    case ACCESS_MODULE: return from_mapping(node, PyImport_GetModuleDict(), unchanged, pending);
    case ACCESS_STATE: return Py_NewRef(Py_None);
    case ACCESS_NAMESPACE: return Py_NewRef(roots->globals);
    default: PyErr_SetString(PyExc_SystemError, "fx_guards: not a root"); return NULL;
    }
}

/* How `name` is found on objects of `type`, from its MRO alone. */
static AttrMode classify(PyTypeObject *type, PyObject *name, PyObject **class_value) {
    int module = 0;
    if (type->tp_getattro != PyObject_GenericGetAttr) {
        PyObject *base = _PyType_Lookup(&PyBaseObject_Type, name_getattribute);
        PyObject *getattr = _PyType_Lookup(type, name_getattr);
        if (_PyType_Lookup(type, name_getattribute) != base || getattr == NULL || getattr != module_getattr)
            return ATTR_SLOW;
        module = 1;
    }
    PyObject *descriptor = _PyType_Lookup(type, name);
    if (descriptor == NULL) return module ? ATTR_MODULE : ATTR_INSTANCE;
    if (Py_TYPE(descriptor)->tp_descr_set != NULL || Py_TYPE(descriptor)->tp_descr_get != NULL) return ATTR_SLOW;
    *class_value = descriptor;
    return ATTR_CLASS;
}

/* The last statement may destroy a type and so run user code, which may use the node for another type: ask again after. */
static void reclassify(Node *node, PyTypeObject *type) {
    PyObject *class_value = NULL;
    AttrMode mode = intern_names() < 0 ? ATTR_SLOW : classify(type, node->key, &class_value);
    PyErr_Clear();
    unsigned int version = type_version(type);
    if (version == 0 || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) mode = ATTR_SLOW;
    node->attr_mode = (uint8_t)mode;
    node->class_value = class_value;
    node->type_version = version;
    node->seen.value = NULL;
    Py_XSETREF(node->type, (PyTypeObject *)Py_NewRef(type));
}

/* An attribute of a class: the first in its MRO, if neither its metaclass nor the attribute itself interferes. */
static void reclassify_class(Node *node, PyTypeObject *cls) {
    node->attr_mode = ATTR_SLOW;
    PyObject *found = Py_IS_TYPE(cls, &PyType_Type) ? _PyType_Lookup(cls, node->key) : NULL;
    if (found != NULL && (PyFunction_Check(found) || Py_TYPE(found)->tp_descr_get == NULL) &&
        _PyType_Lookup(&PyType_Type, node->key) == NULL)
        node->attr_mode = ATTR_OF_CLASS;
    node->class_value = found;
    node->type_version = type_version(cls);
    node->seen.value = NULL;
    Py_XSETREF(node->type, (PyTypeObject *)Py_NewRef(cls));
}

static PyObject *class_attribute(Node *node, PyObject *cls) {
    PyTypeObject *type = (PyTypeObject *)cls;
    if (type != node->type || node->type_version == 0 || type_version(type) != node->type_version)
        reclassify_class(node, type);
    int known = node->attr_mode == ATTR_OF_CLASS && node->type == type && node->type_version != 0;
    return known ? Py_NewRef(node->class_value) : PyObject_GetAttr(cls, node->key);
}

static inline int same_type(const Node *node, PyObject *obj) {
    return Py_TYPE(obj) == node->type && node->type_version != 0 && type_version(node->type) == node->type_version;
}

/* torch.nn.Module's own fall-back: parameters, then buffers, then sub-modules. Borrowed or NULL. */
static PyObject *module_member(PyObject *dict, Node *node, Seen *pending) {
    PyObject *const tables[] = {names_params, names_buffers, names_modules};
    for (int i = 0; i < 3; i++) {
        PyObject *table = PyDict_GetItemWithError(dict, tables[i]);
        if (table == NULL) continue;
        if (!PyDict_CheckExact(table)) return NULL;
        seen_add(pending, table, dict_version(table));
        PyObject *value = lookup(table, node->key, node->hash);
        if (value != NULL || PyErr_Occurred()) return value;
    }
    return NULL;
}

static PyObject *instance_attribute(Node *node, PyObject *obj, PyObject *dict, int *unchanged, Seen *pending) {
    PyObject *value = seen_value(&node->seen, dict);
    if (value != NULL) {
        *unchanged = 1;
        return Py_NewRef(value);
    }
    pending->n = 0;
    seen_add(pending, dict, dict_version(dict));
    value = lookup(dict, node->key, node->hash);
    if (value == NULL && !PyErr_Occurred()) {
        if (node->attr_mode == ATTR_CLASS) {
            pending->value = NULL; /* dies with the type's version: not kept */
            return Py_NewRef(node->class_value);
        }
        if (node->attr_mode == ATTR_MODULE) value = module_member(dict, node, pending);
    }
    PyErr_Clear();
    if (value == NULL) {
        pending->value = NULL;
        return PyObject_GetAttr(obj, node->key);
    }
    pending->value = value;
    return Py_NewRef(value);
}

/* A Python module's own names come before nothing but ModuleType's data descriptors, which all begin with "__". */
static PyObject *module_attribute(Node *node, PyObject *module, int *unchanged, Seen *pending) {
    if (PyUnicode_READ_CHAR(node->key, 0) != '_') {
        PyObject *value = dict_item(node, PyModule_GetDict(module), unchanged, pending);
        if (value != NULL) return value;
        PyErr_Clear();
        pending->value = NULL;
    }
    return PyObject_GetAttr(module, node->key);
}

static PyObject *attribute(Node *node, PyObject *obj, int *unchanged, Seen *pending) {
    if (PyModule_CheckExact(obj)) return module_attribute(node, obj, unchanged, pending);
    if (!same_type(node, obj)) {
        if (PyType_Check(obj)) return class_attribute(node, obj);
        reclassify(node, Py_TYPE(obj));
    }
    if (node->attr_mode == ATTR_SLOW || !same_type(node, obj)) return PyObject_GetAttr(obj, node->key);
    PyObject *dict = instance_dict(obj);
    if (dict == NULL) return PyObject_GetAttr(obj, node->key);
    PyObject *value = PyDict_CheckExact(dict) ? instance_attribute(node, obj, dict, unchanged, pending)
                                              : PyObject_GetAttr(obj, node->key);
    Py_DECREF(dict);
    return value;
}

/* Whether `obj.__dict__` is the plain instance dictionary: the type has Python's own descriptor for it. */
static void reclassify_dict(Node *node, PyTypeObject *type) {
    AttrMode mode = ATTR_SLOW;
    if (intern_names() == 0 && !PyType_IsSubtype(type, &PyType_Type)) {
        PyObject *found = _PyType_Lookup(type, name_dict);
        PyObject *getattribute = _PyType_Lookup(type, name_getattribute);
        int standard = getattribute == _PyType_Lookup(&PyBaseObject_Type, name_getattribute);
        if (standard && found != NULL && Py_IS_TYPE(found, &PyGetSetDescr_Type)) mode = ATTR_INSTANCE;
    }
    PyErr_Clear();
    unsigned int version = type_version(type);
    if (version == 0 || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) mode = ATTR_SLOW;
    node->attr_mode = (uint8_t)mode;
    node->type_version = version;
    Py_XSETREF(node->type, (PyTypeObject *)Py_NewRef(type));
}

/* `obj.__dict__` as C keeps it, below a `__getattribute__` and what the class makes of the name. */
PyObject *own_dict(PyObject *obj) {
    if (intern_names() < 0) return NULL;
    PyObject *found = _PyType_Lookup(Py_TYPE(obj), name_dict);
    if (found == NULL || Py_IS_TYPE(found, &PyGetSetDescr_Type) || Py_IS_TYPE(found, &PyMemberDescr_Type))
        return PyObject_GenericGetAttr(obj, name_dict);
    if (!PyType_Check(obj)) return PyObject_GenericGetDict(obj, NULL);
    PyObject *of_classes = _PyType_Lookup(&PyType_Type, name_dict);
    return Py_TYPE(of_classes)->tp_descr_get(of_classes, obj, (PyObject *)Py_TYPE(obj));
}

static PyObject *instance_dict_of(Node *node, PyObject *obj) {
    if (PyModule_CheckExact(obj)) return Py_NewRef(PyModule_GetDict(obj));
    if (!same_type(node, obj)) reclassify_dict(node, Py_TYPE(obj));
    if (node->attr_mode == ATTR_INSTANCE && same_type(node, obj)) {
        PyObject *dict = instance_dict(obj);
        if (dict != NULL) return dict;
    }
    return own_dict(obj);
}

static PyObject *sequence_item(PyObject *const *items, Py_ssize_t size, Py_ssize_t index) {
    if (index < 0) index += size;
    if (index < 0 || index >= size) {
        PyErr_SetString(PyExc_IndexError, "index out of range");
        return NULL;
    }
    return Py_NewRef(items[index]);
}

/* Whether items of a subclass of dict are read as those of a dict. */
static int keeps_getitem(PyTypeObject *type) {
    if (intern_names() < 0) return 0;
    return _PyType_Lookup(type, name_getitem) == _PyType_Lookup(&PyDict_Type, name_getitem);
}

static PyObject *item(Node *node, PyObject *parent, int *unchanged, Seen *pending) {
    if (reads_as_dict(parent)) return dict_item(node, parent, unchanged, pending);
    if (node->index != INT32_MIN && PyTuple_CheckExact(parent))
        return sequence_item(((PyTupleObject *)parent)->ob_item, PyTuple_GET_SIZE(parent), node->index);
    if (node->index != INT32_MIN && PyList_CheckExact(parent))
        return sequence_item(((PyListObject *)parent)->ob_item, PyList_GET_SIZE(parent), node->index);
    if (PyDict_Check(parent) && keeps_getitem(Py_TYPE(parent))) { /* its __missing__ is not to be called */
        PyObject *value = lookup(parent, node->key, node->hash);
        return value == NULL ? missing(node->key) : Py_NewRef(value);
    }
    return PyObject_GetItem(parent, node->key);
}

static PyObject *nth_key(PyObject *dict, Py_ssize_t index) {
    PyObject *keys = PySequence_List(dict);
    if (keys == NULL) return NULL;
    PyObject *key = sequence_item(((PyListObject *)keys)->ob_item, PyList_GET_SIZE(keys), index);
    Py_DECREF(keys);
    return key;
}

static PyObject *dict_key(Node *node, PyObject *dict, int *unchanged, Seen *pending) {
    if (!reads_as_dict(dict) || node->index < 0) return nth_key(dict, node->index);
    PyObject *value = seen_value(&node->seen, dict);
    if (value != NULL) {
        *unchanged = 1;
        return Py_NewRef(value);
    }
    Py_ssize_t position = 0;
    PyObject *key;
    for (Py_ssize_t i = 0; PyDict_Next(dict, &position, &key, NULL); i++) {
        if (i != node->index) continue;
        pending->n = 0;
        pending->value = key;
        seen_add(pending, dict, dict_version(dict));
        return Py_NewRef(key);
    }
    PyErr_SetString(PyExc_IndexError, "index out of range");
    return NULL;
}

static PyObject *extent(Node *node, PyObject *tensor) {
    int64_t number;
    if (tensor_extent(tensor, node->access == ACCESS_STRIDE, node->index, &number)) return PyLong_FromLongLong(number);
    PyObject *reader = node->access == ACCESS_STRIDE ? read_stride : read_size;
    if (reader != NULL) return PyObject_CallFunction(reader, "Oi", tensor, (int)node->index);
    return PyObject_CallMethod(tensor, node->access == ACCESS_STRIDE ? "stride" : "size", "i", (int)node->index);
}

PyObject *fetch_child(Node *node, PyObject *parent, int *unchanged, Seen *pending) {
    switch ((Access)node->access) {
    case ACCESS_ATTR: return attribute(node, parent, unchanged, pending);
    case ACCESS_KNOWN: return Py_NewRef(node->key);
    case ACCESS_INSTANCE_DICT: return instance_dict_of(node, parent);
    case ACCESS_ITEM: return item(node, parent, unchanged, pending);
    case ACCESS_DICT_KEY: return dict_key(node, parent, unchanged, pending);
    case ACCESS_TYPE: return Py_NewRef((PyObject *)Py_TYPE(parent));
    case ACCESS_SIZE:
    case ACCESS_STRIDE: return extent(node, parent);
    case ACCESS_PYTHON: return PyObject_CallOneArg(node->key, parent);
    default: PyErr_SetString(PyExc_SystemError, "fx_guards: a root below a value"); return NULL;
    }
}
