/* The plan: what a check that found nothing changed has to look at, as a flat list.
 *
 * Recorded after a walk over the tree that passed without finding any change; run instead of the walk from then on. Its
 * pointers are borrowed. That is sound because the list is in order: an entry's objects are alive if every earlier entry
 * holds. It starts from the call's own arguments and globals; a dict with its old version still holds the values it held;
 * versions are never used twice, so not even a new dict at an old address can pass for the old one. What may run user code
 * comes last, with references to the objects it is about.
 *
 *   ROOT self is 0x..a0                     (alive: passed by the caller)
 *   OWNER 0x..a0 has type Net, __dict__ 0x..b0
 *   DICT 0x..b0 has version 1234            (so its _modules is still 0x..c0)
 *   DICT 0x..c0 has version 1300
 *   OWNER ... DICT ...                      (a layer)
 *   TENSOR 0x..d0 matches                   (its weight)
 *   NAMES of dict 0x..e0, version 1400, 2 entries      (a namespace: changes often, rarely in the names that matter;
 *     ITEM_IS 0x..f0 under "relu"                       so a new version means to look at each, and to go on)
 *     CHECK no "len"
 *   LOOKUPS in class 0x..f8, version 77, 3 entries     (the same for what was looked up in a class)
 *     CHECK ...
 */
#include "native.h"

#include "dict_version.h"

typedef enum {
    ROOT_IS, ROOT_NODE, NAMESPACE_IS, OWNER, HAS_TYPE, CLASS, DICT, NAMES, LOOKUPS, ITEM_IS, NUMBER, TYPE, TENSOR, CHECK
} EntryKind;

typedef struct {
    uint32_t kind;
    int32_t guard; /* TYPE, TENSOR, CHECK: whose it is; NAMES, LOOKUPS: how many entries it stands for */
    PyObject *object;
    const void *what; /* OWNER, HAS_TYPE, TYPE: type; TENSOR: facts; CHECK: the check; ROOT_*, NUMBER: the node */
    PyObject **place; /* OWNER: where the object keeps its dict */
    PyObject *dict;   /* OWNER, ITEM_IS: the dict */
    uint64_t version; /* DICT, NAMES: its version; OWNER: its type's; CLASS, LOOKUPS: its own */
} Entry;

/* What may run user code: a check, or a whole sub-tree below a known value. */
typedef struct {
    Node *node; /* NULL: only the check */
    const Check *check;
    PyObject *object; /* NULL: node is a root */
} Late;

typedef struct {
    int32_t slot;
    PyObject *object;
} Kept;

struct Plan {
    Entry *entries;
    Late *late;
    Kept *kept;
    int n_entries, n_late, n_kept, room_entries, room_late, room_kept;
    uint8_t *skip; /* per relation: settled by the pointers alone */
    int failed;    /* recording ran out of memory */
};

/* --- recording --- */

static void *grown(void *items, int n, int *room, size_t size) {
    if (n < *room) return items;
    int more = *room ? *room * 2 : 16;
    void *larger = PyMem_Realloc(items, (size_t)more * size);
    if (larger != NULL) *room = more;
    return larger;
}

static Entry *add(Plan *plan, EntryKind kind, PyObject *object, const void *what) {
    static Entry nowhere;
    Entry *entries = grown(plan->entries, plan->n_entries, &plan->room_entries, sizeof(Entry));
    if (entries == NULL) {
        plan->failed = 1;
        return &nowhere;
    }
    plan->entries = entries;
    Entry *entry = &entries[plan->n_entries++];
    memset(entry, 0, sizeof *entry);
    entry->kind = kind;
    entry->object = object;
    entry->what = what;
    return entry;
}

static void add_late(Plan *plan, Node *node, const Check *check, PyObject *object) {
    Late *late = grown(plan->late, plan->n_late, &plan->room_late, sizeof(Late));
    if (late == NULL) {
        plan->failed = 1;
        return;
    }
    plan->late = late;
    late[plan->n_late++] = (Late){node, check, object};
}

static void keep(Plan *plan, int32_t slot, PyObject *object) {
    if (slot < 0) return;
    Kept *kept = grown(plan->kept, plan->n_kept, &plan->room_kept, sizeof(Kept));
    if (kept == NULL) {
        plan->failed = 1;
        return;
    }
    plan->kept = kept;
    kept[plan->n_kept++] = (Kept){slot, object};
}

static void add_dict(Plan *plan, PyObject *dict, uint64_t version) {
    for (int i = plan->n_entries - 1, back = 0; i >= 0 && back < SEEN_DICTS; i--, back++)
        if (plan->entries[i].kind == DICT && plan->entries[i].object == dict) return;
    add(plan, DICT, dict, NULL)->version = version;
}

static void record_check(Plan *plan, const Check *check, PyObject *value) {
    if (check->op == CHECK_TENSOR && tensor_check_is_native(check->tensor))
        add(plan, TENSOR, value, check->tensor)->guard = check->guard;
    else if (check->op == CHECK_TYPE_IS)
        add(plan, TYPE, value, check->obj)->guard = check->guard;
    else if (check_is_native(check, value))
        add(plan, CHECK, value, check)->guard = check->guard;
    else
        add_late(plan, NULL, check, value);
}

/* The object still has its type, its type's version and its dict. 0: not expressible. */
static int record_owner(Plan *plan, const Node *child, PyObject *value, PyObject **dict) {
    PyObject **place = instance_dict_place(value);
    if (place == NULL || *place == NULL || !PyDict_CheckExact(*place)) return 0;
    if (Py_TYPE(value) != child->type || type_version(child->type) != child->type_version) return 0;
    *dict = *place;
    for (int i = plan->n_entries - 1, back = 0; i >= 0 && back < 2 * SEEN_DICTS; i--, back++)
        if (plan->entries[i].kind == OWNER && plan->entries[i].object == value) return 1;
    Entry *entry = add(plan, OWNER, value, child->type);
    entry->place = place;
    entry->dict = *place;
    entry->version = child->type_version;
    return 1;
}

static void record_value(Plan *plan, Node *node, PyObject *value, int fresh);
static void record_child(Plan *plan, Node *child, PyObject *value);
static void record_known(Plan *plan, Node *node);

/* The child's value is what it read before through dicts, the first of which is `first`. */
static int record_seen(Plan *plan, Node *child, PyObject *first) {
    const Seen *seen = &child->seen;
    if (seen->value == NULL || seen->n == 0 || seen->dict[0] != first) return 0;
    for (int i = 0; i < seen->n; i++)
        if (dict_version(seen->dict[i]) != seen->version[i]) return 0;
    for (int i = 0; i < seen->n; i++) add_dict(plan, seen->dict[i], seen->version[i]);
    record_value(plan, child, seen->value, 0);
    return 1;
}

/* A class attribute, found on the class itself or through an instance that does not hide it. */
static int record_class_value(Plan *plan, Node *child, PyObject *value) {
    PyObject *dict;
    if (child->attr_mode == ATTR_OF_CLASS) {
        if ((PyObject *)child->type != value || type_version(child->type) != child->type_version) return 0;
        add(plan, CLASS, value, child->type)->version = child->type_version;
    } else {
        if (!record_owner(plan, child, value, &dict)) return 0;
        if (!PyUnicode_CheckExact(child->key) || _PyDict_GetItem_KnownHash(dict, child->key, child->hash) != NULL) return 0;
        add_dict(plan, dict, dict_version(dict));
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
    names->block = plan->n_entries;
    add(plan, NAMES, dict, NULL)->version = dict_version(dict);
}

/* What hangs below the names comes after the block, since it is looked at every time. */
static void names_end(Plan *plan, Names *names) {
    if (plan->failed) return;
    int size = plan->n_entries - names->block - 1;
    if (size == 0) plan->n_entries--;
    else plan->entries[names->block].guard = size;
    for (int i = 0; i < names->n; i++) record_value(plan, names->nodes[i], names->nodes[i]->seen.value, 0);
}

/* The node's value is what its dict held under its name when it was checked. 0: that is not known. */
static int names_add(Plan *plan, Names *names, Node *node) {
    const Seen *seen = &node->seen;
    if (seen->value == NULL || seen->n != 1 || seen->dict[0] != names->dict) return 0;
    if (seen->version[0] != dict_version(names->dict)) return 0;
    if (names->n == (int)(sizeof names->nodes / sizeof *names->nodes)) {
        names_end(plan, names);
        names_begin(plan, names, names->dict);
    }
    add(plan, ITEM_IS, seen->value, node)->dict = names->dict;
    for (int i = node->n_live_checks; i < node->n_value_checks; i++) record_check(plan, &node->checks[i], seen->value);
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
    for (int i = 0; i < node->n_checks; i++) record_check(plan, &node->checks[i], names->dict);
    for (int i = 0; i < node->n_children; i++)
        if (!names_add(plan, names, &node->children[i])) add_late(plan, &node->children[i], NULL, names->dict);
}

/* What hangs below a Python module. */
static void record_module_children(Plan *plan, Node *node, PyObject *module) {
    Names names;
    PyObject *dict = PyModule_GetDict(module);
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
    int block = plan->n_entries, size = 0;
    unsigned int version = PyType_Check(value) ? type_version((PyTypeObject *)value) : 0;
    if (version != 0) add(plan, LOOKUPS, value, NULL)->version = version;
    for (int i = 0; i < node->n_checks && version != 0; i++)
        if (is_about_a_class(&node->checks[i])) record_check(plan, &node->checks[i], value), size++;
    if (plan->failed) return;
    if (version != 0 && size == 0) plan->n_entries--;
    if (size > 0) plan->entries[block].guard = size;
    for (int i = 0; i < node->n_checks; i++)
        if (version == 0 || !is_about_a_class(&node->checks[i])) record_check(plan, &node->checks[i], value);
    if (PyModule_CheckExact(value)) record_module_children(plan, node, value);
    else
        for (int i = 0; i < node->n_children; i++) record_child(plan, &node->children[i], value);
    keep(plan, node->slot, value);
}

static void record_child(Plan *plan, Node *child, PyObject *value) {
    PyObject *dict;
    int64_t number;
    if (child->access == ACCESS_KNOWN) {
        record_known(plan, child);
        return;
    }
    switch ((Access)child->access) {
    case ACCESS_ITEM:
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

/* `fresh`: the value is not known to have been alive since it was last checked, so nothing about it is taken over. */
static void record_value(Plan *plan, Node *node, PyObject *value, int fresh) {
    int is_dict = PyDict_CheckExact(value), settled = is_dict && node->ok_dict == value;
    if (is_dict) settled = settled && node->ok_version == dict_version(value);
    if (settled && (node->n_children > 0 || node->n_checks > node->n_value_checks))
        add_dict(plan, value, node->ok_version);
    int until = fresh ? node->n_value_checks : node->n_live_checks;
    for (int i = 0; i < until; i++) record_check(plan, &node->checks[i], value);
    if (!settled)
        for (int i = node->n_value_checks; i < node->n_checks; i++) record_check(plan, &node->checks[i], value);
    int count = settled ? node->n_live_children : node->n_children;
    if (PyModule_CheckExact(value)) record_module_children(plan, node, value);
    else
        for (int i = 0; i < count; i++) record_child(plan, &node->children[i], value);
    keep(plan, node->slot, value);
}

/* A root whose own value, not what hangs below it, is what matters: read afresh at each call. */
static int is_shallow(const Node *node) {
    for (int i = 0; i < node->n_checks; i++) {
        const Check *check = &node->checks[i];
        int native = check->op == CHECK_TENSOR ? tensor_check_is_native(check->tensor) : check_is_native(check, NULL);
        if (!native) return 0;
    }
    for (int i = 0; i < node->n_children; i++)
        if (!node->children[i].number_only) return 0;
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
    for (int i = 0; i < plan->n_kept; i++) state[plan->kept[i].slot] |= 1;
    for (Py_ssize_t i = 0; i < n_relations; i++) {
        const Check *check = &relations[i];
        int fixed = check->op == CHECK_SAME || check->op == CHECK_DISTINCT;
        Py_ssize_t count = fixed || check->op == CHECK_PYTHON_MANY ? check->program_length : check->number;
        for (Py_ssize_t j = 0; j < count; j++) fixed = fixed && (state[check->program[j]] & 1);
        plan->skip[i] = (uint8_t)fixed;
        for (Py_ssize_t j = 0; !fixed && j < count; j++) state[check->program[j]] |= 2;
    }
    int n = 0;
    for (int i = 0; i < plan->n_kept; i++)
        if (state[plan->kept[i].slot] & 2) plan->kept[n++] = plan->kept[i];
    plan->n_kept = n;
    PyMem_Free(state);
}

void plan_free(Plan *plan) {
    if (plan == NULL) return;
    PyMem_Free(plan->entries);
    PyMem_Free(plan->late);
    PyMem_Free(plan->kept);
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
    settle_relations(plan, relations, n_relations, n_slots);
    if (plan->failed) {
        plan_free(plan);
        return NULL;
    }
    return plan;
}

/* --- running --- */

static inline int stays(const Entry *entry) {
    PyTypeObject *type = (PyTypeObject *)entry->what;
    return Py_TYPE(entry->object) == type && type_version(type) == (unsigned int)entry->version &&
           *entry->place == entry->dict;
}

static int root_is(const Entry *entry, const Roots *roots) {
    int unchanged;
    Seen pending;
    PyObject *value = fetch_root((Node *)entry->what, roots, &unchanged, &pending);
    Py_XDECREF(value); /* only compared; its owner holds it */
    return value == entry->object;
}

static int item_is(const Entry *entry) {
    const Node *node = entry->what;
    PyObject *value = PyDict_GetItemWithError(entry->dict, node->key);
    if (value == NULL) PyErr_Clear();
    return value == entry->object;
}

static PlanOutcome run_entry(const Entry *entry, const Roots *roots, Run *run) {
    switch ((EntryKind)entry->kind) {
    case NAMESPACE_IS:
        return entry->object == (entry->what != NULL ? roots->globals : roots->builtins) ? PLAN_HOLDS : PLAN_STALE;
    case ROOT_IS: return root_is(entry, roots) ? PLAN_HOLDS : PLAN_STALE;
    case OWNER: return stays(entry) ? PLAN_HOLDS : PLAN_STALE;
    case DICT: return dict_version(entry->object) == entry->version ? PLAN_HOLDS : PLAN_STALE;
    case HAS_TYPE: return (const void *)Py_TYPE(entry->object) == entry->what ? PLAN_HOLDS : PLAN_STALE;
    case CLASS: return type_version((PyTypeObject *)entry->object) == (unsigned int)entry->version ? PLAN_HOLDS : PLAN_STALE;
    case ITEM_IS: return item_is(entry) ? PLAN_HOLDS : PLAN_STALE;
    case NUMBER: return number_child((Node *)entry->what, entry->object, run) ? PLAN_HOLDS : PLAN_STALE;
    case ROOT_NODE: return root_passes((Node *)entry->what, roots, run) ? PLAN_HOLDS : PLAN_FAILS;
    case TYPE: return (const void *)Py_TYPE(entry->object) == entry->what ? PLAN_HOLDS : PLAN_FAILS;
    case TENSOR: return tensor_holds(entry->what, entry->object) ? PLAN_HOLDS : PLAN_FAILS;
    case CHECK: return check_value(entry->what, entry->object) ? PLAN_HOLDS : PLAN_FAILS;
    case NAMES:
    case LOOKUPS: break; /* plan_run's */
    }
    return PLAN_STALE;
}

static int late_passes(const Late *late, const Roots *roots, Run *run) {
    if (late->node == NULL) return check_value(late->check, late->object) ? 1 : fails(run, late->check->guard);
    return late->object == NULL ? root_passes(late->node, roots, run) : child_passes(late->node, late->object, run);
}

/* All entries hold, so every object is alive now; user code might change that, hence the references. */
static PlanOutcome run_all_late(const Plan *plan, const Roots *roots, Run *run) {
    int n = plan->n_late, holds = 1;
    for (int i = 0; i < n; i++) Py_XINCREF(plan->late[i].object);
    for (int i = 0; i < n && holds; i++) holds = late_passes(&plan->late[i], roots, run);
    for (int i = 0; i < n; i++) Py_XDECREF(plan->late[i].object);
    return holds ? PLAN_HOLDS : PLAN_FAILS;
}

static PlanOutcome run_relations(const Plan *plan, const Check *relations, Py_ssize_t n, Run *run) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (!plan->skip[i] && !check_many(&relations[i], run->slots)) {
            fails(run, relations[i].guard);
            return PLAN_FAILS;
        }
    return PLAN_HOLDS;
}

/* The version of what a block of entries is about; while it is the recorded one, they hold. */
static uint64_t block_version(const Entry *entry) {
    return entry->kind == NAMES ? dict_version(entry->object) : type_version((PyTypeObject *)entry->object);
}

/* The entries of a block whose dict or class has changed; if they hold all the same, its version now will do. */
static PlanOutcome run_block(Entry *block, const Roots *roots, Run *run) {
    for (Entry *entry = block + 1; entry <= block + block->guard; entry++) {
        PlanOutcome outcome = run_entry(entry, roots, run);
        if (outcome == PLAN_HOLDS) continue;
        if (outcome == PLAN_FAILS) run->failed = entry->guard;
        return outcome;
    }
    uint64_t version = block_version(block);
    if (version != 0) block->version = version;
    return PLAN_HOLDS;
}

static PlanOutcome run_entries(Plan *plan, const Roots *roots, Run *run) {
    Entry *end = plan->entries + plan->n_entries;
    for (Entry *entry = plan->entries; entry < end; entry++) {
        if (entry->kind == NAMES || entry->kind == LOOKUPS) {
            if (block_version(entry) != entry->version) {
                PlanOutcome outcome = run_block(entry, roots, run);
                if (outcome != PLAN_HOLDS) return outcome;
            }
            entry += entry->guard;
            continue;
        }
        PlanOutcome outcome = run_entry(entry, roots, run);
        if (outcome == PLAN_HOLDS) continue;
        if (outcome == PLAN_FAILS && entry->kind >= TYPE) run->failed = entry->guard;
        return outcome;
    }
    return PLAN_HOLDS;
}

PlanOutcome plan_run(Plan *plan, const Roots *roots, const Check *relations, Py_ssize_t n_relations, Run *run) {
    PlanOutcome outcome = run_entries(plan, roots, run);
    if (outcome != PLAN_HOLDS) return outcome;
    for (int i = 0; i < plan->n_kept; i++) Py_XSETREF(run->slots[plan->kept[i].slot].obj, Py_NewRef(plan->kept[i].object));
    if (plan->n_late > 0) outcome = run_all_late(plan, roots, run);
    return outcome == PLAN_HOLDS ? run_relations(plan, relations, n_relations, run) : outcome;
}
