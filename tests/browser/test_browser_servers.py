"""What the browser tests start, ends with them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from browser import conftest
from browser.conftest import jupyterlab, running

pytest.importorskip("playwright", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no list of processes here")

STARTED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from browser.conftest import jupyterlab
with jupyterlab(Path(sys.argv[2])) as server:
    print(server["url"], server["token"], flush=True)
    sys.stdin.read()
"""


def start_kernel(url, token):
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    asked = urllib.request.Request(f"{url}/api/kernels", json.dumps({"name": "python3"}).encode(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.status == 201


def wait_for_processes(place, count):
    """A process that is about to begin, or to become another, has no environment to know it by."""
    end = time.monotonic() + 60
    while len(seen := running(place)) < count and time.monotonic() < end:
        time.sleep(0.05)
    assert len(seen) >= count


def test_a_server_takes_its_kernels_with_it(tmp_path):
    place = tmp_path / "lab"
    with jupyterlab(place) as server:
        start_kernel(server["url"], server["token"])
        wait_for_processes(place, 2)
    assert running(place) == []


def test_a_setup_that_fails_leaves_nothing(tmp_path, monkeypatch):
    place = tmp_path / "lab"

    def never(*_):
        wait_for_processes(place, 1)
        raise RuntimeError("no server")

    monkeypatch.setattr(conftest, "wait_for", never)
    with pytest.raises(RuntimeError, match="no server"), jupyterlab(place):
        pass
    assert running(place) == []


def test_a_server_that_does_not_answer_is_ended_with_its_kernels(tmp_path, monkeypatch):
    monkeypatch.setattr(conftest, "PATIENCE", 1)
    place = tmp_path / "lab"
    with jupyterlab(place) as server:
        start_kernel(server["url"], server["token"])
        for pid in running(place):
            os.kill(pid, signal.SIGSTOP)
    assert running(place) == []


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed")
def test_a_test_run_that_is_killed_takes_its_server_with_it(tmp_path):
    place = tmp_path / "lab"
    tests = Path(__file__).parent.parent
    command = [sys.executable, "-c", STARTED, str(tests), str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        start_kernel(*run.stdout.readline().split())
        wait_for_processes(place, 2)
        run.kill()
    end = time.monotonic() + 60
    while running(place) and time.monotonic() < end:
        time.sleep(0.05)  # nobody is left to wait for it
    assert running(place) == []
