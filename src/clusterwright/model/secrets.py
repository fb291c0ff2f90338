"""Secrets: credentials that must not stand in the file, which holds references to them only.

Patterns are tight: a digest, a commit or a model's name must never match. They look at the whole text, comments
included, since a secret in a comment is as public as one in a value. Messages never repeat what was found.
Sources: the issuers' documented token prefixes (AWS IAM unique identifiers, GitHub token formats, GitLab tokens,
Hugging Face user access tokens, Slack token types, Vault tokens, Google API keys, OpenAI and NVIDIA API keys);
RFC 7468 (PEM labels); RFC 7519 (JWT); RFC 3986 section 3.2.1 (password in a URL).
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from clusterwright.lib.errors import Problem
from clusterwright.model.sources import Source

#: Secrets named per file; nobody needs more to know what kind of file it is.
_ENOUGH: Final = 20
_HINT: Final = "secrets are references only: name where it lives, and revoke this one if the file was shared"

_KINDS: Final[dict[str, str]] = {
    "private key": r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    "AWS access key": r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b",
    "GitLab token": r"\bglpat-[A-Za-z0-9_-]{20}",
    "Hugging Face token": r"\bhf_[A-Za-z]{34}\b",
    "Slack token": r"\bxox[abeprs]-[A-Za-z0-9-]{20}",
    "Vault token": r"\bhv[bsr]\.[A-Za-z0-9_-]{24}",
    "Google API key": r"\bAIza[A-Za-z0-9_-]{35}\b",
    "OpenAI API key": r"\bsk-(?:proj-|svcacct-|ant-)?[A-Za-z0-9_-]{32}",
    "NVIDIA API key": r"\bnvapi-[A-Za-z0-9_-]{40}",
    "JSON web token": r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10}",
    # user:password@host; a reference such as ${TOKEN}, $TOKEN, {{ token }} or <token> stands for itself.
    "password in a URL": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@?#'\"]{0,100}:(?![$<{*])[^\s/:@?#'\"]{1,200}@",
    "password": r"(?i:\b(?:password|passwd|secret_key|api_key|access_token|aws_secret_access_key))"
    r"(?:=|['\"]?:[ \t]+)['\"]?(?![$<{*\[|>&!#'\"\s])(?![a-z]{2,20}:)[^\s'\",}\]#]{6,200}['\"]?[ \t]*(?=$|[,}\]#&])",
}
_NAMES: Final = list(_KINDS)
_ANY: Final = re.compile("|".join(f"({pattern})" for pattern in _KINDS.values()), re.MULTILINE)


def find_secrets(source: Source) -> list[Problem]:
    """One problem per credential in the text, at its place."""
    return [
        Problem(source.place_at(match.start()), "", f"this looks like a {_kind(match)}", _HINT)
        for match in islice(_ANY.finditer(source.text), _ENOUGH)
    ]


def _kind(match: re.Match[str]) -> str:
    return _NAMES[(match.lastindex or 1) - 1]
