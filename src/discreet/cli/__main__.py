"""`python -m discreet.cli` is the command `discreet`, as it always was."""

from discreet.cli import main

if __name__ == "__main__":
    main(prog_name="discreet")
