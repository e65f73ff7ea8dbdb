# The base can be given with its digest: docker build --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:...
ARG PYTHON_IMAGE=python:3.13-slim

# Two environments: one with what builds the wheel, left behind here; one that goes into the image.
# pip works on them from outside, so neither holds a pip of its own. Bytecode is compiled here, marked as never
# stale, so that a copied file's date cannot make Python compile it again at every start.
FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PIP_NO_COMPILE=1 \
    PIP_ONLY_BINARY=:all:
WORKDIR /src
COPY requirements/build.txt requirements/image.txt requirements/
RUN python -m venv --without-pip /opt/builder \
    && pip --python /opt/builder install --require-hashes -r requirements/build.txt \
    && python -m venv --without-pip /opt/ci-evals/venv \
    && pip --python /opt/ci-evals/venv install --require-hashes -r requirements/image.txt \
    && python -m compileall -q --invalidation-mode unchecked-hash /opt/ci-evals/venv/lib
COPY pyproject.toml README.md LICENSE ./
COPY suites suites
COPY ci_evals ci_evals
RUN /opt/builder/bin/hatchling build -t wheel -d dist \
    && pip --python /opt/ci-evals/venv install --no-deps dist/*.whl \
    && python -m compileall -q --invalidation-mode unchecked-hash /opt/ci-evals/venv/lib/python3.*/site-packages/ci_evals
COPY entrypoint.py /opt/ci-evals/

FROM ${PYTHON_IMAGE}
# The slim images carry no bytecode of the standard library; without it every start compiles what it imports.
RUN python -m compileall -q /usr/local/lib/python3.*
# Log lines and workflow commands must come out in order, at once: there is no terminal to flush for.
ENV PYTHONUNBUFFERED=1 \
    PATH="/opt/ci-evals/venv/bin:${PATH}"
COPY --from=build /opt/ci-evals /opt/ci-evals
LABEL org.opencontainers.image.title="ci-evals" \
      org.opencontainers.image.description="The CI gate for conversational agents" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
# No USER and no WORKDIR: GitHub's runner needs root and sets the folder itself.
ENTRYPOINT ["/opt/ci-evals/venv/bin/python", "/opt/ci-evals/entrypoint.py"]
