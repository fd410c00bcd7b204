# Caddy of Debian's packages, for the proxy of infra/compose.yaml.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \
  && apt-get install --yes --no-install-recommends caddy wget \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
USER caddy
EXPOSE 8080
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
