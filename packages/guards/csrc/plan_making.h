/* What the files that make a plan share: noting entries and facts (plan_facts.c), the walk (plan_record.c), its start
 * from the roots of a call (plan_roots.c). See plan.h. */
#ifndef FXS_GUARDS_PLAN_MAKING_H
#define FXS_GUARDS_PLAN_MAKING_H

#include "plan.h"

typedef struct {
    PyObject *dict;
    int block;   /* index of the NAMES entry */
    Node *nodes[64]; /* in the block; further ones get a block of their own */
    int n;
} Names;

Entry *add_entry(Plan *plan, EntryKind kind, PyObject *object, const void *what);
void add_late(Plan *plan, Node *node, const Check *check, PyObject *object);
void keep_object(Plan *plan, int32_t slot, PyObject *object);
Place *place_of(Plan *plan, const void *pointer, int kind);
int known_entry(Plan *plan, const void *pointer, EntryKind kind);
int add_dict(Plan *plan, PyObject *dict, uint64_t version);
void add_again(Plan *plan, int entry, Node *node, PyObject *value);
void never_again(Plan *plan, int entry);
int is_simple(const Node *node, PyObject *dict);
void record_check(Plan *plan, const Check *check, PyObject *value);
void record_check_in_block(Plan *plan, const Check *check, PyObject *value);
void record_value(Plan *plan, Node *node, PyObject *value, int fresh);
void names_begin(Plan *plan, Names *names, PyObject *dict);
void names_end(Plan *plan, Names *names);
int names_add(Plan *plan, Names *names, Node *node);
void names_add_all(Plan *plan, Names *names, Node *node);
int is_about_names(const Node *node, PyObject *dict);

#endif
