/*
 * The minimal fan-out: one frame written to every socket with write(2), and nothing else.
 *
 *   fan-out-writer FRAME_FILE
 *
 * FRAME_FILE holds the frame as it goes over the wire. Prints the port that sockets connect to and the port of its
 * trigger; answers each request with a fixed 101 and the frame, which confirms that the socket is in the list. Each byte
 * from the trigger writes the frame to all sockets once.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_SOCKETS 20000

static const char ANSWER[] =
  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

static char frame[1 << 20];
static ssize_t frame_length;
static int sockets[MOST_SOCKETS];
static int socket_count;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int listen_anywhere(int *port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 1024) < 0) fail("listen");
  getsockname(fd, (struct sockaddr *)&address, &length);
  *port = ntohs(address.sin_port);
  return fd;
}

/* Requests are short and come alone: they are read up to the empty line that ends them. */
static void accept_socket(int listener) {
  int fd = accept(listener, NULL, NULL), one = 1;
  char request[8192];
  size_t have = 0;
  if (fd < 0 || socket_count == MOST_SOCKETS) fail("accept");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  do {
    ssize_t count = read(fd, request + have, sizeof request - have - 1);
    if (count <= 0) fail("request");
    have += count;
    request[have] = '\0';
  } while (strstr(request, "\r\n\r\n") == NULL);
  if (write(fd, ANSWER, sizeof ANSWER - 1) != sizeof ANSWER - 1) fail("answer");
  if (write(fd, frame, frame_length) != frame_length) fail("frame");
  sockets[socket_count++] = fd;
}

int main(int argc, char **argv) {
  static char triggers[4096];
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL) fail("frame file");
  frame_length = fread(frame, 1, sizeof frame, file);
  int port, trigger_port;
  int listener = listen_anywhere(&port), trigger_listener = listen_anywhere(&trigger_port), trigger = -1;
  printf("%d %d\n", port, trigger_port);
  fflush(stdout);
  for (;;) {
    struct pollfd watched[] = {
      {listener, POLLIN, 0},
      {trigger < 0 ? trigger_listener : trigger, POLLIN, 0},
    };
    poll(watched, 2, -1);
    if (watched[0].revents) accept_socket(listener);
    if (!watched[1].revents) continue;
    if (trigger < 0) {
      trigger = accept(trigger_listener, NULL, NULL);
      continue;
    }
    ssize_t count = read(trigger, triggers, sizeof triggers);
    if (count <= 0) return 0;
    for (ssize_t event = 0; event < count; event++) {
      for (int i = 0; i < socket_count; i++) {
        if (write(sockets[i], frame, frame_length) != frame_length) fail("write");
      }
    }
  }
}
