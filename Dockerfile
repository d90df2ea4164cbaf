# syntax=docker/dockerfile:1
# serde with what its wheel needs, and nothing else:
#
#     docker build -t serde .
#     docker run --rm -v "$PWD:/models" serde convert net.onnx net-symbol.json
#
# More formats: docker build --build-arg EXTRAS='[check,coreml,nnef]' -t serde .

ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=""
WORKDIR /source
COPY . .
# Everything goes into one folder, with the versions that are tested together.
RUN python -m venv /opt/serde \
    && pins="constraints/py$(python -c 'import sys; print("%d%d" % sys.version_info[:2])').txt" \
    && python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels -c "$pins" . \
    && /opt/serde/bin/python -m pip install --no-cache-dir -c "$pins" \
        "$(echo /wheels/*.whl)${EXTRAS}" \
    && /opt/serde/bin/python -m pip uninstall --yes pip \
    && /opt/serde/bin/serde --version

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="serde" \
    org.opencontainers.image.description="Converts trained models between formats, through Relay" \
    org.opencontainers.image.source="https://github.com/serde-relay/serde" \
    org.opencontainers.image.documentation="https://serde-relay.github.io/serde/" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/serde /opt/serde
# What is written into a mounted folder belongs to this user, unless `docker run --user` says another.
RUN useradd --uid 1000 --user-group --create-home --shell /usr/sbin/nologin serde \
    && mkdir /models && chown serde:serde /models
USER 1000:1000
WORKDIR /models
ENTRYPOINT ["/opt/serde/bin/serde"]
CMD ["--help"]
