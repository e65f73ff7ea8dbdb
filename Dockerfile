# The base can be given with its digest: docker build --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:...
ARG PYTHON_IMAGE=python:3.13-slim

# Two environments: one with what builds the wheel, left behind here; one that goes into the image.
# pip works on them from outside, so neither holds a pip of its own.
FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PIP_ONLY_BINARY=:all:
WORKDIR /src
# For `strip` alone, and nothing of it goes into the image.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
COPY requirements/build.txt requirements/run.txt requirements/
# Some wheels come with what a debugger reads, a third of all their compiled code. rapidfuzz comes compiled twice,
# and takes the other where the one for newer processors is missing; both give the same numbers. Of it only distances are
# used. rich brings what colors source code in 500 languages, and shows none here. Some bring their own tests, what mypy
# reads and what was compiled; lists of installed files are for who removes packages.
RUN python -m venv --without-pip /opt/builder \
    && pip --python /opt/builder install --no-compile --require-hashes -r requirements/build.txt \
    && python -m venv --without-pip /opt/ci-evals/venv \
    && pip --python /opt/ci-evals/venv install --no-compile --require-hashes -r requirements/run.txt \
    && find /opt/ci-evals/venv/lib -path '*/rapidfuzz/*_avx2.*.so' -delete \
    && find /opt/ci-evals/venv/lib -path '*/rapidfuzz/fuzz_cpp.*.so' -delete \
    && find /opt/ci-evals/venv/lib -path '*/rapidfuzz/process_cpp_impl.*.so' -delete \
    && find /opt/ci-evals/venv/lib -regex '.*\.\(pyi\|pyx\|pxd\|h\)' -delete \
    && find /opt/ci-evals/venv/lib -path '*.dist-info/RECORD' -delete \
    && find /opt/ci-evals/venv/lib -path '*/pygments/lexers/[a-z]*.py' -delete \
    && find /opt/ci-evals/venv/lib -path '*/pygments/lexers/_[a-z]*_*.py' -delete \
    && find /opt/ci-evals/venv/lib -path '*/pygments/formatters/[a-z]*.py' -delete \
    && find /opt/ci-evals/venv/lib -path '*/pygments/styles/[a-z]*.py' -delete \
    && find /opt/ci-evals/venv/lib -path '*/site-packages/*/tests/*' -delete \
    && find /opt/ci-evals/venv/lib -name '*.so' -exec strip --strip-debug {} +
COPY pyproject.toml README.md LICENSE ./
COPY suites suites
COPY ci_evals ci_evals
RUN /opt/builder/bin/hatchling build -t wheel -d dist \
    && pip --python /opt/ci-evals/venv install --no-compile --no-deps dist/*.whl
COPY entrypoint.py /opt/ci-evals/

FROM ${PYTHON_IMAGE} AS whole
ENV PATH="/opt/ci-evals/venv/bin:${PATH}"
COPY --from=build /opt/ci-evals /opt/ci-evals
# What installs and builds packages, Python's windows, for which the slim images lack the libraries, its manual, and what
# only a shell at a terminal, a debugger, a checker of packages and Python's own tests read.
RUN rm -rf /usr/local/include /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/lib/python3*/site-packages/* \
        /usr/local/lib/python3*/config-3* /usr/share/info /usr/share/bash-completion /usr/share/lintian \
        /usr/share/gcc /usr/share/gdb /usr/local/bin/python*-gdb.py /usr/local/lib/python3*/turtle.py \
        /usr/local/lib/python3*/lib-dynload/_*test*.so \
        /var/cache/debconf/*-old /var/lib/dpkg/*-old \
    && for part in ensurepip idlelib pydoc_data tkinter turtledemo; do rm -rf /usr/local/lib/python3*/"${part}"; done
# Without bytecode every start compiles what it imports, and the slim images carry none. Python leaves it beside what
# is imported here: a run, the SDKs, and all modules of ours. Most of the standard library is never asked for.
RUN ci-evals --help >/dev/null \
    && ci-evals run demo:hr --provider=offline --no-gate --output-dir=/tmp/played >/dev/null \
    && rm -r /tmp/played \
    && python -c "import anthropic, ci_evals, concurrent.futures.thread, openai, pkgutil, rapidfuzz; \
        names = [module.name for module in pkgutil.walk_packages(ci_evals.__path__, 'ci_evals.')]; \
        [__import__(name) for name in names if not name.endswith('__main__')]"

# One layer, so that what was removed from the base is not pulled.
FROM scratch
# hadolint ignore=DL3067
COPY --from=whole / /
# Log lines and workflow commands must come out in order, at once: there is no terminal to flush for.
ENV PYTHONUNBUFFERED=1 \
    LANG=C.UTF-8 \
    PATH=/opt/ci-evals/venv/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
LABEL org.opencontainers.image.title="ci-evals" \
      org.opencontainers.image.description="The CI gate for conversational agents" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
# No USER and no WORKDIR: GitHub's runner needs root and sets the folder itself.
ENTRYPOINT ["/opt/ci-evals/venv/bin/python", "/opt/ci-evals/entrypoint.py"]
