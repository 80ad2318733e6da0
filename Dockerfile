# t2t-serve in a container, for CPUs or, with --build-arg ACCELERATOR=gpu, for NVIDIA GPUs. docs/operation.md says more.
#
#   docker build -t t2tlite .
#   docker run --rm -p 127.0.0.1:5000:5000 -v "$PWD/runs/demo/grammar_ende:/run/t2tlite:ro" t2tlite

ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
ARG ACCELERATOR=cpu
WORKDIR /source
RUN python -m venv /opt/t2tlite
# The large packages come first, in a layer that a change of the code leaves as it is.
COPY requirements.txt requirements-dev.txt ./
RUN case "$ACCELERATOR" in \
      cpu) tensorflow="tensorflow" ;; \
      gpu) tensorflow="tensorflow[and-cuda]" ;; \
      *) echo "ACCELERATOR must be cpu or gpu. Received: $ACCELERATOR." >&2; exit 1 ;; \
    esac && \
    /opt/t2tlite/bin/pip install --no-cache-dir -r requirements.txt "$tensorflow"
COPY setup.py pyproject.toml README.md LICENSE ./
COPY t2tlite t2tlite
COPY problems problems
COPY hparams hparams
COPY bin bin
ARG EXTRAS=serve
RUN /opt/t2tlite/bin/pip install --no-cache-dir --no-build-isolation -c requirements-dev.txt ".[$EXTRAS]"

FROM python:${PYTHON}
RUN useradd --uid 10001 t2tlite
COPY --from=build /opt/t2tlite /opt/t2tlite
ENV PATH="/opt/t2tlite/bin:$PATH" PYTHONUNBUFFERED=1
USER 10001
WORKDIR /opt/t2tlite
EXPOSE 5000
# Healthy once the models are loaded, which may take a while.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5m \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:5000/ready', timeout=4)"]
ENTRYPOINT ["t2t-serve", "--host=0.0.0.0", "--port=5000"]
CMD ["--output_dir=/run/t2tlite"]
