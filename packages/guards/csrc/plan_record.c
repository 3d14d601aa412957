/* Making a plan: the same walk as walk.c, noting what it relies on instead of checking it. See plan.h. */
#include "plan.h"

#include "dict_version.h"

static int grown(void **items, int n, int *room, size_t size) {
    if (n < *room) return 1;
    int more = *room ? *room * 2 : 16;
    void *larger = PyMem_Realloc(*items, (size_t)more * size);
    if (larger == NULL) return 0;
    *items = larger;
    *room = more;
    return 1;
}

/* A place at the end of an array, zeroed; when memory is short a dummy, and the plan has failed. */
#define APPEND(plan, array, dummy) \
    (grown((void **)&(plan)->array.items, (plan)->array.n, &(plan)->array.room, sizeof *(plan)->array.items) \
         ? (memset(&(plan)->array.items[(plan)->array.n], 0, sizeof *(plan)->array.items), \
            &(plan)->array.items[(plan)->array.n++]) \
         : ((plan)->failed = 1, (dummy)))

static Entry *add(Plan *plan, EntryKind kind, PyObject *object, const void *what) {
    static Entry nowhere;
    Entry *entry = APPEND(plan, entries, &nowhere);
    entry->kind = kind;
    entry->object = object;
    entry->what = what;
    return entry;
}

static void add_late(Plan *plan, Node *node, const Check *check, PyObject *object) {
    static Late nowhere;
    *APPEND(plan, late, &nowhere) = (Late){node, check, object};
}

static void keep(Plan *plan, int32_t slot, PyObject *object) {
    static Kept nowhere;
    if (slot >= 0) *APPEND(plan, kept, &nowhere) = (Kept){slot, object};
}

/* --- which entry is about what: open addressing --- */

static Place *place_of(Plan *plan, const void *pointer, int kind) {
    size_t mask = plan->known_size - 1;
    size_t at = (((uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15u >> 20) + (size_t)kind;
    for (at &= mask; plan->known[at].pointer != NULL; at = (at + 1) & mask)
        if (plan->known[at].pointer == pointer && plan->known[at].kind == kind) break;
    return &plan->known[at];
}

static int make_room(Plan *plan) {
    if (2 * (plan->n_known + 1) < plan->known_size) return 1;
    size_t old_size = plan->known_size;
    Place *old = plan->known;
    plan->known_size = old_size ? old_size * 4 : 256;
    plan->known = PyMem_Calloc(plan->known_size, sizeof(Place));
    if (plan->known == NULL) {
        plan->known = old;
        plan->known_size = old_size;
        return 0;
    }
    for (size_t i = 0; i < old_size; i++)
        if (old[i].pointer != NULL) *place_of(plan, old[i].pointer, old[i].kind) = old[i];
    PyMem_Free(old);
    return 1;
}

/* The index of the entry about `pointer`, or -1: then the next entry that is added is taken to be the one. */
static int known_entry(Plan *plan, const void *pointer, EntryKind kind) {
    if (!make_room(plan)) {
        plan->failed = 1;
        return -1;
    }
    Place *place = place_of(plan, pointer, kind);
    if (place->pointer != NULL) return place->entry;
    *place = (Place){pointer, kind, plan->entries.n};
    plan->n_known++;
    return -1;
}

/* --- dicts --- */

enum { NOT_AGAIN = -1, FACTS_IN_TURN = 64 };

/* The dict keeps its version: returns the index of the entry that says so. An owner's entry may do it on the side. */
static int add_dict(Plan *plan, PyObject *dict, uint64_t version) {
    int found = known_entry(plan, dict, DICT);
    if (found >= 0) {
        plan->entries.items[found].version = version;
        return found;
    }
    add(plan, DICT, dict, NULL)->version = version;
    return plan->entries.n - 1;
}

/* What to look at again when the dict's version differs. */
static void add_again(Plan *plan, int entry, Node *node, PyObject *value) {
    static Again nowhere;
    if (plan->failed || plan->entries.items[entry].again == NOT_AGAIN) return;
    *APPEND(plan, again, &nowhere) = (Again){node, value, plan->entries.items[entry].again};
    plan->entries.items[entry].again = plan->again.n;
}

static void never_again(Plan *plan, int entry) {
    if (!plan->failed) plan->entries.items[entry].again = NOT_AGAIN;
}

/* Whether what was settled about a dict can be looked at again by its names alone. */
static int is_simple(const Node *node, PyObject *dict) {
    for (int i = node->n_value_checks; i < node->n_checks; i++)
        if (!check_is_native(&node->checks[i], dict)) return 0;
    for (int i = node->n_live_children; i < node->n_children; i++)
        if (node->children[i].access != ACCESS_ITEM) return 0;
    return 1;
}

/* --- facts about single values --- */

static int32_t small_size(const Check *check) {
    return check->number >= 0 && check->number < INT32_MAX ? (int32_t)check->number : -1;
}

/* Facts equal to those of an earlier tensor are read from the same memory: a model's layers are alike. */
static const TensorFacts *shared_facts(const Plan *plan, const TensorFacts *facts) {
    for (int i = plan->tensors.n - 1, back = 0; i >= 0 && back < FACTS_IN_TURN; i--, back++)
        if (tensor_facts_equal(plan->tensors.items[i].facts, facts)) return plan->tensors.items[i].facts;
    return facts;
}

static void record_tensor(Plan *plan, const Check *check, PyObject *value) {
    static TensorFact nowhere;
    const TensorFacts *facts = shared_facts(plan, check->tensor);
    *APPEND(plan, tensors, &nowhere) = (TensorFact){value, facts, check->guard};
}

static void record_check(Plan *plan, const Check *check, PyObject *value) {
    static TypeFact no_type;
    static SizeFact no_size;
    static OtherFact no_fact;
    if (check->op == CHECK_TENSOR && tensor_check_is_native(check->tensor))
        record_tensor(plan, check, value);
    else if (check->op == CHECK_TYPE_IS)
        *APPEND(plan, types, &no_type) = (TypeFact){value, (PyTypeObject *)check->obj, check->guard};
    else if (check->op == CHECK_LENGTH && check_is_native(check, value))
        *APPEND(plan, sizes, &no_size) = (SizeFact){value, small_size(check), check->guard};
    else if (check_is_native(check, value))
        *APPEND(plan, others, &no_fact) = (OtherFact){value, check};
    else
        add_late(plan, NULL, check, value);
}

/* As part of a block of entries, which stands or falls with it. */
static void record_check_in_block(Plan *plan, const Check *check, PyObject *value) {
    if (check_is_native(check, value)) add(plan, CHECK, value, check)->guard = check->guard;
    else add_late(plan, NULL, check, value);
}

/* --- the walk --- */

static void record_value(Plan *plan, Node *node, PyObject *value, int fresh);
static void record_child(Plan *plan, Node *child, PyObject *value, int fresh);
static void record_known(Plan *plan, Node *node);

/* The object still has its type, its type's version and its dict. 0: not expressible. */
static int record_owner(Plan *plan, const Node *child, PyObject *value, PyObject **dict) {
    PyObject **place = instance_dict_place(value);
    if (place == NULL || *place == NULL || !PyDict_CheckExact(*place)) return 0;
    if (Py_TYPE(value) != child->type || type_version(child->type) != child->type_version) return 0;
    *dict = *place;
    if (known_entry(plan, child->type, CLASS) < 0)
        add(plan, CLASS, (PyObject *)child->type, NULL)->version = child->type_version;
    if (known_entry(plan, value, OWNER) >= 0) return 1;
    known_entry(plan, *dict, DICT);
    Entry *entry = add(plan, OWNER, value, child->type);
    entry->place = place;
    entry->dict = *dict;
    return 1;
}

/* Whether the plan takes a tuple's content over as long as the tuple is sure to be the same: the same address is not
 * enough, a new tuple may have it. */
static int is_pinned(const Node *node, PyObject *value) {
    return PyTuple_CheckExact(value) && (node->n_children > 0 || node->n_checks > node->n_value_checks);
}

/* The child's value is what it read before through dicts, the first of which is `first`. */
static int record_seen(Plan *plan, Node *child, PyObject *first) {
    const Seen *seen = &child->seen;
    if (seen->value == NULL || seen->n == 0 || seen->dict[0] != first) return 0;
    for (int i = 0; i < seen->n; i++)
        if (dict_version(seen->dict[i]) != seen->version[i]) return 0;
    int again = seen->n == 1 && child->access != ACCESS_DICT_KEY && !is_pinned(child, seen->value);
    for (int i = 0; i < seen->n; i++) {
        int entry = add_dict(plan, seen->dict[i], seen->version[i]);
        if (again) add_again(plan, entry, child, seen->value);
        else never_again(plan, entry);
    }
    record_value(plan, child, seen->value, 0);
    return 1;
}

/* A class attribute, found on the class itself or through an instance that does not hide it. */
static int record_class_value(Plan *plan, Node *child, PyObject *value) {
    PyObject *dict;
    if (child->attr_mode == ATTR_OF_CLASS) {
        if ((PyObject *)child->type != value || type_version(child->type) != child->type_version) return 0;
        if (known_entry(plan, value, CLASS) < 0) add(plan, CLASS, value, NULL)->version = child->type_version;
    } else {
        if (!record_owner(plan, child, value, &dict)) return 0;
        if (!PyUnicode_CheckExact(child->key) || _PyDict_GetItem_KnownHash(dict, child->key, child->hash) != NULL) return 0;
        uint64_t version = dict_version(dict);
        if (version == 0) return 0;
        never_again(plan, add_dict(plan, dict, version));
    }
    record_value(plan, child, child->class_value, 1);
    return 1;
}

/* --- namespaces: only the names that matter must stay as they are --- */

typedef struct {
    PyObject *dict;
    int block;   /* index of the NAMES entry */
    Node *nodes[64]; /* in the block; further ones get a block of their own */
    int n;
} Names;

static void names_begin(Plan *plan, Names *names, PyObject *dict) {
    names->dict = dict;
    names->n = 0;
    names->block = plan->entries.n;
    add(plan, NAMES, dict, NULL)->version = dict_version(dict);
}

/* What hangs below the names comes after the block, since it is looked at every time. */
static void names_end(Plan *plan, Names *names) {
    if (plan->failed) return;
    int size = plan->entries.n - names->block - 1;
    if (size == 0) plan->entries.n--;
    else plan->entries.items[names->block].guard = size;
    for (int i = 0; i < names->n; i++) record_value(plan, names->nodes[i], names->nodes[i]->seen.value, 0);
}

/* The node's value is what its dict held under its name when it was checked. 0: that is not known. */
static int names_add(Plan *plan, Names *names, Node *node) {
    const Seen *seen = &node->seen;
    if (seen->value == NULL || seen->n != 1 || seen->dict[0] != names->dict) return 0;
    if (seen->version[0] != dict_version(names->dict) || is_pinned(node, seen->value)) return 0;
    if (names->n == (int)(sizeof names->nodes / sizeof *names->nodes)) {
        names_end(plan, names);
        names_begin(plan, names, names->dict);
    }
    add(plan, ITEM_IS, seen->value, node)->dict = names->dict;
    for (int i = node->n_live_checks; i < node->n_value_checks; i++)
        record_check_in_block(plan, &node->checks[i], seen->value);
    names->nodes[names->n++] = node;
    return 1;
}

static int is_about_a_key(const Check *check) { return check->op == CHECK_KEY_ABSENT || check->op == CHECK_KEY_PRESENT; }

static int is_about_names(const Node *node, PyObject *dict) {
    if (node->slot >= 0 || !PyDict_CheckExact(dict)) return 0;
    for (int i = 0; i < node->n_checks; i++)
        if (!is_about_a_key(&node->checks[i]) || !check_is_native(&node->checks[i], dict)) return 0;
    for (int i = 0; i < node->n_children; i++)
        if (node->children[i].access != ACCESS_ITEM) return 0;
    return 1;
}

/* A node whose value is a namespace's dict: its checks and children join the block. */
static void names_add_all(Plan *plan, Names *names, Node *node) {
    for (int i = 0; i < node->n_checks; i++) record_check_in_block(plan, &node->checks[i], names->dict);
    for (int i = 0; i < node->n_children; i++)
        if (!names_add(plan, names, &node->children[i])) add_late(plan, &node->children[i], NULL, names->dict);
}

/* What hangs below a Python module. */
static void record_module_children(Plan *plan, Node *node, PyObject *module) {
    Names names;
    PyObject *dict = PyModule_GetDict(module);
    add(plan, MODULE_HAS, module, NULL)->dict = dict;
    names_begin(plan, &names, dict);
    for (int i = 0; i < node->n_children; i++) {
        Node *child = &node->children[i];
        if (child->access == ACCESS_KNOWN) continue;
        if (child->access == ACCESS_INSTANCE_DICT && is_about_names(child, dict)) names_add_all(plan, &names, child);
        else if (child->access != ACCESS_ATTR || !names_add(plan, &names, child)) add_late(plan, child, NULL, module);
    }
    names_end(plan, &names);
    for (int i = 0; i < node->n_children; i++)
        if (node->children[i].access == ACCESS_KNOWN) record_known(plan, &node->children[i]);
}

static int is_about_a_class(const Check *check) {
    return check->op == CHECK_CLASS_LOOKUP || check->op == CHECK_CLASS_BASES;
}

/* An object that the node holds. What is looked up in a class stays while the class and its bases do. */
static void record_known(Plan *plan, Node *node) {
    PyObject *value = node->key;
    if (PyDict_CheckExact(value) && is_about_names(node, value)) {
        Names names;
        names_begin(plan, &names, value);
        names_add_all(plan, &names, node);
        names_end(plan, &names);
        return;
    }
    int block = plan->entries.n, size = 0;
    unsigned int version = PyType_Check(value) ? type_version((PyTypeObject *)value) : 0;
    if (version != 0) add(plan, LOOKUPS, value, NULL)->version = version;
    for (int i = 0; i < node->n_checks && version != 0; i++)
        if (is_about_a_class(&node->checks[i])) record_check_in_block(plan, &node->checks[i], value), size++;
    if (plan->failed) return;
    if (version != 0 && size == 0) plan->entries.n--;
    if (size > 0) plan->entries.items[block].guard = size;
    for (int i = 0; i < node->n_checks; i++)
        if (version == 0 || !is_about_a_class(&node->checks[i])) record_check(plan, &node->checks[i], value);
    if (PyModule_CheckExact(value)) record_module_children(plan, node, value);
    else
        for (int i = 0; i < node->n_children; i++) record_child(plan, &node->children[i], value, 0);
    keep(plan, node->slot, value);
}

/* An item of a tuple stays with it; one of a list is looked at. 0: neither. */
static int record_item(Plan *plan, Node *child, PyObject *value, int fresh) {
    Py_ssize_t index = child->index;
    if (index == INT32_MIN || !(PyTuple_CheckExact(value) || PyList_CheckExact(value))) return 0;
    if (index < 0) index += Py_SIZE(value);
    if (index < 0 || index >= Py_SIZE(value)) return 0;
    if (PyTuple_CheckExact(value)) {
        if (!fresh) record_value(plan, child, PyTuple_GET_ITEM(value, index), 0);
        return !fresh;
    }
    PyObject *item = PyList_GET_ITEM(value, index);
    add(plan, ITEM_AT, item, value)->guard = child->index;
    record_value(plan, child, item, 1);
    return 1;
}

static void record_child(Plan *plan, Node *child, PyObject *value, int fresh) {
    PyObject *dict;
    int64_t number;
    switch ((Access)child->access) {
    case ACCESS_KNOWN: record_known(plan, child); return;
    case ACCESS_ITEM:
        if (record_item(plan, child, value, fresh)) return;
        /* fall through */
    case ACCESS_DICT_KEY:
        if (PyDict_CheckExact(value) && record_seen(plan, child, value)) return;
        break;
    case ACCESS_INSTANCE_DICT:
        if (child->attr_mode != ATTR_INSTANCE || child->type == NULL || !record_owner(plan, child, value, &dict)) break;
        record_value(plan, child, dict, 0);
        return;
    case ACCESS_ATTR:
        if (child->attr_mode <= ATTR_SLOW || child->type == NULL) break;
        if (child->attr_mode >= ATTR_CLASS && child->seen.value == NULL) {
            if (record_class_value(plan, child, value)) return;
            break;
        }
        if (child->attr_mode == ATTR_OF_CLASS) break;
        if (!record_owner(plan, child, value, &dict) || !record_seen(plan, child, dict)) break;
        return;
    case ACCESS_TYPE:
        add(plan, HAS_TYPE, value, Py_TYPE(value));
        record_value(plan, child, (PyObject *)Py_TYPE(value), 1);
        return;
    case ACCESS_SIZE:
    case ACCESS_STRIDE:
        if (!child->number_only || !tensor_extent(value, 0, 0, &number)) break;
        add(plan, NUMBER, value, child);
        return;
    default: break;
    }
    add_late(plan, child, NULL, value);
}

/* A tuple's length and what it holds last with it, as a constant's value does. */
static int lasts(const Check *check, PyObject *value) {
    return check->lasting == LASTS_WITH_VALUE || (check->op == CHECK_LENGTH && PyTuple_CheckExact(value));
}

/* `fresh`: the value is not known to have been alive since it was last checked, so nothing about it is taken over. */
static void record_value(Plan *plan, Node *node, PyObject *value, int fresh) {
    int is_dict = PyDict_CheckExact(value), settled = is_dict && node->ok_dict == value;
    if (is_dict) settled = settled && node->ok_version == dict_version(value);
    if (settled && (node->n_children > node->n_live_children || node->n_checks > node->n_value_checks)) {
        int entry = add_dict(plan, value, node->ok_version);
        if (is_simple(node, value)) add_again(plan, entry, node, NULL);
        else never_again(plan, entry);
    }
    int until = settled ? node->n_value_checks : node->n_checks;
    for (int i = 0; i < until; i++)
        if (fresh || !lasts(&node->checks[i], value)) record_check(plan, &node->checks[i], value);
    int count = settled ? node->n_live_children : node->n_children;
    if (PyModule_CheckExact(value)) record_module_children(plan, node, value);
    else
        for (int i = 0; i < count; i++) record_child(plan, &node->children[i], value, fresh);
    keep(plan, node->slot, value);
}

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
        add(plan, ROOT_NODE, NULL, root);
        return;
    }
    int unchanged = 0;
    Seen pending;
    PyObject *value = fetch_root(root, roots, &unchanged, &pending);
    if (value == NULL || !root_is_lasting(root, value)) {
        PyErr_Clear();
        add_late(plan, root, NULL, NULL);
    } else {
        add(plan, ROOT_IS, value, root);
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
        add(plan, NAMESPACE_IS, dict, dict == roots->globals ? "globals" : NULL);
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

void plan_free(Plan *plan) {
    if (plan == NULL) return;
    PyMem_Free(plan->entries.items);
    PyMem_Free(plan->again.items);
    PyMem_Free(plan->sizes.items);
    PyMem_Free(plan->types.items);
    PyMem_Free(plan->tensors.items);
    PyMem_Free(plan->others.items);
    PyMem_Free(plan->late.items);
    PyMem_Free(plan->kept.items);
    PyMem_Free(plan->known);
    PyMem_Free(plan->skip);
    PyMem_Free(plan);
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
    PyMem_Free(plan->known);
    plan->known = NULL;
    if (plan->failed) {
        plan_free(plan);
        return NULL;
    }
    return plan;
}

