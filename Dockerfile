# Whitewater as an image, from the same hash-pinned locks as `make run`; see docs/deploy.md. Not built where it was written, without
# a registry: tests/workflows/test_container.py carries out these steps in a Debian root instead.

# What an editor opens, see .devcontainer.
FROM python:3.11.14-bookworm AS dev
RUN useradd --create-home --shell /bin/bash --uid 1000 whitewater

FROM python:3.11.14-slim-bookworm AS base
# Whoever runs it may have no name and no home here: what is cached goes to /tmp.
ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH HOME=/tmp USER=whitewater \
    PYTHONDONTWRITEBYTECODE=1 UV_SYSTEM_CERTS=1
WORKDIR /whitewater
COPY envs/bootstrap.lock envs/
RUN python3 -m venv /opt/venv && pip install --no-cache-dir --require-hashes --requirement envs/bootstrap.lock
# The caller's folder is mounted here: inputs, results, logs and .snakemake are its owner's.
RUN mkdir --mode=1777 /work

# The CUDA libraries come with the wheels; the driver comes with the host (NVIDIA Container Toolkit).
FROM base AS gpu
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY envs/gpu.lock envs/
RUN uv pip install --no-cache --compile-bytecode --require-hashes --requirement envs/gpu.lock
COPY . .
RUN uv pip install --no-cache --offline --no-deps --no-build-isolation --editable .
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["snakemake", "--snakefile", "/whitewater/Snakefile"]
CMD ["--cores", "all", "--config", "device=gpu"]

FROM base AS cpu
COPY envs/cpu.lock envs/
RUN uv pip install --no-cache --compile-bytecode --require-hashes --requirement envs/cpu.lock
COPY . .
RUN uv pip install --no-cache --offline --no-deps --no-build-isolation --editable .
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["snakemake", "--snakefile", "/whitewater/Snakefile"]
CMD ["--cores", "all"]
