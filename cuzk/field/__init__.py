"""Numbers: what a field element is, and every operation on it."""
