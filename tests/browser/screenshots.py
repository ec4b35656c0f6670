"""Pictures of the widgets for the README: ``python tests/browser/screenshots.py [widget …]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).parent.parent.parent / "notebooks" / "images"
SAMPLES = """
import crystal_nb as cnb
config = cnb.samples.config()
corpus = cnb.parse(cnb.scan(config=config), config=config)
"""
WIDGETS = {
    "hash_inspector": SAMPLES
    + """
widget = cnb.widgets.HashInspector(corpus, other=1)
widget.edits = [("set", 0, "content", "Please add a test for the parser"), ("set", 0, "timestamp", "2026-01-01")]
widget
""",
    "import_browser": SAMPLES
    + """
with cnb.open_store("imports.db") as store:
    report = cnb.import_all(store, cnb.scan(config=config), config=config)
widget = cnb.widgets.ImportBrowser(corpus, report=report, selection=0)
widget
""",
    "parser_workbench": """
import json, pathlib
import crystal_nb as cnb
said = [{"kind": "say", "who": "user", "id": "1", "text": "Where are the apples?"}, {"kind": "ping"},
        {"kind": "say", "who": "assistant", "id": "2", "text": "In the basket."}, {"kind": "say", "who": "user"}]
file = pathlib.Path("chat.jsonl")
_ = file.write_text("".join(json.dumps(record) + "\\n" for record in said))
def parser(version, upper):
    @cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl", version=version)
    def mytool(record, session):
        if record["kind"] == "say":
            text = record["text"]
            yield cnb.Message(id=record["id"], type=record["who"], content=text.upper() if upper else text)
    return mytool
widget = cnb.widgets.ParserWorkbench(parser("mytool@1", False), file, other=parser("mytool@2", True), record=2)
widget
""",
    "reimport_lab": """
import crystal_nb as cnb
widget = cnb.widgets.ReimportLab(scenario="changed-unseen", rules={"fingerprint": True}, step=3)
widget
""",
}


def main(names: list[str]) -> None:
    """Take each widget's picture in the light and in the dark theme."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from browser.conftest import chromium, jupyterlab, opened

    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyterlab(Path(folder) / "lab") as server,
        chromium("/usr/bin/chromium") as browser,
    ):
        for name in names or list(WIDGETS):
            with opened(browser, server) as lab:
                lab.run(WIDGETS[name], name=name)
                lab.page.set_viewport_size({"width": 1000, "height": 2400})
                for theme in ("Light", "Dark"):
                    lab.theme(f"JupyterLab {theme}")
                    file = IMAGES / f"{name}_{theme.lower()}.png"
                    lab.page.locator(".cnb-widget").first.screenshot(path=file)
                    print(file, file.stat().st_size)
                lab.close()


if __name__ == "__main__":
    main(sys.argv[1:])
