"""``python -m oarlock``: the command."""

from oarlock.cli import main

if __name__ == "__main__":
    main()
