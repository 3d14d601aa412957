/* Running a plan: see plan.h. */
#include "plan.h"

#include "dict_version.h"

/* --- entries --- */

static int root_is(const Entry *entry, const Roots *roots) {
    int unchanged;
    Seen pending;
    PyObject *value = fetch_root((Node *)entry->what, roots, &unchanged, &pending);
    Py_XDECREF(value); /* only compared; its owner holds it */
    return value == entry->object;
}

static PyObject *name_in(PyObject *dict, const Node *node) {
    PyObject *value = node->hash == -1 ? PyDict_GetItemWithError(dict, node->key)
                                       : _PyDict_GetItem_KnownHash(dict, node->key, node->hash);
    if (value == NULL) PyErr_Clear();
    return value;
}

static int item_at(const Entry *entry) {
    PyObject *list = (PyObject *)entry->what;
    Py_ssize_t index = entry->guard;
    if (index < 0) index += PyList_GET_SIZE(list);
    return index >= 0 && index < PyList_GET_SIZE(list) && PyList_GET_ITEM(list, index) == entry->object;
}

static int lasting_checks_hold(const Node *node, PyObject *value) {
    for (int i = node->n_live_checks; i < node->n_value_checks; i++)
        if (!check_value(&node->checks[i], value)) return 0;
    return 1;
}

/* Whether the dict that an entry is about has the version it had, and noting one that will do. */
#ifdef DICT_VERSIONS_IN_DICTS
static inline int dict_keeps_version(Entry *entry, PyObject *dict) { return dict_version(dict) == entry->version; }

static inline void note_version(Entry *entry, PyObject *dict, uint64_t version) {
    (void)dict;
    entry->version = version;
}
#else
static inline int dict_keeps_version(Entry *entry, PyObject *dict) {
    if (entry->cell == NULL) {
        const DictCell *cell = dict_cell(dict);
        if (cell == NULL || cell->version != entry->version) return 0;
        entry->cell = cell;
    }
    return entry->cell->version == entry->version;
}

static inline void note_version(Entry *entry, PyObject *dict, uint64_t version) {
    entry->cell = dict_cell(dict);
    entry->version = version;
}
#endif

/* All that was found out about a dict that has changed since. */
static int still_settled(const Node *node, PyObject *dict) {
    for (int i = node->n_value_checks; i < node->n_checks; i++)
        if (!check_value(&node->checks[i], dict)) return 0;
    for (int i = node->n_live_children; i < node->n_children; i++) {
        PyObject *value = name_in(dict, &node->children[i]);
        if (value == NULL || !lasting_checks_hold(&node->children[i], value)) return 0;
    }
    return 1;
}

/* The dict has changed: if not in anything that matters, its version now will do. */
static int holds_again(Plan *plan, Entry *entry, PyObject *dict) {
    if (entry->again <= 0) return 0;
    for (int next = entry->again; next > 0; next = plan->again.items[next - 1].next) {
        const Again *again = &plan->again.items[next - 1];
        if (again->value == NULL) {
            if (!still_settled(again->node, dict)) return 0;
        } else if (name_in(dict, again->node) != again->value || !lasting_checks_hold(again->node, again->value))
            return 0;
    }
    uint64_t version = dict_version(dict);
    if (version != 0) note_version(entry, dict, version);
    return version != 0;
}

static inline int has_version(Plan *plan, Entry *entry, PyObject *dict) {
    return dict_keeps_version(entry, dict) || holds_again(plan, entry, dict);
}

static inline int stays(Plan *plan, Entry *entry) {
    if ((const void *)Py_TYPE(entry->object) != entry->what || *entry->place != entry->dict) return 0;
    return entry->version == 0 || has_version(plan, entry, entry->dict);
}

static PlanOutcome run_entry(Plan *plan, Entry *entry, const Roots *roots, Run *run) {
    int holds = 0;
    switch ((EntryKind)entry->kind) {
    case NAMESPACE_IS: holds = entry->object == (entry->what != NULL ? roots->globals : roots->builtins); break;
    case ROOT_IS: holds = root_is(entry, roots); break;
    case MODULE_HAS: holds = PyModule_CheckExact(entry->object) && PyModule_GetDict(entry->object) == entry->dict; break;
    case CLASS: holds = type_version((PyTypeObject *)entry->object) == (unsigned int)entry->version; break;
    case OWNER: holds = stays(plan, entry); break;
    case DICT: holds = has_version(plan, entry, entry->object); break;
    case HAS_TYPE: holds = (const void *)Py_TYPE(entry->object) == entry->what; break;
    case ITEM_IS: holds = name_in(entry->dict, entry->what) == entry->object; break;
    case ITEM_AT: holds = item_at(entry); break;
    case NUMBER: holds = number_child((Node *)entry->what, entry->object, run); break;
    case ROOT_NODE: return root_passes((Node *)entry->what, roots, run) ? PLAN_HOLDS : PLAN_FAILS;
    case CHECK:
        if (check_value(entry->what, entry->object)) return PLAN_HOLDS;
        run->failed = entry->guard;
        return PLAN_FAILS;
    case NAMES:
    case LOOKUPS:
    case ENTRY_KINDS: break;
    }
    return holds ? PLAN_HOLDS : PLAN_STALE;
}

/* While what a block of entries is about has the recorded version, they hold. */
static inline int block_keeps_version(Entry *entry) {
    if (entry->kind == NAMES) return dict_keeps_version(entry, entry->object);
    return type_version((PyTypeObject *)entry->object) == entry->version;
}

/* The entries of a block whose dict or class has changed; if they hold all the same, its version now will do. */
static PlanOutcome run_block(Plan *plan, Entry *block, const Roots *roots, Run *run) {
    for (Entry *entry = block + 1; entry <= block + block->guard; entry++) {
        PlanOutcome outcome = run_entry(plan, entry, roots, run);
        if (outcome != PLAN_HOLDS) return outcome;
    }
    uint64_t version =
        block->kind == NAMES ? dict_version(block->object) : type_version((PyTypeObject *)block->object);
    if (version != 0 && block->kind == NAMES) note_version(block, block->object, version);
    else if (version != 0) block->version = version;
    return PLAN_HOLDS;
}

static PlanOutcome run_entries(Plan *plan, const Roots *roots, Run *run) {
    Entry *end = plan->entries.items + plan->entries.n;
    for (Entry *entry = plan->entries.items; entry < end; entry++) {
        PlanOutcome outcome = PLAN_HOLDS;
        if (entry->kind == OWNER) {
            if (!stays(plan, entry)) return PLAN_STALE;
        } else if (entry->kind == DICT) {
            if (!has_version(plan, entry, entry->object)) return PLAN_STALE;
        } else if (entry->kind == NAMES || entry->kind == LOOKUPS) {
            if (!block_keeps_version(entry)) outcome = run_block(plan, entry, roots, run);
            entry += entry->guard;
        } else
            outcome = run_entry(plan, entry, roots, run);
        if (outcome != PLAN_HOLDS) return outcome;
    }
    return PLAN_HOLDS;
}

/* --- facts: all entries hold, so every object is alive --- */

/* Tuples, lists and dicts keep their size in the same place. */
_Static_assert(offsetof(PyDictObject, ma_used) == offsetof(PyVarObject, ob_size), "the size of a dict");

static int sizes_hold(const Plan *plan, Run *run) {
    const SizeFact *end = plan->sizes.items + plan->sizes.n;
    for (const SizeFact *fact = plan->sizes.items; fact < end; fact++)
        if (((PyVarObject *)fact->object)->ob_size != fact->expected) return fails(run, fact->guard);
    return 1;
}

static int types_hold(const Plan *plan, Run *run) {
    const TypeFact *end = plan->types.items + plan->types.n;
    for (const TypeFact *fact = plan->types.items; fact < end; fact++)
        if (Py_TYPE(fact->object) != fact->type) return fails(run, fact->guard);
    return 1;
}

static int tensors_hold(const Plan *plan, Run *run) {
    int n = tensors_that_fit(plan->tensors.items, plan->tensors.n);
    return n == plan->tensors.n || fails(run, plan->tensors.items[n].guard);
}

static int others_hold(const Plan *plan, Run *run) {
    for (int i = 0; i < plan->others.n; i++) {
        const OtherFact *fact = &plan->others.items[i];
        if (!check_value(fact->check, fact->object)) return fails(run, fact->check->guard);
    }
    return 1;
}

static int late_passes(const Late *late, const Roots *roots, Run *run) {
    if (late->node == NULL) return check_value(late->check, late->object) ? 1 : fails(run, late->check->guard);
    return late->object == NULL ? root_passes(late->node, roots, run) : child_passes(late->node, late->object, run);
}

/* User code might drop what the entries found alive, hence the references; the plan itself stays while a check runs. */
static int late_hold(const Plan *plan, const Roots *roots, Run *run) {
    int n = plan->late.n, holds = 1;
    for (int i = 0; i < n; i++) Py_XINCREF(plan->late.items[i].object);
    for (int i = 0; i < n && holds; i++) holds = late_passes(&plan->late.items[i], roots, run);
    for (int i = 0; i < n; i++) Py_XDECREF(plan->late.items[i].object);
    return holds;
}

static int relations_hold(const Plan *plan, const Check *relations, Py_ssize_t n, Run *run) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (!plan->skip[i] && !check_many(&relations[i], run->slots)) return fails(run, relations[i].guard);
    return 1;
}

PlanOutcome plan_run(Plan *plan, const Roots *roots, const Check *relations, Py_ssize_t n_relations, Run *run) {
    PlanOutcome outcome = run_entries(plan, roots, run);
    if (outcome != PLAN_HOLDS) return outcome;
    if (!sizes_hold(plan, run) || !types_hold(plan, run) || !tensors_hold(plan, run) || !others_hold(plan, run))
        return PLAN_FAILS;
    for (int i = 0; i < plan->kept.n; i++) {
        const Kept *kept = &plan->kept.items[i];
        Py_XSETREF(run->slots[kept->slot].obj, Py_NewRef(kept->object));
    }
    if (plan->late.n > 0 && !late_hold(plan, roots, run)) return PLAN_FAILS;
    return relations_hold(plan, relations, n_relations, run) ? PLAN_HOLDS : PLAN_FAILS;
}

int plan_read(Plan *plan, const Roots *given, PyObject *results) {
    Run run = {NULL, -1, 0};
    if (run_entries(plan, given, &run) != PLAN_HOLDS) {
        PyErr_Clear();
        return 0;
    }
    const Kept *end = plan->kept.items + plan->kept.n;
    for (const Kept *kept = plan->kept.items; kept < end; kept++)
        PyTuple_SET_ITEM(results, kept->slot, Py_NewRef(kept->object));
    return 1;
}

/* How much there is of everything: name -> count. */
PyObject *plan_counts(const Plan *plan) {
    static const char *const names[ENTRY_KINDS] = {"root_is", "root", "namespace_is", "module_has", "class",
                                                   "owner",   "dict", "names",        "lookups",    "item_is",
                                                   "item_at", "has_type", "number",   "check"};
    int counts[ENTRY_KINDS] = {0};
    for (int i = 0; i < plan->entries.n; i++) counts[plan->entries.items[i].kind]++;
    PyObject *result = Py_BuildValue("{si si si si si}", "size", plan->sizes.n, "type", plan->types.n, "tensor",
                                     plan->tensors.n, "other", plan->others.n, "late", plan->late.n);
    for (int i = 0; result != NULL && i < ENTRY_KINDS; i++) {
        PyObject *number = PyLong_FromLong(counts[i]);
        if (number == NULL || PyDict_SetItemString(result, names[i], number) < 0) Py_CLEAR(result);
        Py_XDECREF(number);
    }
    return result;
}
