#!/usr/bin/env python3
"""Starts the S3 server of moto on a port of 127.0.0.1.

One request at a time: moto looks at a condition and then writes, and nothing keeps another request from coming in between.
"""

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
