"""The README as package indexes show it, outside the repository, and the addresses that stand beside it there.

hatchling calls `ReadmeHook` for the metadata of each wheel and source archive. The README itself keeps relative links,
which work in a checkout. A workflow that builds a release knows where the files can be read, and makes links
absolute. Elsewhere a link becomes its text, with the file's path in the source archive behind it, and a picture becomes
its description.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def outside(readme: str, files: str | None) -> str:
    """Return the README's text for readers who do not have the repository.

    Parameters
    ----------
    readme
        The text of README.md.
    files
        The address below which the repository's files can be read, or None if there is none.
    """

    def replaced(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        if "://" in target or (target.startswith("#") and not picture):
            return match[0]
        if files is not None:
            return f"{picture}[{text}]({files}/{target}{'?raw=true' if picture else ''})"
        if picture:
            return f"*Picture: {text}.*"
        path = target.partition("#")[0]
        return f"`{path}`" if text in (path, path.rpartition("/")[2]) else f"{text} (`{path}`)"

    return _LINK.sub(replaced, readme)


def repository() -> str | None:
    """Return the address of the repository in which a workflow runs, or None elsewhere."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def files_of_a_release() -> str | None:
    """Return the address of the repository's files at the tag that a workflow builds, or None elsewhere."""
    address, tag = repository(), os.environ.get("GITHUB_REF_NAME")
    return f"{address}/blob/{tag}" if address and tag else None


def addresses() -> dict[str, str]:
    """Return the addresses that a package index shows, by their names there: none outside a workflow."""
    files = files_of_a_release()
    if files is None:
        return {}
    return {
        "Source": str(repository()),
        "Documentation": f"{files}/docs/README.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{repository()}/issues",
    }


class ReadmeHook(MetadataHookInterface):
    """Sets the fields ``readme`` and ``urls``, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the README for package indexes, and where the project can be found, into the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": outside(text, files_of_a_release())}
        metadata["urls"] = addresses()
