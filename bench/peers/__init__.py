"""Other tools at the same workload, for those who want to measure them beside ours. None is needed here."""
