"""The README as package indexes show it, outside the repository: without links and pictures that lead nowhere there.

hatchling calls `ReadmeHook` for the metadata of each wheel and source archive. The README itself keeps relative links,
which work in a checkout. Where ``[project.urls]`` of pyproject.toml has an entry ``Files``, the address below which the
repository's files can be read, links are made absolute with it. Without one a link becomes its text, with the file's
path in the source archive behind it, and a picture becomes its description.
"""

from __future__ import annotations

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
            return f"{picture}[{text}]({files.rstrip('/')}/{target})"
        if picture:
            return f"*Picture: {text}.*"
        path = target.partition("#")[0]
        return f"`{path}`" if text in (path, path.rpartition("/")[2]) else f"{text} (`{path}`)"

    return _LINK.sub(replaced, readme)


class ReadmeHook(MetadataHookInterface):
    """Sets the field ``readme``, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the README for package indexes into the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        files = metadata.get("urls", {}).get("Files")
        metadata["readme"] = {"content-type": "text/markdown", "text": outside(text, files)}
