# Writes server.properties from the environment, by the rules of the public apache/kafka (`_` is a dot, `__` an
# underscore, `___` a dash), formats a folder that no broker has used, and becomes the broker.
set -eu

config=/opt/kafka/config/server.properties
data=${KAFKA_LOG_DIRS:=/var/lib/kafka/data}
export KAFKA_LOG_DIRS

env | grep '^KAFKA_' | grep -v -E '^KAFKA_(HEAP_OPTS|OPTS|JVM_PERFORMANCE_OPTS)=' | while IFS= read -r line; do
  name=$(printf '%s' "${line%%=*}" | sed -e 's/^KAFKA_//' -e 's/___/-/g' -e 's/__/%/g' -e 's/_/./g' -e 's/%/_/g')
  printf '%s=%s\n' "$(printf '%s' "$name" | tr '[:upper:]' '[:lower:]')" "${line#*=}"
done >"$config"

# What `kafka-storage format` would write, without starting a JVM for it.
random_id() { head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '='; }
if [ ! -e "$data/meta.properties" ]; then
  printf 'version=1\ncluster.id=%s\nnode.id=%s\ndirectory.id=%s\n' \
    "${CLUSTER_ID:-$(random_id)}" "$KAFKA_NODE_ID" "$(random_id)" >"$data/meta.properties"
fi

# The JVM's options are words, so this one variable is split on purpose.
# shellcheck disable=SC2086
exec java ${KAFKA_HEAP_OPTS:--Xms128m -Xmx512m} -XX:+UseSerialGC \
  -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
  -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info \
  -cp '/opt/kafka/libs/*' kafka.Kafka "$config"
