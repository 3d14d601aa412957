/* Building the tree of nodes and checks from the tuples that lowering (Python) hands over. */
#include "native.h"

const char *const access_names[ACCESS_COUNT] = {
    "local", "global",   "closure", "builtin", "module", "state", "namespace", "known", "attr",
    "instance_dict", "item", "dict_key", "type", "size", "stride", "python",
};

const char *const check_names[CHECK_COUNT] = {
    "type_is",     "is_object",    "is_referent", "unreferenced", "equals", "length", "dict_keys", "key_present",
    "key_absent", "dict_entries", "attr_present", "attr_absent", "class_lookup", "class_bases", "function_state", "tensor", "state", "python", "same",
    "distinct", "shapes", "storages", "python_many",
};

const char *const shape_op_names[OP_COUNT] = {
    "const", "slot", "+", "*", "floordiv", "mod", "min", "max", "==", "!=", "<", "<=",
};

/* (op, lasting, guard, obj, number, program, tensor) */
int check_parse(Check *check, PyObject *spec) {
    int op, lasting, guard;
    long long number;
    PyObject *obj, *program, *tensor;
    if (!PyArg_ParseTuple(spec, "iiiOLO!O", &op, &lasting, &guard, &obj, &number, &PyTuple_Type, &program, &tensor))
        return -1;
    if (op < 0 || op >= CHECK_COUNT) {
        PyErr_SetString(PyExc_ValueError, "unknown check");
        return -1;
    }
    check->op = (uint8_t)op;
    check->lasting = (uint8_t)lasting;
    check->guard = guard;
    check->number = number;
    check->obj = Py_NewRef(obj);
    check->program_length = PyTuple_GET_SIZE(program);
    check->program = PyMem_New(int64_t, check->program_length + 1);
    if (check->program == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < check->program_length; i++)
        check->program[i] = (int64_t)PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(program, i));
    if (PyErr_Occurred()) return -1;
    if (tensor != Py_None && (check->tensor = tensor_facts_parse(tensor)) == NULL) return -1;
    return 0;
}

void check_clear(Check *check) {
    Py_CLEAR(check->obj);
    PyMem_Free(check->program);
    check->program = NULL;
    if (check->tensor != NULL) tensor_facts_clear(check->tensor);
    check->tensor = NULL;
}

static int parse_checks(Node *node, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    node->checks = PyMem_Calloc((size_t)count + 1, sizeof(Check));
    if (node->checks == NULL) return PyErr_NoMemory(), -1;
    for (int lasting = LASTS_NEVER; lasting <= LASTS_WITH_DICT; lasting++) {
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *spec = PyTuple_GET_ITEM(specs, i);
            if (PyLong_AsLong(PyTuple_GetItem(spec, 1)) != lasting) continue;
            if (check_parse(&node->checks[node->n_checks++], spec) < 0) return -1;
        }
        if (lasting == LASTS_NEVER) node->n_live_checks = node->n_checks;
        if (lasting == LASTS_WITH_VALUE) node->n_value_checks = node->n_checks;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int parse_children(Node *node, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    node->children = PyMem_Calloc((size_t)count + 1, sizeof(Node));
    if (node->children == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        node->n_children++;
        if (node_parse(&node->children[i], PyTuple_GET_ITEM(specs, i)) < 0) return -1;
    }
    return 0;
}

/* (access, key, index, slot, number_only, checks, live children first, number of live children) */
int node_parse(Node *node, PyObject *spec) {
    int access, index, slot, number_only, n_live;
    PyObject *key, *checks, *children;
    if (!PyArg_ParseTuple(spec, "iOiipO!O!i", &access, &key, &index, &slot, &number_only, &PyTuple_Type, &checks,
                          &PyTuple_Type, &children, &n_live))
        return -1;
    if (access < 0 || access >= ACCESS_COUNT) {
        PyErr_SetString(PyExc_ValueError, "unknown access");
        return -1;
    }
    node->access = (uint8_t)access;
    node->index = index;
    node->slot = slot;
    node->number_only = (uint8_t)number_only;
    node->key = Py_NewRef(key);
    node->hash = -1;
    if (PyUnicode_CheckExact(key)) node->hash = PyObject_Hash(key);
    node->n_live_children = n_live;
    if (parse_checks(node, checks) < 0) return -1;
    return parse_children(node, children);
}

void node_clear(Node *node) {
    for (int i = 0; i < node->n_checks; i++) check_clear(&node->checks[i]);
    for (int i = 0; i < node->n_children; i++) node_clear(&node->children[i]);
    PyMem_Free(node->checks);
    PyMem_Free(node->children);
    node->checks = NULL;
    node->children = NULL;
    node->n_checks = node->n_children = 0;
    Py_CLEAR(node->key);
    Py_CLEAR(node->type);
}

int node_traverse(Node *node, visitproc visit, void *arg) {
    Py_VISIT(node->key);
    Py_VISIT(node->type);
    for (int i = 0; i < node->n_checks; i++) {
        Py_VISIT(node->checks[i].obj);
        if (node->checks[i].tensor != NULL) {
            int r = tensor_traverse(node->checks[i].tensor, visit, arg);
            if (r) return r;
        }
    }
    for (int i = 0; i < node->n_children; i++) {
        int r = node_traverse(&node->children[i], visit, arg);
        if (r) return r;
    }
    return 0;
}
