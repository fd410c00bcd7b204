"""Serves the vectors of wordllama in the form of OpenAI. Prints its port."""

import json
import pathlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import wordllama

# The package ships its tokenizer in the folder of a cache, and would download it otherwise.
model = wordllama.WordLlama.load(
    cache_dir=pathlib.Path(wordllama.__file__).parent, disable_download=True
)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = model.embed(body["input"]).tolist()
        data = [
            {"object": "embedding", "index": at, "embedding": vector}
            for at, vector in enumerate(vectors)
        ]
        reply = json.dumps({"object": "list", "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
