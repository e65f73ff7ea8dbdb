# The base's tag can be replaced by a digest: docker build --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:...
ARG PYTHON_IMAGE=python:3.13-slim

# Two environments: one with what builds the wheel, left behind here; one that goes into the image.
# pip works on them from outside, so that neither holds a pip of its own.
FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements/build.txt requirements/image.txt requirements/
RUN python -m venv --without-pip /opt/builder \
    && pip --python /opt/builder install --no-compile --only-binary=:all: --require-hashes -r requirements/build.txt \
    && python -m venv --without-pip /opt/ci-evals/venv \
    && pip --python /opt/ci-evals/venv install --no-compile --only-binary=:all: --require-hashes -r requirements/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY suites suites
COPY ci_evals ci_evals
RUN /opt/builder/bin/hatchling build -t wheel -d dist \
    && pip --python /opt/ci-evals/venv install --no-compile --no-deps dist/*.whl
COPY entrypoint.py /opt/ci-evals/

FROM ${PYTHON_IMAGE}
# Log lines and workflow commands must come out in order, at once: there is no terminal to flush for.
ENV PYTHONUNBUFFERED=1 \
    PATH="/opt/ci-evals/venv/bin:${PATH}"
COPY --from=build /opt/ci-evals /opt/ci-evals
# The slim images carry no bytecode of the standard library; without it every start compiles half of it.
RUN python -m compileall -q /usr/local/lib/python3.* /opt/ci-evals
LABEL org.opencontainers.image.title="ci-evals" \
      org.opencontainers.image.description="The CI gate for conversational agents" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
# No USER and no WORKDIR: GitHub's runner needs root and sets the folder itself.
ENTRYPOINT ["/opt/ci-evals/venv/bin/python", "/opt/ci-evals/entrypoint.py"]
