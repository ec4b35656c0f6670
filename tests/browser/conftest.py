"""A real JupyterLab server and Debian's Chromium; every wait is on a promise or an assertion that retries."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

if "playwright" in os.environ.get("CRYSTAL_NB_REQUIRE", "").split(",") and not find_spec("playwright"):
    raise pytest.UsageError("playwright is required here and missing")  # the test files would skip

SECONDS = 60
"""For one step; machines are slow when they are busy."""
PATIENCE = 20
"""Seconds that a server has to end its kernels and itself."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-default-apps",
    "--no-default-browser-check",
    "--disable-features=OptimizationHints,MediaRouter,Translate",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "apputils-extension/themes": {"theme": "JupyterLab Light"},
    "docmanager-extension/plugin": {"autosave": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
FOLDERS = {
    "HOME": "home",
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "IPYTHONDIR": "ipython",
}


def environment(place: Path) -> dict[str, str]:
    """Nothing of the machine's own Jupyter, and this Python's kernel."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON"))}
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    for name, folder in FOLDERS.items():
        (place / folder).mkdir(parents=True, exist_ok=True)
        kept[name] = str(place / folder)
    return kept | {"JUPYTER_PLATFORM_DIRS": "1", "JUPYTER_PREFER_ENV_PATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + SECONDS * 2
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)  # a server that is about to listen can't say so
    raise RuntimeError(f"no server at {url}:\n{log.read_text()[-3000:]}")


@contextmanager
def jupyterlab(place: Path) -> Iterator[dict[str, Any]]:
    """A server of its own; notebooks go to ``work``."""
    work, log, port, token = place / "work", place / "server.log", free_port(), secrets.token_hex(16)
    work.mkdir(parents=True)
    env = environment(place)
    for plugin, values in SETTINGS.items():
        file = place / "settings" / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={work}"]
    command += ["--ServerApp.terminals_enabled=False", "--LabApp.expose_app_in_browser=True"]
    command += ["--LabApp.news_url=None", "--LabApp.extension_manager=readonly"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if leash := shutil.which("setpriv"):  # a test run that is killed takes its server with it
        command = [leash, "--pdeathsig", "TERM", *command]
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/api?token={token}", server, log)
        yield {"url": f"http://127.0.0.1:{port}", "token": token, "work": work}
    finally:
        stop(server, place)


def stop(server: subprocess.Popen[bytes], place: Path) -> None:
    """End the server, which takes its kernels with it; what is left of either after that is killed."""
    server.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(PATIENCE)
    end = time.monotonic() + 20
    while (left := running(place)) and time.monotonic() < end:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)  # a killed process is there until the system comes to it
    server.wait(20)


def running(place: Path) -> list[int]:
    """Processes of a server that lives in this folder: kernels have sessions of their own, but its environment."""
    mark = f"JUPYTER_RUNTIME_DIR={place / 'runtime'}".encode()
    return [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/environ") if mark in _read(p).split(b"\0")]


def _read(path: Path) -> bytes:
    with suppress(OSError):  # somebody else's, or gone meanwhile
        return path.read_bytes()
    return b""


WITHIN = """
const within = (what, promise) => Promise.race([promise, new Promise((_, no) =>
  setTimeout(() => no(new Error('too slow: ' + what)), MILLISECONDS))]);
""".replace("MILLISECONDS", str(SECONDS * 1000))


class Lab:
    """A notebook open in JupyterLab; ``page.evaluate`` has no timeout, so each promise is raced against one."""

    def __init__(self, page: Any, server: dict[str, Any]) -> None:
        self.page, self.server = page, server
        self.outside: list[str] = []
        self.problems: list[str] = []

    def run(self, *cells: str, name: str = "test") -> Lab:
        """Open a notebook of these cells and run them all; an error in one fails the test."""
        import nbformat.v4 as nb

        made = nb.new_notebook(cells=[nb.new_code_cell(cell, id=f"c{n}") for n, cell in enumerate(cells)])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = f"{name}.ipynb"
        (self.server["work"] / path).write_text(json.dumps(made))
        self.page.goto(f"{self.server['url']}/doc/tree/{path}?reset&token={self.server['token']}")
        self.page.wait_for_function("() => window.jupyterapp")
        failed = self.page.evaluate(
            "async (path) => {"
            + WITHIN
            + """
            const app = window.jupyterapp;
            await within('app.restored', app.restored);
            const w = await within('open', app.commands.execute('docmanager:open', {path, factory: 'Notebook'}));
            await within('context', w.context.ready);
            await within('kernel', w.sessionContext.ready);
            window.__nb = w;
            app.shell.activateById(w.id);
            await within('run all', app.commands.execute('notebook:run-all-cells'));
            // the notebook takes the focus when it is painted, and keys pressed before that would go elsewhere
            for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
            return w.content.widgets.filter(c => c.model.type === 'code')
              .flatMap(c => c.model.outputs.toJSON()).filter(o => o.output_type === 'error')
              .map(o => o.ename + ': ' + o.evalue);
            }""",
            path,
        )
        assert not failed, failed
        return self

    def show(self, code: str) -> None:
        """Run code as the last cell, so that what it displays is in the page."""
        self.page.evaluate(
            "async (code) => {"
            + WITHIN
            + """
            const app = window.jupyterapp, cells = window.__nb.content.widgets;
            window.__nb.content.activeCellIndex = cells.length - 1;
            cells[cells.length - 1].model.sharedModel.setSource(code);
            await within('run', app.commands.execute('notebook:run-cell')); }""",
            code,
        )

    def kernel(self, code: str) -> str:
        """Run code in the notebook's kernel; its result as text."""
        answer = self.page.evaluate(
            "async (code) => {"
            + WITHIN
            + """
            const kernel = window.__nb.sessionContext.session.kernel;
            const future = kernel.requestExecute({code, silent: false, store_history: false});
            let out = '';
            future.onIOPub = m => {
              if (m.header.msg_type === 'execute_result') out = m.content.data['text/plain'];
              if (m.header.msg_type === 'error') out = 'ERROR ' + m.content.ename + ': ' + m.content.evalue; };
            await within('kernel', future.done);
            return out; }""",
            code,
        )
        return str(answer)

    def theme(self, name: str) -> None:
        """Switch the theme and wait until it is painted; the splash screen comes up meanwhile."""
        from playwright.sync_api import expect

        self.page.evaluate(
            "async (theme) => {"
            + WITHIN
            + "await within('theme', window.jupyterapp.commands.execute('apputils:change-theme', {theme})); }",
            name,
        )
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)

    def quiet(self) -> None:
        """Nothing ran that should not: no dialog, no error on the console, no request to elsewhere."""
        assert self.problems == []
        assert self.outside == []

    def close(self) -> None:
        self.page.evaluate("async () => { await window.__nb?.sessionContext.shutdown(); }")


@contextmanager
def opened(browser: Any, server: dict[str, Any], **context: Any) -> Iterator[Lab]:
    """A page of its own that reaches nothing but the server and writes down what goes wrong."""
    made = browser.new_context(
        viewport={"width": 1000, "height": 900}, reduced_motion="reduce", locale="en-US", **context
    )
    made.set_default_timeout(SECONDS * 1000)
    lab = Lab(made.new_page(), server)

    def guard(route: Any) -> None:
        if urlsplit(route.request.url).hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            lab.outside.append(route.request.url)
            route.abort()

    def asked(dialog: Any) -> None:
        lab.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    made.route("**/*", guard)
    lab.page.on("dialog", asked)
    lab.page.on("pageerror", lambda error: lab.problems.append(str(error)))
    lab.page.on("console", lambda m: lab.problems.append(m.text) if m.type == "error" else None)
    try:
        yield lab
    finally:
        made.close()


@contextmanager
def chromium(path: str) -> Iterator[Any]:
    """Debian's browser, driven by Playwright; nothing is downloaded."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="package")
def browser(pytestconfig: pytest.Config) -> Iterator[Any]:
    above = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).parent.parent / "conftest.py"))
    assert above is not None
    with chromium(above.require("chromium")) as found:
        yield found


@pytest.fixture(scope="package")
def server(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with jupyterlab(tmp_path_factory.mktemp("lab") / "place") as found:
        yield found


@pytest.fixture
def lab(browser: Any, server: dict[str, Any]) -> Iterator[Lab]:
    with opened(browser, server) as found:
        yield found
        found.close()


@pytest.fixture
def serverless(browser: Any) -> Iterator[Lab]:
    """A page without a server, for files."""
    with opened(browser, {}) as found:
        yield found


@pytest.fixture(scope="package")
def axe() -> str:
    """The source of axe-core, which is no part of this repository: ``npm pack axe-core`` somewhere."""
    path = os.environ.get("CRYSTAL_NB_AXE", "")
    if not Path(path).is_file():
        if "axe" in os.environ.get("CRYSTAL_NB_REQUIRE", "").split(","):
            pytest.fail("CRYSTAL_NB_AXE has to name axe.min.js here")
        pytest.skip("CRYSTAL_NB_AXE does not name axe.min.js")
    return Path(path).read_text(encoding="utf-8")


THEMES = ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast")


@pytest.fixture
def accessible(axe: str) -> Any:
    """A check that axe-core finds nothing in any theme."""

    def check(lab: Lab, selector: str) -> None:
        lab.page.evaluate(axe)  # as a script of the page, it may not be loaded from elsewhere
        for theme in THEMES:
            lab.theme(theme)
            found = lab.page.evaluate("async (where) => (await axe.run(where)).violations", selector)
            told = [f"{v['id']}: {v['nodes'][0]['html'][:200]} {v['nodes'][0]['failureSummary']}" for v in found]
            assert not told, f"{theme}: {told}"

    return check
