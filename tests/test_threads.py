"""Threads that find no memory: nothing waits for what they can no longer report."""

import asyncio

import pytest

from ci_evals.threads import in_thread


class ForgetfulLoop(asyncio.SelectorEventLoop):
    """Python's own answer to a call that found no memory is sometimes this."""

    def call_soon_threadsafe(self, callback, *args, context=None):
        raise SystemError("error return without exception set")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_thread_that_cannot_report_its_result_raises_memory_error():
    with asyncio.Runner(loop_factory=ForgetfulLoop) as runner, pytest.raises(MemoryError):
        runner.run(asyncio.wait_for(in_thread(int), timeout=20))


def test_thread_result_or_exception_is_returned():
    async def calls():
        assert await in_thread(int, "12") == 12
        with pytest.raises(ValueError, match="invalid literal"):
            await in_thread(int, "twelve")

    asyncio.run(calls())
