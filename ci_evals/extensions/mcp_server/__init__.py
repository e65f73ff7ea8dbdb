"""The command `mcp`: a server by which coding agents validate suites, run tests and read why they failed."""
