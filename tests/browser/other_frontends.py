"""Each widget in Notebook 7 and Voilà, by hand: ``python tests/browser/other_frontends.py``.

Both have to be installed beside this package (``pip install "notebook>=7" voila``). One control of each
widget is operated; what the page then shows can only come from the kernel.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

CELLS = (
    """
import json, pathlib, tempfile
import crystal_nb as cnb
config = cnb.samples.config()
corpus = cnb.parse(cnb.scan(config=config), config=config)
said = [{"kind": "say", "id": str(n), "text": f"words {n}"} for n in range(3)]
file = pathlib.Path(tempfile.mkdtemp()) / "chat.jsonl"
_ = file.write_text("".join(json.dumps(record) + "\\n" for record in said))
@cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl")
def mytool(record, session):
    yield cnb.Message(id=record["id"], type="user", content=record["text"])
""",
    "cnb.widgets.HashInspector(corpus)",
    "cnb.widgets.ReimportLab(scenario='changed-unseen')",
    "cnb.widgets.ImportBrowser(corpus)",
    "cnb.widgets.ParserWorkbench(mytool, file)",
)
RUN = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  const w = app.shell.currentWidget;
  await w.context.ready;
  await w.sessionContext.ready;
  await app.commands.execute('notebook:run-all-cells');
}"""


def operate(page: Any) -> dict[str, str]:
    """Use a control of each widget; what came of it."""
    from playwright.sync_api import expect

    def hash_inspector():
        widget = page.locator(".cnb-widget", has_text="Content hash").first
        widget.get_by_role("textbox", name="New value").fill("hello!")
        widget.get_by_role("button", name="Apply", exact=True).click()
        expect(widget.locator("[role=status]")).to_have_attribute("data-changed", "yes")

    def reimport_lab():
        page.get_by_role("button", name="Next", exact=True).click()
        expect(page.locator("[data-step]")).to_have_attribute("data-step", "1")

    def import_browser():
        page.get_by_role("combobox", name="Source").select_option("codex")
        expect(page.locator("[data-count]")).to_have_attribute("data-count", "3")
        grid = page.get_by_role("grid", name="Conversations").locator("tbody tr")
        grid.nth(1).click()
        expect(grid.nth(1)).to_have_attribute("aria-selected", "true")

    def parser_workbench():
        page.get_by_role("grid", name="Raw records").locator("tbody tr").nth(2).click()
        expect(page.locator("[data-record='2'][data-message='2']")).to_contain_text("words 2")

    found = {}
    for step in (hash_inspector, reimport_lab, import_browser, parser_workbench):
        try:
            step()
            found[step.__name__] = "works"
        except Exception as error:  # the others are still tried
            found[step.__name__] = f"fails: {str(error)[:400]}"
    return found


def main() -> None:
    """Try both and say what was found."""
    import nbformat.v4 as nb

    sys.path.insert(0, str(Path(__file__).parent.parent))
    from browser import conftest

    made = nb.new_notebook(cells=[nb.new_code_cell(cell, id=f"c{n}") for n, cell in enumerate(CELLS)])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    python = [sys.executable, "-m"]
    for name in ("notebook", "voila"):
        with tempfile.TemporaryDirectory() as folder, conftest.chromium("/usr/bin/chromium") as browser:
            place, port, token = Path(folder), conftest.free_port(), secrets.token_hex(16)
            (place / "work").mkdir()
            (place / "work" / "all.ipynb").write_text(json.dumps(made))
            base = f"http://127.0.0.1:{port}"
            if name == "notebook":
                command = [*python, "notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
                command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={place / 'work'}"]
                command += ["--JupyterNotebookApp.expose_app_in_browser=True"]
                ready, url = f"{base}/api?token={token}", f"{base}/notebooks/all.ipynb?token={token}"
            else:
                command = [*python, "voila", str(place / "work" / "all.ipynb"), "--no-browser", f"--port={port}"]
                command += ["--Voila.ip=127.0.0.1"]
                ready = url = base
            with (place / "log").open("wb") as out:
                env = conftest.environment(place) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
                server = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT)
            try:
                conftest.wait_for(ready, server, place / "log")
                with conftest.opened(browser, {}) as lab:
                    lab.page.set_default_timeout(60_000)
                    lab.page.goto(url)
                    if name == "notebook":
                        lab.page.wait_for_function("() => window.jupyterapp && window.jupyterapp.shell.currentWidget")
                        lab.page.evaluate(RUN)
                    lab.page.locator(".cnb-widget").nth(3).wait_for(state="attached")
                    print(name, version(name), "with ipywidgets", version("ipywidgets"))
                    for widget, what in operate(lab.page).items():
                        print(f"  {widget}: {what}")
                    print("  errors:", lab.problems, "  requests elsewhere:", lab.outside)
                    lab.page.screenshot(path=os.environ.get("SHOT", "/tmp") + f"/{name}.png", full_page=True)
            finally:
                conftest.stop(server, place)


if __name__ == "__main__":
    main()
