/* What torch.compiler.set_stance has set: stock's compiler keeps it in a variable of one of its modules. */
#ifndef FXS_STOCK_STANCE_H
#define FXS_STOCK_STANCE_H

#include "python_internals.h"

/* Remember where modules are; -1 with an exception. */
int fxs_init_stock_stance(void);
/* Whether it says "force_eager". Where stock's compiler is not loaded this is a comparison of two numbers. */
int fxs_stock_forces_eager(void);
/* Whether it is fail_on_recompile: what would be compiled again has to be asked about. */
int fxs_stock_fails_on_recompile(void);

#endif
