# Redis of Debian's packages. Takes the arguments of the public image of Redis: `redis-server --option value …`.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \
  && apt-get install --yes --no-install-recommends redis-server \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
WORKDIR /data
RUN chown redis:redis /data
USER redis
VOLUME /data
EXPOSE 6379
# Unlike in a system's own service, it is reached from outside its network namespace.
CMD ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--dir", "/data"]
