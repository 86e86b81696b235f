"""`python -m runner` is the command `platocast`."""

from runner.cli import main

main()
