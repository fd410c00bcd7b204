"""Contents of types that Schemathesis cannot generate by itself; it loads this module as SCHEMATHESIS_HOOKS."""

import schemathesis
from hypothesis import strategies

# Parts of resumable uploads.
schemathesis.openapi.media_type("application/offset+octet-stream", strategies.binary(max_size=64))
