"""Views and the memory behind them: where they begin, how they are regenerated, what shares memory with what."""
