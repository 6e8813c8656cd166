"""The README as package indexes show it, outside the repository: without links and pictures that lead nowhere there.

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


def files_of_a_release() -> str | None:
    """Return the address of the repository's files at the tag that a workflow builds, or None elsewhere."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_REF_NAME")
    server, repository, tag = (os.environ.get(name) for name in names)
    return f"{server}/{repository}/blob/{tag}" if server and repository and tag else None


class ReadmeHook(MetadataHookInterface):
    """Sets the field ``readme``, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the README for package indexes into the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": outside(text, files_of_a_release())}
