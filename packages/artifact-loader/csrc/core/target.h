/* What this processor can run. */
#ifndef FXA_TARGET_H
#define FXA_TARGET_H

/* The names of targets, the best first, ended by NULL: the levels of x86-64 as the psABI defines them, or the processor's family. */
const char *const *fxa_cpu_levels(void);

#endif
