# Debian, not Alpine: Temporal's native core is linked against glibc. Node 24 has long-term support.
# For a build that can be repeated, name the image by its digest: --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY workflows workflows
COPY activities activities
COPY docs/verify docs/verify
# Compiles to dist/ and bundles the workflows there, so no worker has to do it at start.
RUN npm run build

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM ${NODE_IMAGE}
# Temporal's core reads the system's certificates when it connects over TLS, not those inside Node.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
# Else glibc gives the threads of Temporal's core an arena each, and an idle process 20 MB more.
ENV MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY src/cli/bin.mjs src/cli/bin.mjs
# Everything above belongs to root: the process cannot change its own code.
USER node
EXPOSE 3000
ENTRYPOINT ["node", "src/cli/bin.mjs"]
CMD ["serve"]
