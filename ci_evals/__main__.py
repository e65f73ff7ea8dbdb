"""`python -m ci_evals`."""

from ci_evals.cli.app import main

main()
