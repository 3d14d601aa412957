/* Which of several evaluators may hold for a call, told by one fact: a value that most of them expect to be different.
 *
 *   three specialisations expect `mode` to be "train", "eval", "export": a look at `mode` leaves one of them to check
 *
 * What is compared are fingerprints: of a constant its type and value, of a tensor its type, dtype and sizes, of anything
 * else its type. An evaluator that expects none in particular is always a candidate, so that none that would hold is
 * missed. Reading the value runs no user code: where that is not sure, all are candidates. */
#include "native.h"

#include "dict_version.h"

enum { DEPTH = 4, MOST = 64, PATHS = 128 };

struct GuardIndex {
    int depth, n;
    Node *path[DEPTH]; /* nodes of the first evaluator, which must outlive the index */
    uint64_t expected[MOST];
};

typedef struct {
    Node *node[DEPTH];
    int depth;
} Path;

/* --- fingerprints; 0 stands for any value --- */

static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ (b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2))) * 0xFF51AFD7ED558CCDu;
    return (h ^ (h >> 32)) | 1;
}

static uint64_t of_type(PyTypeObject *type) { return mixed((uint64_t)(uintptr_t)type, 1); }

static int is_constant_type(PyTypeObject *type) {
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyFloat_Type ||
           type == &PyBool_Type || type == Py_TYPE(Py_None);
}

static uint64_t of_float(double value) {
    uint64_t bits = 1;
    if (value == value) memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t of_value(PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyFloat_Type) return mixed(of_type(type), of_float(PyFloat_AS_DOUBLE(value)));
    if (is_constant_type(type)) return mixed(of_type(type), (uint64_t)PyObject_Hash(value));
    if (tensor_is_plain(value)) return mixed(of_type(type), tensor_fingerprint(value));
    return of_type(type);
}

static uint64_t of_check(const Check *check) {
    switch ((CheckOp)check->op) {
    case CHECK_EQUALS: return of_value(check->obj);
    case CHECK_IS_OBJECT: return is_constant_type(Py_TYPE(check->obj)) ? of_value(check->obj) : 0;
    case CHECK_TENSOR: {
        uint64_t known = tensor_facts_fingerprint(check->tensor);
        return known == 0 ? 0 : mixed(of_type(tensor_facts_type(check->tensor)), known);
    }
    case CHECK_TYPE_IS: {
        PyTypeObject *type = (PyTypeObject *)check->obj;
        return is_constant_type(type) || tensor_is_plain_type(type) ? 0 : of_type(type);
    }
    default: return 0;
    }
}

/* What a node's value must have for its checks to hold: the most that any of them says. */
static uint64_t of_node(const Node *node) {
    uint64_t found = 0;
    for (int i = 0; i < node->n_checks; i++) {
        uint64_t one = of_check(&node->checks[i]);
        if (one != 0 && (found == 0 || node->checks[i].op != CHECK_TYPE_IS)) found = one;
    }
    return found;
}

/* --- the same place in several evaluators --- */

static int same_step(const Node *a, const Node *b) {
    if (a->access != b->access || a->index != b->index) return 0;
    return a->key == b->key || (a->key != NULL && b->key != NULL && constants_equal(a->key, b->key));
}

static int is_root_step(const Node *node) {
    return (node->access == ACCESS_LOCAL && node->index >= 0) || node->access == ACCESS_GLOBAL ||
           node->access == ACCESS_CLOSURE;
}

static int is_step(const Node *node) { return node->access == ACCESS_ITEM || node->access == ACCESS_INSTANCE_DICT; }

static uint64_t expected_at(Node *roots, Py_ssize_t n_roots, const Path *path) {
    Node *level = roots;
    Py_ssize_t n = n_roots;
    for (int depth = 0;; depth++) {
        Node *found = NULL;
        for (Py_ssize_t i = 0; i < n && found == NULL; i++)
            if (same_step(&level[i], path->node[depth])) found = &level[i];
        if (found == NULL) return 0;
        if (depth == path->depth - 1) return of_node(found);
        level = found->children;
        n = found->n_children;
    }
}

static int collect(Node *node, Path *path, Path *found, int n) {
    path->node[path->depth++] = node;
    if (n < PATHS && of_node(node) != 0) found[n++] = *path;
    for (int i = 0; i < node->n_children && path->depth < DEPTH && n < PATHS; i++)
        if (is_step(&node->children[i])) n = collect(&node->children[i], path, found, n);
    path->depth--;
    return n;
}

/* How many pairs of evaluators the values tell apart. */
static int pairs_apart(const uint64_t *expected, int n) {
    int pairs = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) pairs += expected[i] != 0 && expected[j] != 0 && expected[i] != expected[j];
    return pairs;
}

static int choose(GuardIndex *index, PyObject *const *evaluators, const Path *paths, int n_paths) {
    int best = 0;
    for (int p = 0; p < n_paths; p++) {
        uint64_t expected[MOST];
        for (int i = 0; i < index->n; i++) {
            Py_ssize_t n_roots;
            Node *roots = evaluator_roots(evaluators[i], &n_roots);
            expected[i] = expected_at(roots, n_roots, &paths[p]);
        }
        int pairs = pairs_apart(expected, index->n);
        if (pairs <= best) continue;
        best = pairs;
        index->depth = paths[p].depth;
        memcpy(index->path, paths[p].node, sizeof index->path);
        memcpy(index->expected, expected, sizeof expected);
    }
    return best;
}

GuardIndex *index_build(PyObject *const *evaluators, int n) {
    Py_ssize_t n_roots;
    if (n < 2 || n > MOST) return NULL;
    GuardIndex *index = PyMem_Calloc(1, sizeof *index);
    Path *paths = PyMem_Calloc(PATHS, sizeof *paths), path = {{NULL}, 0};
    int n_paths = 0, chosen = 0;
    if (index != NULL && paths != NULL) {
        Node *roots = evaluator_roots(evaluators[0], &n_roots);
        for (Py_ssize_t i = 0; i < n_roots && n_paths < PATHS; i++)
            if (is_root_step(&roots[i])) n_paths = collect(&roots[i], &path, paths, n_paths);
        index->n = n;
        chosen = choose(index, evaluators, paths, n_paths);
    }
    PyMem_Free(paths);
    if (chosen > 0) return index;
    PyMem_Free(index);
    return NULL;
}

void index_free(GuardIndex *index) { PyMem_Free(index); }

/* --- a call --- */

/* Borrowed or NULL; runs no user code. */
static PyObject *step(const Node *node, PyObject *value) {
    if (node->access == ACCESS_INSTANCE_DICT) {
        PyObject **place = instance_dict_place(value);
        int known = node->attr_mode == ATTR_INSTANCE && node->type == Py_TYPE(value) && node->type_version != 0 &&
                    type_version(node->type) == node->type_version;
        return known && place != NULL ? *place : NULL;
    }
    if (PyDict_CheckExact(value) && is_constant_type(Py_TYPE(node->key))) {
        PyObject *found = PyDict_GetItemWithError(value, node->key);
        if (found == NULL) PyErr_Clear();
        return found;
    }
    Py_ssize_t at = node->index;
    if (at == INT32_MIN || !(PyTuple_CheckExact(value) || PyList_CheckExact(value))) return NULL;
    if (at < 0) at += Py_SIZE(value);
    if (at < 0 || at >= Py_SIZE(value)) return NULL;
    return PyTuple_CheckExact(value) ? PyTuple_GET_ITEM(value, at) : PyList_GET_ITEM(value, at);
}

static PyObject *start(const Node *node, PyObject **locals, Py_ssize_t n_locals, PyFunctionObject *function) {
    switch ((Access)node->access) {
    case ACCESS_LOCAL: return node->index < n_locals ? locals[node->index] : NULL;
    case ACCESS_GLOBAL: return PyDict_GetItem(function->func_globals, node->key);
    case ACCESS_CLOSURE:
        if (function->func_closure == NULL || node->index < 0 || node->index >= PyTuple_GET_SIZE(function->func_closure))
            return NULL;
        return PyCell_GET(PyTuple_GET_ITEM(function->func_closure, node->index));
    default: return NULL;
    }
}

uint64_t index_candidates(const GuardIndex *index, PyObject **locals, Py_ssize_t n_locals, PyObject *function) {
    PyObject *value = start(index->path[0], locals, n_locals, (PyFunctionObject *)function);
    for (int i = 1; i < index->depth && value != NULL; i++) value = step(index->path[i], value);
    if (value == NULL) return UINT64_MAX;
    uint64_t actual = of_value(value), mask = 0;
    for (int i = 0; i < index->n; i++)
        mask |= (uint64_t)(index->expected[i] == 0 || index->expected[i] == actual) << i;
    return mask;
}
