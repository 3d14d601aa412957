/* Making a plan: where the walk starts, the roots of a call, and what is settled when it is over. */
#include "plan_making.h"

/* Whether checking the value of a root that is new at every call runs no user code: arguments, *args and **kwargs. */
static int is_shallow(const Node *node) {
    int is_tuple = 0, is_dict = 0;
    for (int i = 0; i < node->n_checks; i++)
        if (node->checks[i].op == CHECK_TYPE_IS) {
            is_tuple |= node->checks[i].obj == (PyObject *)&PyTuple_Type;
            is_dict |= node->checks[i].obj == (PyObject *)&PyDict_Type;
        }
    for (int i = 0; i < node->n_checks; i++) {
        const Check *check = &node->checks[i];
        int native = check->op == CHECK_TENSOR ? tensor_check_is_native(check->tensor) : check_is_native(check, NULL);
        native |= is_tuple && check->op == CHECK_LENGTH;
        native |= is_dict && (check->op == CHECK_LENGTH || check->op == CHECK_DICT_KEYS);
        if (!native) return 0;
    }
    for (int i = 0; i < node->n_children; i++) {
        const Node *child = &node->children[i];
        int plain = is_tuple && child->access == ACCESS_ITEM && child->index != INT32_MIN;
        plain |= is_dict && child->access == ACCESS_ITEM && PyUnicode_CheckExact(child->key);
        if (!child->number_only && !(plain && is_shallow(child))) return 0;
    }
    return 1;
}

/* Whether a plan may insist on the very object: one with attributes lives from call to call, an argument tuple does not. */
int root_is_lasting(const Node *root, PyObject *value) {
    if (PyModule_CheckExact(value) || PyType_Check(value)) return 1;
    return root->n_children > 0 && (Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) && instance_dict_place(value) != NULL;
}

static void record_root(Plan *plan, Node *root, const Roots *roots) {
    if (is_shallow(root)) {
        add_entry(plan, ROOT_NODE, NULL, root);
        return;
    }
    int unchanged = 0;
    Seen pending;
    PyObject *value = fetch_root(root, roots, &unchanged, &pending);
    if (value == NULL || !root_is_lasting(root, value)) {
        PyErr_Clear();
        add_late(plan, root, NULL, NULL);
    } else {
        add_entry(plan, ROOT_IS, value, root);
        record_value(plan, root, value, 1);
    }
    Py_XDECREF(value);
}

/* Values whose identity is worth insisting on: the others are read afresh at each call. */
static int is_steady(const Node *root, PyObject *value) {
    return PyFunction_Check(value) || PyCFunction_Check(value) || value == Py_None || PyBool_Check(value) ||
           PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) ||
           root_is_lasting(root, value);
}

static PyObject *namespace_of(const Node *root, const Roots *roots) {
    switch ((Access)root->access) {
    case ACCESS_NAMESPACE:
    case ACCESS_GLOBAL: return roots->globals;
    case ACCESS_BUILTIN: return roots->builtins;
    case ACCESS_MODULE: return PyImport_GetModuleDict();
    default: return NULL;
    }
}

/* The roots that are read from one namespace, all in one block. Returns how many it took; `taken` says which. */
static void record_namespace(Plan *plan, Node *nodes, Py_ssize_t n, const Roots *roots, PyObject *dict, uint8_t *taken) {
    Names names;
    if (dict == NULL || !PyDict_CheckExact(dict)) return;
    if (dict == roots->globals || dict == roots->builtins)
        add_entry(plan, NAMESPACE_IS, dict, dict == roots->globals ? "globals" : NULL);
    names_begin(plan, &names, dict);
    for (Py_ssize_t i = 0; i < n; i++) {
        Node *root = &nodes[i];
        if (taken[i] || namespace_of(root, roots) != dict) continue;
        if (root->access == ACCESS_NAMESPACE) {
            if (!is_about_names(root, dict)) continue;
            names_add_all(plan, &names, root);
            taken[i] = 1;
        } else if (root->seen.value != NULL && is_steady(root, root->seen.value))
            taken[i] = (uint8_t)names_add(plan, &names, root);
    }
    names_end(plan, &names);
}

/* Relations of identity among kept objects hold as long as the plan does; only the others need the objects. */
static void settle_relations(Plan *plan, const Check *relations, Py_ssize_t n_relations, Py_ssize_t n_slots) {
    uint8_t *state = PyMem_Calloc((size_t)n_slots + 1, 1); /* 1: kept, 2: needed */
    plan->skip = PyMem_Calloc((size_t)n_relations + 1, 1);
    if (state == NULL || plan->skip == NULL) {
        plan->failed = 1;
        PyMem_Free(state);
        return;
    }
    for (int i = 0; i < plan->kept.n; i++) state[plan->kept.items[i].slot] |= 1;
    for (Py_ssize_t i = 0; i < n_relations; i++) {
        const Check *check = &relations[i];
        int fixed = check->op == CHECK_SAME || check->op == CHECK_DISTINCT;
        Py_ssize_t count = fixed || check->op == CHECK_PYTHON_MANY ? check->program_length : check->number;
        for (Py_ssize_t j = 0; j < count; j++) fixed = fixed && (state[check->program[j]] & 1);
        plan->skip[i] = (uint8_t)fixed;
        for (Py_ssize_t j = 0; !fixed && j < count; j++) state[check->program[j]] |= 2;
    }
    int n = 0;
    for (int i = 0; i < plan->kept.n; i++)
        if (state[plan->kept.items[i].slot] & 2) plan->kept.items[n++] = plan->kept.items[i];
    plan->kept.n = n;
    PyMem_Free(state);
}

/* An owner's entry says which type the object has. */
static void drop_types_of_owners(Plan *plan) {
    int n = 0;
    for (int i = 0; i < plan->types.n && plan->known != NULL; i++) {
        TypeFact fact = plan->types.items[i];
        const Place *place = place_of(plan, fact.object, OWNER);
        int said = place->pointer != NULL && plan->entries.items[place->entry].what == fact.type;
        if (!said) plan->types.items[n++] = fact;
    }
    if (plan->known != NULL) plan->types.n = n;
}

/* The plan without what only its making needed; NULL if that has failed. */
static Plan *finished(Plan *plan) {
    PyMem_Free(plan->known);
    plan->known = NULL;
    if (!plan->failed) return plan;
    plan_free(plan);
    return NULL;
}

Plan *plan_record(Node *nodes, Py_ssize_t n, const Roots *roots, const Check *relations, Py_ssize_t n_relations,
                  Py_ssize_t n_slots) {
    Plan *plan = PyMem_Calloc(1, sizeof(Plan));
    if (plan == NULL) return NULL;
    uint8_t *taken = PyMem_Calloc((size_t)n + 1, 1);
    if (taken == NULL) plan->failed = 1;
    else {
        PyObject *const spaces[] = {roots->globals, roots->builtins, PyImport_GetModuleDict()};
        for (int i = 0; i < 3; i++) record_namespace(plan, nodes, n, roots, spaces[i], taken);
        for (Py_ssize_t i = 0; i < n; i++)
            if (!taken[i]) record_root(plan, &nodes[i], roots);
        PyMem_Free(taken);
    }
    drop_types_of_owners(plan);
    settle_relations(plan, relations, n_relations, n_slots);
    return finished(plan);
}

static int count_slots(const Node *node) {
    int count = node->slot >= 0;
    for (int i = 0; i < node->n_children; i++) count += count_slots(&node->children[i]);
    return count;
}

Plan *plan_record_reads(Node *nodes, Py_ssize_t n, const Roots *given, int (*passes)(const Node *root)) {
    Plan *plan = PyMem_Calloc(1, sizeof(Plan));
    int count = 0;
    if (plan == NULL) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *value = given->locals[i];
        if (passes(&nodes[i])) continue;
        count += count_slots(&nodes[i]);
        if (root_is_lasting(&nodes[i], value)) {
            add_entry(plan, ROOT_IS, value, &nodes[i]);
            record_value(plan, &nodes[i], value, 1);
        } else plan->failed = 1;
    }
    if (plan->late.n > 0 || plan->entries.n == 0 || plan->kept.n != count) plan->failed = 1;
    return finished(plan);
}
