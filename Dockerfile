# The platform on one node: `docker build -t svc .`, then `docker compose up -d` or what docs/operations.md says.
# One service alone: `docker build -t svc-service --target service .`, then docs/scale-out.md "One process per service".
FROM docker.io/library/node:26-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
# Scripts are left out: the build needs none of its packages' own, and the image has its Node.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node scripts/build.js && npm pack --ignore-scripts --pack-destination /tmp

FROM docker.io/library/node:26-slim AS base
# Bubblewrap confines plugins where the engine lets a container make namespaces of its own; elsewhere Node's permission
# model does (`svc doctor` says which). WITH_BUBBLEWRAP=0 builds without Debian's mirror.
ARG WITH_BUBBLEWRAP=1
RUN if [ "$WITH_BUBBLEWRAP" = 1 ]; then \
      apt-get update && apt-get install --yes --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/*; \
    fi
COPY --from=build /tmp/svc-platform-*.tgz /tmp/
RUN npm install --global --omit=dev --ignore-scripts --no-audit --no-fund /tmp/svc-platform-*.tgz \
  && rm -rf /tmp/* /root/.npm \
  && mkdir -p /project /var/lib/svc && chown 1000:1000 /project /var/lib/svc

# The data folder lies inside of the volume, not on its root: `svc restore` replaces it as a whole.
ENV NODE_ENV=production SVC_HOME=/var/lib/svc/data SVC_GATEWAY_HOST=0.0.0.0
USER 1000:1000
WORKDIR /project
VOLUME /var/lib/svc
STOPSIGNAL SIGTERM

# Runs the service that the arguments name. Probe /api/v1/health and /api/v1/ready, which all services have.
FROM base AS service
ENV SVC_REST_HOST=0.0.0.0 SVC_WORKFLOW_HOST=0.0.0.0 SVC_MARKETPLACE_HOST=0.0.0.0 SVC_STATE_HOST=0.0.0.0
EXPOSE 4000 5050 5070 7777 7778
ENTRYPOINT ["svc", "start"]

FROM base AS platform
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:4000/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["svc"]
CMD ["up"]
