# The health check of the image: whether Parley answers on HOST and PORT. bash opens the connection itself, because another
# Node every two seconds would cost a twentieth of a core.
#
#   health.sh [path]      default: /health/live
host=${HOST:-127.0.0.1} port=${PORT:-8080}
# With port 0 Parley chooses one, which the file of a standalone process names.
if [[ $port -eq 0 && $(<"${DATA_DIR:-./data}/run.json") =~ \"baseUrl\":\ \"http://([^\"]*):([0-9]+)\" ]]; then
  port=${BASH_REMATCH[2]}
fi
case $host in
  0.0.0.0) host=127.0.0.1 ;;
  ::) host=::1 ;;
esac
exec 3<>"/dev/tcp/$host/$port" || exit 1
printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "${1:-/health/live}" >&3
read -r -t 4 line <&3
[[ $line == 'HTTP/1.1 200'* ]]
