"""``edrbo report``: a page about the study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrbo.lab.cli.location import opened
from edrbo.lab.cli.options import ContextOption, JsonOption, NameOption, StudyOption
from edrbo.lab.cli.output import check_new, print_json, safe_file_name, say
from edrbo.lab.cli.progress import progress
from edrbo.lab.cli.read_arguments import read_context


def report(
    study: StudyOption = None,
    name: NameOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file; by default NAME.html here.")] = None,
    context: ContextOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a page about the study that opens in any browser, without a network.

    With --context it also says what to do when that context is known to come.
    """
    with progress("working out the report", "report"), opened(study, name) as opened_study:
        from edrbo.lab.files import new_file
        from edrbo.lab.report import report_page

        path = out or Path(f"{safe_file_name(opened_study.name)}.html")
        check_new(path, force or out is None)
        page = report_page(opened_study, context=read_context(opened_study.space_now, context))
        with new_file(path, force=force or out is None) as file:
            file.write(page.encode())
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size})
    else:
        say(f"report: {path}")
