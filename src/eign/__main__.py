"""The command `eign` as `python -m eign`, for an interpreter whose scripts are not on the path."""

import sys

from eign.cli import main

if __name__ == "__main__":
    sys.exit(main())
