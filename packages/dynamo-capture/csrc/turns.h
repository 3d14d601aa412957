/* In what order the entries of a list ran, and which should come next.
 *
 *     ran      a s t  b s t  c s t  a s t  b s t
 *     next     c, as after the last b s t
 *
 * Equal layers of a model run one after the other in every step, so that one code object has a version for each, and
 * some that serve all of them: which version ran last does not tell which is next, but the calls before do. */
#ifndef FXS_TURNS_H
#define FXS_TURNS_H

struct FXSEntry;

typedef struct FXSTurns FXSTurns;

/* Nothing has run yet; NULL, without an exception, if there is no memory. */
FXSTurns *fxs_turns_new(void);
void fxs_turns_free(FXSTurns *turns);
/* The entry that ran next where the calls before were as they are now, borrowed; NULL if there is none. */
struct FXSEntry *fxs_turns_next(FXSTurns *turns);
/* The entry is about to run. */
void fxs_turns_note(FXSTurns *turns, struct FXSEntry *entry);

#endif
