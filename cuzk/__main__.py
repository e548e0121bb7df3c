"""`python -m cuzk`: the same as the command `cuzk`."""

import sys

from cuzk.cli import main

if __name__ == "__main__":
    sys.exit(main())
