# NOT EventStoreDB: the embedded event store of this repository as a server. It speaks EventStoreDB's protocol and
# passes the same contract suite. It is used where the image of EventStoreDB is not available.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 EVENTSTORE_PORT=2113 DATA_DIR=/var/lib/eventstore
COPY app /opt/parley
RUN mkdir -p /var/lib/eventstore && chown node:node /var/lib/eventstore
USER node
VOLUME /var/lib/eventstore
EXPOSE 2113
LABEL org.opencontainers.image.title="Parley's embedded event store (not EventStoreDB)"
CMD ["node", "/opt/parley/infra/embedded-eventstore/main.ts"]
