"""`python -m banditmesh`: the command line, for an environment whose scripts are not on the path."""

from .cli import main

if __name__ == "__main__":
    main()
