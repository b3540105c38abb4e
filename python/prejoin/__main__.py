"""``python -m prejoin``: the command line."""

from prejoin.cli import main

if __name__ == "__main__":
    main()
