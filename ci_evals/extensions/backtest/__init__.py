"""The command `backtest`: the gate, checked by the runs that it has already decided."""
