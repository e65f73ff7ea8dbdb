"""Problems and weak spots of suites, and judged criteria that measure nothing."""
