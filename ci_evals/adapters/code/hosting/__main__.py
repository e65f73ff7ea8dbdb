"""The process of agents: `python -m ci_evals.adapters.code.hosting`, started by `host`."""

from ci_evals.adapters.code.hosting.child import main

if __name__ == "__main__":  # a process that an agent starts by `multiprocessing` imports this file too
    main()
