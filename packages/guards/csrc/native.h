/* Records shared by the files of the native guard evaluator: nodes, checks, roots, and what each file provides. */
#ifndef FXS_GUARDS_NATIVE_H
#define FXS_GUARDS_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

/* How a node's value is read from its parent's. Order is part of nothing: Python asks by name (module.c). */
typedef enum {
    ACCESS_LOCAL,
    ACCESS_GLOBAL,
    ACCESS_CLOSURE,
    ACCESS_BUILTIN,
    ACCESS_MODULE,
    ACCESS_STATE,
    ACCESS_NAMESPACE,
    ACCESS_KNOWN,
    ACCESS_ATTR,
    ACCESS_INSTANCE_DICT,
    ACCESS_ITEM,
    ACCESS_DICT_KEY,
    ACCESS_TYPE,
    ACCESS_SIZE,
    ACCESS_STRIDE,
    ACCESS_PYTHON,
    ACCESS_COUNT
} Access;

typedef enum {
    CHECK_TYPE_IS,
    CHECK_IS_OBJECT,
    CHECK_IS_REFERENT,
    CHECK_UNREFERENCED,
    CHECK_EQUALS,
    CHECK_LENGTH,
    CHECK_DICT_KEYS,
    CHECK_KEY_PRESENT,
    CHECK_KEY_ABSENT,
    CHECK_DICT_ENTRIES,
    CHECK_ATTR_PRESENT,
    CHECK_ATTR_ABSENT,
    CHECK_CLASS_LOOKUP,
    CHECK_CLASS_BASES,
    CHECK_FUNCTION_STATE,
    CHECK_TENSOR,
    CHECK_STATE,
    CHECK_PYTHON,
    CHECK_SAME,
    CHECK_DISTINCT,
    CHECK_SHAPES,
    CHECK_STORAGES,
    CHECK_PYTHON_MANY,
    CHECK_COUNT
} CheckOp;

/* A shape guard's program: (opcode, operand) pairs of a stack machine; a comparison takes two numbers and leaves none. */
typedef enum {
    OP_CONST,
    OP_SLOT,
    OP_ADD,
    OP_MUL,
    OP_FLOORDIV,
    OP_MOD,
    OP_MIN,
    OP_MAX,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_COUNT
} ShapeOp;

extern const char *const shape_op_names[OP_COUNT];
extern const char *const access_names[ACCESS_COUNT];
extern const char *const check_names[CHECK_COUNT];

/* What may change without the value's identity, or its dict's version, changing. */
typedef enum { LASTS_NEVER, LASTS_WITH_VALUE, LASTS_WITH_DICT } Lasting;

typedef struct TensorFacts TensorFacts;

typedef struct {
    uint8_t op;
    uint8_t lasting;
    int32_t guard;   /* index of the guard record, for reports */
    PyObject *obj;   /* op's operand; for CHECK_PYTHON* the bound `holds` */
    int64_t number;
    int64_t *program; /* of several values: slots, then SHAPES: opcodes, STORAGES: groups; STATE: (reader, value) pairs */
    Py_ssize_t program_length;
    TensorFacts *tensor;
} Check;

enum { SEEN_DICTS = 4 };

/* A value read through dicts, valid as long as each dict still has its version. The first dict is read afresh from a
 * live object at each use; each later one is held by an earlier, unchanged one. So no reference is kept. */
typedef struct {
    PyObject *value;
    int n;
    PyObject *dict[SEEN_DICTS];
    uint64_t version[SEEN_DICTS];
} Seen;

/* Where an attribute was found to be: anywhere (ask Python); the instance; the instance, then torch.nn.Module's tables; the
 * class, unless the instance has it; the class that is itself the object asked. */
typedef enum { ATTR_UNKNOWN, ATTR_SLOW, ATTR_INSTANCE, ATTR_MODULE, ATTR_CLASS, ATTR_OF_CLASS } AttrMode;

typedef struct Node {
    uint8_t access;
    uint8_t attr_mode;
    uint8_t number_only; /* SIZE, STRIDE: the value is wanted as a number in `slot`, never as an object */
    int32_t index;       /* LOCAL, CLOSURE: slot; DICT_KEY, SIZE, STRIDE: position */
    int32_t slot;        /* where the value is kept for checks over several values, or -1 */
    int32_t n_checks, n_live_checks, n_value_checks; /* checks: [live | with value | with dict] */
    int32_t n_children, n_live_children;             /* children: [live | skipped while the dict is unchanged] */
    PyObject *key; /* KNOWN: the value itself */
    Py_hash_t hash;
    Check *checks;
    struct Node *children;
    Seen seen;
    PyTypeObject *type; /* ATTR, INSTANCE_DICT: the type that attr_mode was found for (strong); ATTR_OF_CLASS: the object */
    unsigned int type_version;
    PyObject *class_value; /* ATTR_CLASS, ATTR_OF_CLASS: borrowed from the type, valid with type_version */
    PyObject *ok_dict;     /* the dict, at ok_version, for which checks and skipped children passed */
    uint64_t ok_version;
} Node;

typedef struct {
    PyObject **locals;
    Py_ssize_t n_locals;
    PyObject *globals, *builtins, *closure; /* closure: tuple of cells or NULL */
    PyObject *locals_map, *closure_map;     /* mappings instead of slots, when called with a Scope */
} Roots;

typedef struct {
    PyObject *obj; /* strong or NULL */
    int64_t number;
    int has_number;
} Slot;

/* A native check of a tensor that is known to be alive. */
typedef struct {
    PyObject *object;
    const TensorFacts *facts;
    int32_t guard;
} TensorFact;

/* One evaluation in progress. */
typedef struct {
    Slot *slots;
    int32_t failed; /* index of the guard that failed, or -1 */
    int changed;    /* something below the roots was looked into because it was new */
} Run;

static inline int fails(Run *run, int32_t guard) {
    run->failed = guard;
    return 0;
}

/* node.c */
int node_parse(Node *node, PyObject *spec);
void node_clear(Node *node);
int node_traverse(Node *node, visitproc visit, void *arg);
int check_parse(Check *check, PyObject *spec);
void check_clear(Check *check);

/* fetch.c: new reference or NULL. With an exception set when `raising`; otherwise perhaps. `unchanged` is set when the
 * value is the very one committed before; else `pending` is what to commit once its checks have passed. */
PyObject *fetch_root(Node *node, const Roots *roots, int *unchanged, Seen *pending);
PyObject *fetch_child(Node *node, PyObject *parent, int *unchanged, Seen *pending);
int seen_holds_dict(const Seen *seen, PyObject *dict, uint64_t version);

/* Whether a dict's items and the order of its keys are read as those of an exact dict, and will be as long as it lives:
 * a class of which neither can be overridden any more (collections.defaultdict; not OrderedDict, which has an order of its
 * own). A class that cannot change keeps its instances, too. */
static inline int reads_as_dict(PyObject *value) {
    if (PyDict_CheckExact(value)) return 1;
    PyTypeObject *type = Py_TYPE(value);
    if (!PyDict_Check(value) || ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)))
        return 0;
    return type->tp_iter == PyDict_Type.tp_iter &&
           type->tp_as_mapping->mp_subscript == PyDict_Type.tp_as_mapping->mp_subscript;
}

/* dict_version.h inlines what depends on the CPython version. */

/* checks.c */
int check_value(const Check *check, PyObject *value);
int check_many(const Check *check, Slot *slots);
int check_is_native(const Check *check, PyObject *value);
int constants_equal(PyObject *expected, PyObject *value);

/* tensor.c */
extern int tensor_ready;
int tensor_init(PyObject *offsets);
TensorFacts *tensor_facts_parse(PyObject *spec);
void tensor_facts_clear(TensorFacts *facts);
int tensor_traverse(TensorFacts *facts, visitproc visit, void *arg);
int tensor_holds(const TensorFacts *facts, PyObject *value);
int tensor_check_is_native(const TensorFacts *facts);
int tensor_is_plain(PyObject *value);
int tensor_facts_equal(const TensorFacts *a, const TensorFacts *b);
int tensors_that_fit(const TensorFact *checks, int n);
const void *tensor_storage(PyObject *value); /* NULL: not readable here */
int tensor_extent(PyObject *value, int stride, Py_ssize_t dim, int64_t *result);
PyObject *tensor_metadata(PyObject *module, PyObject *tensor);
uint64_t tensor_keys(PyObject *plain);
int tensor_dtype(PyObject *plain);
void *tensor_handle(PyObject *tensor); /* what torch's C interface takes */

/* contents.c */
PyObject *set_number_layout(PyObject *module, PyObject *layout);
PyObject *lone_numbers(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

int tensor_is_plain_type(PyTypeObject *type);
uint64_t tensor_fingerprint(PyObject *value); /* of a plain tensor: dtype and sizes, never 0 */
uint64_t tensor_facts_fingerprint(const TensorFacts *facts); /* of the tensors that fit; 0: they differ in it */
PyTypeObject *tensor_facts_type(const TensorFacts *facts);

/* state.c */
int state_reader(const char *name);
int state_bind(void);
uint64_t state_read(int reader);
int state_holds(const int64_t *facts, Py_ssize_t count);
PyObject *state_names(void);

/* module.c */
extern PyObject *module_getattr; /* torch.nn.Module.__getattr__, or NULL */
extern PyObject *read_size, *read_stride; /* of tensors whose metadata is not readable here; NULL: by method */

/* walk.c */
int root_passes(Node *root, const Roots *roots, Run *run);
int child_passes(Node *child, PyObject *parent, Run *run);
int number_child(Node *child, PyObject *tensor, Run *run);

/* plan_roots.c, plan_run.c */
typedef struct Plan Plan;
typedef enum { PLAN_FAILS, PLAN_HOLDS, PLAN_STALE } PlanOutcome;
Plan *plan_record(Node *nodes, Py_ssize_t n, const Roots *roots, const Check *relations, Py_ssize_t n_relations,
                  Py_ssize_t n_slots);
/* The plan of reading the roots that do not pass, `given` as locals, and what hangs below them; NULL where a read may run
 * user code. To be made after a walk that found nothing changed. */
Plan *plan_record_reads(Node *nodes, Py_ssize_t n, const Roots *given, int (*passes)(const Node *root));
/* Whether such a plan holds; if so the values are in their slots of `results`, which must have been empty. */
int plan_read(Plan *plan, const Roots *given, PyObject *results);
/* Whether a plan may insist on the very object that a root has now; other roots are walked at every call. */
int root_is_lasting(const Node *root, PyObject *value);
PlanOutcome plan_run(Plan *plan, const Roots *roots, const Check *relations, Py_ssize_t n_relations, Run *run);
void plan_free(Plan *plan);
PyObject *plan_counts(const Plan *plan);

/* evaluator.c, fetcher.c */
extern PyTypeObject Evaluator_Type, Fetcher_Type;
int evaluator_check_frame(void *evaluator, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *func);
Node *evaluator_roots(PyObject *evaluator, Py_ssize_t *n);

/* fetch.c */
PyObject *own_dict(PyObject *obj);

/* class_check.c */
int class_check_ready(void);
PyObject *is_instance(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* record.c */
int record_ready(void);
PyObject *make_natively(PyObject *module, PyObject *args);

/* index.c: see guards_api.h */
typedef struct GuardIndex GuardIndex;
GuardIndex *index_build(PyObject *const *evaluators, int n);
uint64_t index_candidates(const GuardIndex *index, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *func);
void index_free(GuardIndex *index);

#endif
