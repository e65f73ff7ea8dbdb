"""The embedded demo agent, which speaks as one of AUI does. Its server: `ci_evals.demo_agent`."""
