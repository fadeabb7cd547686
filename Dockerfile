# syntax=docker/dockerfile:1
# Whitewater as an image, from the same hash-pinned locks as `make run`. Not built where it was written: no registry was in reach.
#
#   docker build --target cpu --tag whitewater:cpu .
#   docker run --rm --volume "$PWD/results:/whitewater/results" whitewater:cpu
#   docker build --target gpu --tag whitewater:gpu .
#   docker run --rm --gpus all --volume "$PWD/results:/whitewater/results" whitewater:gpu

FROM python:3.11.14-slim-bookworm AS base
ENV PYTHONDONTWRITEBYTECODE=1 \
    HOME=/home/whitewater
RUN useradd --create-home --uid 1000 whitewater
WORKDIR /whitewater
RUN chown whitewater:whitewater /whitewater
COPY envs/bootstrap.lock envs/
RUN python -m pip install --no-cache-dir --require-hashes --requirement envs/bootstrap.lock

FROM base AS cpu
COPY envs/cpu.lock envs/
RUN uv pip install --system --no-cache --compile-bytecode --require-hashes --requirement envs/cpu.lock
COPY --chown=whitewater:whitewater . .
RUN uv pip install --system --no-cache --offline --no-deps --no-build-isolation --editable .
USER whitewater
RUN mkdir --parents data logs results
ENTRYPOINT ["snakemake", "--cores", "all"]

# The CUDA libraries come with the wheels; the driver comes with the host (NVIDIA Container Toolkit).
FROM base AS gpu
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY envs/gpu.lock envs/
RUN uv pip install --system --no-cache --compile-bytecode --require-hashes --requirement envs/gpu.lock
COPY --chown=whitewater:whitewater . .
RUN uv pip install --system --no-cache --offline --no-deps --no-build-isolation --editable .
USER whitewater
RUN mkdir --parents data logs results
ENTRYPOINT ["snakemake", "--cores", "all", "--config", "device=gpu"]
