"""The strict checks, a family of them a module. `ci_evals.domain.checks.evaluation` lists the families."""
