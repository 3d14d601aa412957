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
 *   ITEM_IS 0x..e0 in a module's globals    (looked up: a module's globals change often, and rarely the ones that matter)
 */
#include "native.h"

#include "dict_version.h"

typedef enum { ROOT_IS, ROOT_NODE, OWNER, HAS_TYPE, CLASS, DICT, ITEM_IS, NUMBER, TYPE, TENSOR, CHECK } EntryKind;

typedef struct {
    uint32_t kind;
    int32_t guard; /* TYPE, TENSOR, CHECK: whose it is */
    PyObject *object;
    const void *what; /* OWNER, HAS_TYPE, TYPE: type; TENSOR: facts; CHECK: the check; ROOT_*, NUMBER: the node */
    PyObject **place; /* OWNER: where the object keeps its dict */
    PyObject *dict;   /* OWNER, ITEM_IS: the dict */
    uint64_t version; /* DICT, ITEM_IS: its version; OWNER: its type's; CLASS: its own */
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

/* A module's globals: each name by itself. */
static void record_global(Plan *plan, Node *child, PyObject *dict) {
    const Seen *seen = &child->seen;
    if (seen->value == NULL || seen->n != 1 || seen->dict[0] != dict || seen->version[0] != dict_version(dict)) {
        add_late(plan, child, NULL, dict);
        return;
    }
    Entry *entry = add(plan, ITEM_IS, seen->value, child);
    entry->dict = dict;
    entry->version = seen->version[0];
    record_value(plan, child, seen->value, 1);
}

/* What hangs below a Python module. */
static void record_module_child(Plan *plan, Node *child, PyObject *module) {
    PyObject *dict = PyModule_GetDict(module);
    if (child->access == ACCESS_ATTR && child->seen.value != NULL && child->seen.dict[0] == dict) {
        record_global(plan, child, dict);
        return;
    }
    int simple = child->access == ACCESS_INSTANCE_DICT && child->n_checks == 0 && child->slot < 0;
    for (int i = 0; simple && i < child->n_children; i++) simple = child->children[i].access == ACCESS_ITEM;
    if (!simple) add_late(plan, child, NULL, module);
    for (int i = 0; simple && i < child->n_children; i++) record_global(plan, &child->children[i], dict);
}

static void record_child(Plan *plan, Node *child, PyObject *value) {
    PyObject *dict;
    int64_t number;
    if (PyModule_CheckExact(value)) {
        record_module_child(plan, child, value);
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
    for (Py_ssize_t i = 0; i < n; i++) record_root(plan, &nodes[i], roots);
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
    if (dict_version(entry->dict) == entry->version) return 1;
    const Node *node = entry->what;
    PyObject *value = PyDict_GetItemWithError(entry->dict, node->key);
    if (value == NULL) PyErr_Clear();
    return value == entry->object;
}

static PlanOutcome run_entry(const Entry *entry, const Roots *roots, Run *run) {
    switch ((EntryKind)entry->kind) {
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

PlanOutcome plan_run(const Plan *plan, const Roots *roots, const Check *relations, Py_ssize_t n_relations, Run *run) {
    const Entry *end = plan->entries + plan->n_entries;
    for (const Entry *entry = plan->entries; entry < end; entry++) {
        PlanOutcome outcome = run_entry(entry, roots, run);
        if (outcome == PLAN_HOLDS) continue;
        if (outcome == PLAN_FAILS && entry->kind >= TYPE) run->failed = entry->guard;
        return outcome;
    }
    for (int i = 0; i < plan->n_kept; i++) Py_XSETREF(run->slots[plan->kept[i].slot].obj, Py_NewRef(plan->kept[i].object));
    PlanOutcome outcome = plan->n_late > 0 ? run_all_late(plan, roots, run) : PLAN_HOLDS;
    return outcome == PLAN_HOLDS ? run_relations(plan, relations, n_relations, run) : outcome;
}
