"""`python -m partsketch`: the command line."""

from partsketch.cli import main

main()
