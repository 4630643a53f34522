"""`python -m memharness` is the `memharness` command."""

from memharness.cli import main

if __name__ == "__main__":
    main()
