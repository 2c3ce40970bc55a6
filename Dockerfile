# The worker, with the command line, and the web page. Their dependencies come from locks with hashes; they run as a user
# without rights. IMAGE is a worker; IMAGE plan run FILE is `plan run`.
# Behind a mirror: docker build --build-arg PYTHON=IMAGE --secret id=pip.conf,src=FILE --secret id=ca.pem,src=FILE .
# PYTHON is the image below as your registry names it; pip.conf and ca.pem are read while packages are installed and
# leave nothing in the image.
ARG PYTHON=python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1
FROM ${PYTHON} AS worker

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

COPY docker/requirements.lock /tmp/requirements.lock
RUN --mount=type=secret,id=pip.conf,target=/run/build/pip.conf --mount=type=secret,id=ca.pem,target=/run/build/ca.pem \
    if [ -s /run/build/pip.conf ]; then export PIP_CONFIG_FILE=/run/build/pip.conf; fi; \
    if [ -s /run/build/ca.pem ]; then export PIP_CERT=/run/build/ca.pem; fi; \
    pip install --require-hashes --requirement /tmp/requirements.lock && rm /tmp/requirements.lock

RUN useradd --uid 10001 --user-group --home-dir /nonexistent --shell /usr/sbin/nologin plans \
    && install --directory --owner plans --group plans --mode 0755 /workspace \
    && install --directory --owner plans --group plans --mode 0700 /var/lib/plans

WORKDIR /app
COPY plansurvive ./plansurvive
COPY plans ./plans
COPY runtime ./runtime
COPY activities ./activities
COPY workflows ./workflows
COPY features ./features
COPY client ./client
COPY apps ./apps
COPY worker.py ./
# -P: a file of the current directory, which may be a workspace, is never imported in place of a library.
RUN python -m compileall -q . \
    && printf '#!/bin/sh\nexec python -P -m plansurvive "$@"\n' > /usr/local/bin/plan && chmod 0755 /usr/local/bin/plan

ENV PYTHONPATH=/app PLANS_WORKSPACE=/workspace PLANS_STATE_DIR=/var/lib/plans PLANS_CACHE_DIR=/tmp/plans
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=15s --start-period=30s --retries=3 CMD ["python", "-m", "plansurvive.runtime.health"]
CMD ["python", "/app/worker.py"]

# docker build --target web: the worker's files, with the libraries of the page.
FROM worker AS web
USER 0:0
COPY docker/web.lock /tmp/web.lock
RUN --mount=type=secret,id=pip.conf,target=/run/build/pip.conf --mount=type=secret,id=ca.pem,target=/run/build/ca.pem \
    if [ -s /run/build/pip.conf ]; then export PIP_CONFIG_FILE=/run/build/pip.conf; fi; \
    if [ -s /run/build/ca.pem ]; then export PIP_CERT=/run/build/ca.pem; fi; \
    pip install --require-hashes --requirement /tmp/web.lock && rm /tmp/web.lock
ENV PLANS_WEB_LISTEN=0.0.0.0:7243 PLANS_AUTO_WORKER=off
USER 10001:10001
EXPOSE 7243
HEALTHCHECK --interval=30s --timeout=15s --start-period=30s --retries=3 CMD ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 7243), 5)"]
CMD ["python", "-m", "plansurvive.apps.web"]

# The last one is what a build without a target makes.
FROM worker
