"""The process of agents: `python -m ci_evals.agents.python.hosting`, started by `host`."""

from ci_evals.agents.python.hosting.child import main

if __name__ == "__main__":  # a process that an agent starts by `multiprocessing` imports this file too
    main()
