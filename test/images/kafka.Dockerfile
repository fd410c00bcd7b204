# Kafka: the jars of test/support/kafka/pom.xml on a Java of Debian's packages. Configured as the public
# apache/kafka is: KAFKA_SOME_SETTING becomes some.setting.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
# Java's package links its manual pages, and fails where their folder is missing.
RUN mkdir -p /usr/share/man/man1 \
  && apt-get update \
  && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY jars /opt/kafka/libs
COPY kafka-entrypoint.sh /opt/kafka/entrypoint.sh
RUN useradd --system --shell /usr/sbin/nologin kafka \
  && mkdir -p /var/lib/kafka/data /opt/kafka/config \
  && chown -R kafka /var/lib/kafka /opt/kafka/config
USER kafka
VOLUME /var/lib/kafka/data
EXPOSE 9092
CMD ["/bin/sh", "/opt/kafka/entrypoint.sh"]
