"""Write what the documentation takes from the code: `python -m docsite`.

With `pictures`, the pictures; with `llms`, the files for language models beside the pages of the built site.
"""

import sys
from pathlib import Path

from docsite import action, reference, result_formats, strict_checks

PAGES = Path(__file__).parent.parent / "docs/reference"

if sys.argv[1:] == ["pictures"]:
    from docsite import pictures

    pictures.record()
    pictures.draw()
elif sys.argv[1:] == ["llms"]:
    from docsite import llms

    llms.write()
else:
    for name, text in reference.pages().items():
        (PAGES / name).write_text(text)
    action.CONTAINER.write_text(action.container())
    action.COMPOSITE.write_text(action.composite())
    action.WORKFLOW.write_text(action.workflow())
    strict_checks.PAGE.write_text(strict_checks.text())
    result_formats.PAGE.write_text(result_formats.text())
