# The worker. Its dependencies come from a lock with hashes; it runs as a user without rights.
FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

COPY docker/requirements.lock /tmp/requirements.lock
RUN pip install --require-hashes --requirement /tmp/requirements.lock && rm /tmp/requirements.lock

RUN useradd --uid 10001 --user-group --home-dir /nonexistent --shell /usr/sbin/nologin plans \
    && install --directory --owner plans --group plans --mode 0755 /workspace \
    && install --directory --owner plans --group plans --mode 0700 /var/lib/plans

WORKDIR /app
COPY plans ./plans
COPY runtime ./runtime
COPY activities ./activities
COPY workflows ./workflows
COPY worker.py ./
RUN python -m compileall -q .

ENV PYTHONPATH=/app PLANS_WORKSPACE=/workspace PLANS_STATE_DIR=/var/lib/plans PLANS_CACHE_DIR=/tmp/plans
USER 10001:10001
VOLUME ["/workspace", "/var/lib/plans"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=15s --start-period=30s --retries=3 CMD ["python", "-m", "runtime.health"]
CMD ["python", "/app/worker.py"]
