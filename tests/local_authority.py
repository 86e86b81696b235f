"""A real time-stamping authority on this machine: `openssl ts` behind HTTP. TEST, no evidence."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CONFIG = """
[req]
distinguished_name = dn
prompt = no
[dn]
CN = {name} root
[ca_ext]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[tsa_ext]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa]
default_tsa = tsa_config
[tsa_config]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
ess_cert_id_alg = sha256
"""


def make_authority(folder: Path, name: str = "TEST authority") -> Path:
    """Keys and certificates of an authority called `name` in `folder`; its CA is folder/ca.pem."""
    folder.mkdir(parents=True)
    config = folder / "openssl.cnf"
    config.write_text(CONFIG.format(name=name, folder=folder))
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-config", "openssl.cnf"]
    commands = [
        ["req", "-new", "-x509", "-days", "3650", "-keyout", "ca.key", "-out", "ca.pem", "-extensions", "ca_ext", *new],
        ["req", "-new", "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", f"/CN={name}", *new],
        ["x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650"],
    ]
    commands[-1] += ["-out", "tsa.pem", "-extfile", "openssl.cnf", "-extensions", "tsa_ext"]
    for command in commands:
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
    (folder / "serial").write_text("01\n")
    return folder


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The URL at which the authority in `folder` answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            command = ["openssl", "ts", "-reply", "-config", "openssl.cnf", "-queryfile", "/dev/stdin"]
            done = subprocess.run(command, input=query, cwd=folder, capture_output=True, check=False)
            self.send_response(200 if done.returncode == 0 else 500)
            self.send_header("Content-Length", str(len(done.stdout)))
            self.end_headers()
            self.wfile.write(done.stdout)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
