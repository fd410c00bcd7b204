/*
 * Many websocket clients in one thread: as cheap as a client can be, so that the server is the limit.
 *
 *   sockets PORT REQUESTS TRIGGER_PORT TOPIC TEMPLATE PREFACE SEQUENCE MESSAGE_BYTES
 *
 * REQUESTS: a file with a record for each connection: its length in decimal, a newline, the bytes to open it with
 * (an HTTP request); the same for the bytes to send once it is open.
 * A trigger makes the server send one event to all sockets. With a TOPIC, TRIGGER_PORT is a Redis and a trigger is
 * SPUBLISH of lines of TEMPLATE with @SEQ@ replaced by SEQUENCE, SEQUENCE + 1, …; PREFACE is sent before (AUTH).
 * Without one, a trigger is TEMPLATE as it is, or one byte if that is empty, to TRIGGER_PORT.
 * With MESSAGE_BYTES, frames after the first one of 6 bytes are parts of a stream of messages of that length, which are
 * counted instead of the frames: NATS over websockets, where 6 bytes are the PONG that follows a subscription, or a PING.
 *
 * Commands on stdin, an answer of one line of JSON each:
 *   open COUNT FRAMES                      opens connections; done when each has had so many frames
 *   fan SECONDS PER_TICK                   triggers, waits until all sockets have all frames, triggers again
 *   handshakes WARM_UP_SECONDS SECONDS N   N at a time: opens, waits for one frame, closes, opens the next
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum state { HEAD, FRAMES };

/* Text frames up to this length are pings of the protocol: answered, not counted. */
#define PING_BYTES 24

struct connection {
  int fd;
  enum state state;
  int matched; /* bytes of the empty line at the end of the head */
  unsigned char header[14];
  int have;
  unsigned long long left, length;
  int opcode;
  unsigned long frames;
  unsigned long long message_left; /* of the current message of a stream */
  int is_stream, is_message;
  int stays;
  size_t request;
};

struct request {
  char *open, *greeting;
  size_t open_length, greeting_length;
};

static struct request *requests;
static size_t request_count, next_request;
static struct connection **connections;
static size_t connection_count, connection_room;
static unsigned long long total_frames;
static int poller, trigger_fd = -1;
static int server_port;
static const char *topic, *frame_template;
static unsigned long long sequence, message_bytes;
static unsigned char input[1 << 18];

static void fail(const char *what) {
  fprintf(stderr, "sockets: %s (%s)\n", what, strerror(errno));
  exit(1);
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec + at.tv_nsec / 1e9;
}

static double cpu(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void write_all(int fd, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, bytes, length);
    if (written < 0 && errno == EAGAIN) continue;
    if (written <= 0) fail("a write failed");
    bytes += written;
    length -= written;
  }
}

static int connect_to(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("could not connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

static struct connection *open_next(void) {
  if (next_request == request_count) return NULL;
  struct connection *connection = calloc(1, sizeof *connection);
  connection->fd = connect_to(server_port);
  connection->request = next_request++;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->fd, &event) < 0) fail("could not watch a socket");
  write_all(connection->fd, requests[connection->request].open, requests[connection->request].open_length);
  return connection;
}

static void send_masked(int fd, int opcode, const char *text) {
  char frame[64] = {(char)(0x80 | opcode), (char)(0x80 | strlen(text))};
  memcpy(frame + 6, text, strlen(text)); /* a mask of zeros */
  write_all(fd, frame, 6 + strlen(text));
}

static void count_frame(struct connection *connection) {
  connection->frames++;
  total_frames++;
}

/* Counts the messages of a stream that end in these bytes. What begins with a P has 6 bytes, and is not counted. */
static void take_stream(struct connection *connection, const unsigned char *bytes, size_t count) {
  while (count > 0) {
    if (connection->message_left == 0) {
      connection->is_message = bytes[0] != 'P';
      connection->message_left = connection->is_message ? message_bytes : 6;
    }
    size_t part = count < connection->message_left ? count : connection->message_left;
    bytes += part;
    count -= part;
    connection->message_left -= part;
    if (connection->message_left == 0 && connection->is_message) count_frame(connection);
  }
}

static void end_of_frame(struct connection *connection) {
  if (connection->opcode == 9) send_masked(connection->fd, 10, "");
  else if (connection->opcode == 8) {
    fprintf(stderr, "sockets: the server closed a socket\n");
    exit(1);
  } else if (message_bytes > 0) {
    if (!connection->is_stream) count_frame(connection);
    connection->is_stream |= connection->length == 6;
  } else if (connection->opcode == 1 && connection->length <= PING_BYTES) {
    send_masked(connection->fd, 1, "{\"frame\":\"pong\"}");
  } else count_frame(connection);
  connection->have = 0;
}

/* How many bytes of header the frame has, as far as that is known. */
static int header_length(const struct connection *connection) {
  if (connection->have < 2) return 2;
  int length = connection->header[1] & 0x7f;
  return length == 126 ? 4 : length == 127 ? 10 : 2;
}

static void take(struct connection *connection, const unsigned char *bytes, size_t count) {
  size_t at = 0;
  while (connection->state == HEAD && at < count) {
    connection->matched = bytes[at] == "\r\n\r\n"[connection->matched] ? connection->matched + 1 : bytes[at] == '\r';
    at++;
    if (connection->matched < 4) continue;
    connection->state = FRAMES;
    struct request *request = &requests[connection->request];
    if (request->greeting_length > 0) write_all(connection->fd, request->greeting, request->greeting_length);
  }
  while (at < count) {
    if (connection->left > 0) {
      size_t part = count - at < connection->left ? count - at : connection->left;
      if (connection->is_stream && connection->opcode < 8) take_stream(connection, bytes + at, part);
      at += part;
      connection->left -= part;
      if (connection->left == 0) end_of_frame(connection);
      continue;
    }
    connection->header[connection->have++] = bytes[at++];
    if (connection->have < header_length(connection)) continue;
    int length = connection->header[1] & 0x7f;
    connection->opcode = connection->header[0] & 0x0f;
    connection->left = length < 126 ? length : 0;
    for (int i = 2; i < connection->have; i++) connection->left = connection->left << 8 | connection->header[i];
    connection->length = connection->left;
    if (connection->left == 0) end_of_frame(connection);
  }
}

/* Reads what there is. 0: the server ended the connection. */
static int read_from(struct connection *connection) {
  ssize_t count = read(connection->fd, input, sizeof input);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (count <= 0) return 0;
  if (connection->state == HEAD && connection->matched == 0 && memcmp(input, "HTTP/1.1 101", 12) != 0) {
    fprintf(stderr, "sockets: refused: %.*s\n", (int)(count < 300 ? count : 300), input);
    exit(1);
  }
  take(connection, input, count);
  return 1;
}

static char trigger_text[1 << 20];

static void trigger(int per_tick) {
  if (topic[0] == '\0' && frame_template[0] != '\0') {
    size_t length = strlen(frame_template);
    for (int i = 0; i < per_tick; i++) memcpy(trigger_text + i * length, frame_template, length);
    write_all(trigger_fd, trigger_text, per_tick * length);
    return;
  }
  if (topic[0] == '\0') {
    memset(trigger_text, 'x', per_tick);
    write_all(trigger_fd, trigger_text, per_tick);
    return;
  }
  static char payload[1 << 19];
  size_t length = 0;
  for (int i = 0; i < per_tick; i++, sequence++) {
    if (i > 0) payload[length++] = '\n';
    const char *from = frame_template;
    for (const char *mark; (mark = strstr(from, "@SEQ@")) != NULL; from = mark + 5) {
      memcpy(payload + length, from, mark - from);
      length += mark - from;
      length += sprintf(payload + length, "%llu", sequence);
    }
    strcpy(payload + length, from);
    length += strlen(from);
  }
  int head = sprintf(trigger_text, "*3\r\n$8\r\nSPUBLISH\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(topic), topic, length);
  memcpy(trigger_text + head, payload, length);
  memcpy(trigger_text + head + length, "\r\n", 2);
  write_all(trigger_fd, trigger_text, head + length + 2);
}

/* Answers are not waited for, but an error among them is the end. */
static void read_trigger(void) {
  ssize_t count = read(trigger_fd, input, sizeof input);
  if (count == 0 || (count > 0 && (input[0] == '-' || memcmp(input, "HTTP/1.1 4", 10) == 0))) {
    fprintf(stderr, "sockets: the trigger failed: %.*s\n", (int)count, input);
    exit(1);
  }
}

/* Handles what has come, waiting at most `ms`. Its own end of a connection is for `ended`. */
static void handle(int ms, void (*progress)(struct connection *)) {
  static struct epoll_event events[1024];
  int count = epoll_wait(poller, events, 1024, ms);
  for (int i = 0; i < count; i++) {
    struct connection *connection = events[i].data.ptr;
    if (connection == NULL) read_trigger();
    else if (connection == (void *)&poller) continue;
    else if (!read_from(connection)) {
      fprintf(stderr, "sockets: the server ended a connection\n");
      exit(1);
    } else if (progress != NULL) progress(connection);
  }
}

static void wait_until(unsigned long long frames) {
  double late = now() + 20;
  while (total_frames < frames) {
    handle(1000, NULL);
    if (now() > late) {
      fprintf(stderr, "sockets: %llu frames of %llu came within 20 s\n", total_frames, frames);
      exit(1);
    }
  }
}

static void open_many(size_t count, unsigned long frames) {
  double started = now();
  size_t first = connection_count;
  connection_room = connection_count + count;
  connections = realloc(connections, connection_room * sizeof *connections);
  for (size_t opened = 0, waiting = first; waiting < first + count;) {
    if (now() > started + 120) fail("opening took too long");
    if (opened < count && connection_count - waiting < 100) {
      connections[connection_count] = open_next();
      if (connections[connection_count] == NULL) fail("too few requests");
      connections[connection_count++]->stays = 1;
      opened++;
      handle(0, NULL);
    } else handle(100, NULL);
    while (waiting < connection_count && connections[waiting]->frames >= frames) waiting++;
  }
  printf("{\"opened\":%zu,\"seconds\":%f}\n", count, now() - started);
}

static void fan(double seconds, int per_tick) {
  double started = now(), cpu_before = cpu();
  unsigned long long before = total_frames;
  while (now() < started + seconds) {
    unsigned long long due = total_frames + connection_count * (unsigned long long)per_tick;
    trigger(per_tick);
    wait_until(due);
  }
  double took = now() - started;
  printf("{\"frames\":%llu,\"seconds\":%f,\"cpu\":%f}\n", total_frames - before, took, (cpu() - cpu_before) / took);
}

static unsigned long handshakes_done;
static int handshakes_going, handshakes_open;

static void next_handshake(struct connection *connection) {
  if (connection->frames == 0 || connection->stays) return;
  handshakes_done++;
  close(connection->fd);
  free(connection);
  handshakes_open--;
  if (!handshakes_going) return;
  if (open_next() != NULL) handshakes_open++;
  else handshakes_going = 0;
}

static void handshakes(double warm_up, double seconds, int at_a_time) {
  double from = now() + warm_up, until = from + seconds, started = 0, cpu_before = 0;
  unsigned long before = 0;
  handshakes_done = 0;
  handshakes_going = 1;
  for (; handshakes_open < at_a_time && open_next() != NULL; handshakes_open++) continue;
  while (now() < until && handshakes_going) {
    if (started == 0 && now() >= from) started = now(), cpu_before = cpu(), before = handshakes_done;
    handle(100, next_handshake);
  }
  if (started == 0) fail("the requests were used up before the end of the warm-up");
  double took = now() - started, used = cpu() - cpu_before;
  unsigned long counted = handshakes_done - before;
  for (handshakes_going = 0; handshakes_open > 0 && now() < until + 20;) handle(100, next_handshake);
  printf("{\"handshakes\":%lu,\"seconds\":%f,\"cpu\":%f}\n", counted, took, used / took);
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail(path);
  fseek(file, 0, SEEK_END);
  *length = ftell(file);
  rewind(file);
  char *bytes = malloc(*length + 1);
  if (fread(bytes, 1, *length, file) != *length) fail(path);
  bytes[*length] = '\0';
  fclose(file);
  return bytes;
}

static char *record(char **at, size_t *length) {
  *length = strtoul(*at, at, 10);
  char *bytes = *at + 1;
  *at = bytes + *length;
  return bytes;
}

int main(int argc, char **argv) {
  if (argc != 9) fail("eight arguments are needed");
  size_t length;
  server_port = atoi(argv[1]);
  char *at = read_file(argv[2], &length);
  for (char *end = at + length; at < end; request_count++) {
    if (request_count % 1024 == 0) requests = realloc(requests, (request_count + 1024) * sizeof *requests);
    requests[request_count].open = record(&at, &requests[request_count].open_length);
    requests[request_count].greeting = record(&at, &requests[request_count].greeting_length);
  }
  topic = argv[4];
  frame_template = argv[5];
  sequence = strtoull(argv[7], NULL, 10);
  message_bytes = strtoull(argv[8], NULL, 10);
  poller = epoll_create1(0);
  if (atoi(argv[3]) > 0) {
    trigger_fd = connect_to(atoi(argv[3]));
    write_all(trigger_fd, argv[6], strlen(argv[6]));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, trigger_fd, &event);
  }
  /* Commands wake the loop, which otherwise only answers pings. */
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &poller};
  epoll_ctl(poller, EPOLL_CTL_ADD, 0, &event);
  fcntl(0, F_SETFL, O_NONBLOCK);
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (;;) {
    char line[256];
    double a, b;
    int c;
    ssize_t count = read(0, line, sizeof line - 1);
    if (count == 0) return 0;
    if (count < 0) {
      handle(1000, NULL);
      continue;
    }
    line[count] = '\0';
    if (sscanf(line, "open %lf %lf", &a, &b) == 2) open_many((size_t)a, (unsigned long)b);
    else if (sscanf(line, "fan %lf %d", &a, &c) == 2) fan(a, c);
    else if (sscanf(line, "handshakes %lf %lf %d", &a, &b, &c) == 3) handshakes(a, b, c);
    else fail(line);
  }
}
