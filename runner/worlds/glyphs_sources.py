"""Where the glyph world comes from: packages, versions, licences, and what is read from each."""

from __future__ import annotations

import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from forecast.errors import ForecastError
from forecast.files import sha256_hex

__all__ = ["DESIGNERS", "LANGUAGES", "SOURCES", "Source", "find_tarball", "read_member"]


@dataclass(frozen=True)
class Source:
    """One npm package: what it gives, its licence (SPDX) and the sha256 of its tarball."""

    package: str
    version: str
    licence: str
    author: str
    gives: str
    sha256: str

    @property
    def tarball(self) -> str:
        """The file name that `npm pack` gives the package."""
        return f"{self.package.lstrip('@').replace('/', '-')}-{self.version}.tgz"


SOURCES = {
    "cldr": Source(
        "cldr-annotations-full",
        "48.2.0",
        "Unicode-3.0",
        "Unicode, Inc.",
        "names and keywords in 15 languages",
        "28576e51225deb51e3ddd734b0f824a0079682cb5d8c27faa9f68149317a14d1",
    ),
    "emojilib": Source(
        "emojilib",
        "4.0.3",
        "MIT",
        "Mu-An Chiou and contributors",
        "English keywords of a second source",
        "7f9a6b43cff31d18985b7d65d11faba5bd971cbcc60020cf6d09322fbaaaf303",
    ),
    "noto": Source(
        "@iconify-json/noto",
        "1.2.9",
        "Apache-2.0",
        "Google Inc",
        "drawings",
        "3e918d88fc945c0bb3d468dbace6f88caef67f01c9f0e7bcae0915a042e8f1ad",
    ),
    "twemoji": Source(
        "@iconify-json/twemoji",
        "1.2.5",
        "CC-BY-4.0",
        "Twitter, Inc and other contributors",
        "drawings",
        "19046dff7d8707ce96212ec86468b36ac5f8e60409629dd13f809265c6d0ebb7",
    ),
    "fluent": Source(
        "@iconify-json/fluent-emoji-flat",
        "1.2.6",
        "MIT",
        "Microsoft Corporation",
        "drawings",
        "7d064769dee690815f823bc5bcc511d957198caf9f5edd8dd9c1aa48a6aeb175",
    ),
    "noto-v1": Source(
        "@iconify-json/noto-v1",
        "1.2.5",
        "Apache-2.0",
        "Google Inc",
        "drawings of an older designer",
        "2bf62c26c2c2884aa99e90aec942cdaee17a5921f05690694f4978ad4b017c37",
    ),
    "fxemoji": Source(
        "@iconify-json/fxemoji",
        "1.2.2",
        "Apache-2.0",
        "Mozilla",
        "drawings",
        "f3e72b3c59d05e1db03b7e308d55c0d05bd7ba3f625a90da1b79313c12858eef",
    ),
}
DESIGNERS = ("noto", "twemoji", "fluent", "noto-v1", "fxemoji")
LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "sv", "pl", "ru", "tr", "fi", "id", "ja", "ko", "zh")


def find_tarball(name: str, folder: Path) -> Path:
    """The tarball of source `name` in `folder`, fetched there by `npm pack` if it is not yet.

    Raises ForecastError if it cannot be had or its sha256 is not the recorded one.
    """
    source = SOURCES[name]
    path = folder / source.tarball
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", f"{source.package}@{source.version}", "--silent"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ForecastError(f"cannot fetch {source.package}@{source.version}: {error}; run {command}") from error
    found = sha256_hex(path.read_bytes())
    if found != source.sha256:
        raise ForecastError(f"{path} has sha256 {found}, the world was defined from {source.sha256}; fetch it afresh")
    return path


def read_member(tarball: Path, member: str) -> bytes:
    """The bytes of `package/MEMBER` inside an npm tarball."""
    with tarfile.open(tarball) as archive:
        file = archive.extractfile(f"package/{member}")
        if file is None:
            raise ForecastError(f"{tarball} holds no {member}")
        return file.read()
