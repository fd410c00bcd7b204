# The base image of this machine, in place of the public node:24-bookworm-slim: Debian as debootstrap made it,
# the pinned Node, the npm of this machine, and the user `node` (1000).
FROM parley-local/debian:1
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
# The builds trust the certificates of this machine, because a registry of packages may have its own.
COPY certificates /etc/ssl/certs/ca-certificates.crt
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
  && groupadd --gid 1000 node \
  && useradd --uid 1000 --gid node --shell /bin/sh --create-home node
ENV LANG=C.UTF-8 NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
CMD ["node"]
