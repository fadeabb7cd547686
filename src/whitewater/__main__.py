"""`python -m whitewater`, which is the command `whitewater`."""

from whitewater.cli.main import run

if __name__ == "__main__":
    run()
