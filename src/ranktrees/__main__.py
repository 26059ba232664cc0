"""``python -m ranktrees``: the command line."""

import sys

from ranktrees.command import main

if __name__ == "__main__":
    sys.exit(main())
