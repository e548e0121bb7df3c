"""The CPU backend: the same formulas, compiled to object code once and run by a pool of threads."""
