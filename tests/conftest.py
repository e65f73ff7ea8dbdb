"""For all tests: what is slow on a busy machine is not wrong."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
