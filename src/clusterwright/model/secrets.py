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

# (what it is, letters without which it cannot be there, pattern). The letters are looked for first, in the text in
# lower case: most files hold none of them, and a search for a word costs a hundredth of a search for a pattern.
_KINDS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("a private key", ("private key",), r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    ("an AWS access key", ("akia", "asia"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("a GitHub token", ("gh",), r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b"),
    ("a GitLab token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20}"),
    ("a Hugging Face token", ("hf_",), r"\bhf_[A-Za-z]{34}\b"),
    ("a Slack token", ("xox",), r"\bxox[abeprs]-[A-Za-z0-9-]{20}"),
    ("a Vault token", ("hvb.", "hvs.", "hvr."), r"\bhv[bsr]\.[A-Za-z0-9_-]{24}"),
    ("a Google API key", ("aiza",), r"\bAIza[A-Za-z0-9_-]{35}\b"),
    ("an OpenAI or Anthropic API key", ("sk-",), r"\bsk-(?:proj-|svcacct-|ant-)?[A-Za-z0-9_-]{32}"),
    ("an NVIDIA API key", ("nvapi-",), r"\bnvapi-[A-Za-z0-9_-]{40}"),
    ("a JSON web token", ("eyj",), r"(?<![\w-])eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10}"),
    # scheme://user:password@host; a reference such as ${TOKEN}, $TOKEN, {{ token }} or <token> stands for itself.
    ("a password in a URL", ("://",), r"://[^\s/:@?#'\"]{0,100}:(?![$<{*])[^\s/:@?#'\"]{1,200}@"),
    (
        "a password",
        ("password", "passwd", "secret_key", "api_key", "access_token", "secret_access_key"),
        r"(?i:\b(?:password|passwd|secret_key|api_key|access_token|aws_secret_access_key))(?:=|['\"]?:[ \t]+)['\"]?"
        r"(?![$<{*\[|>&!#'\"\s])(?![a-z]{2,20}:)[^\s'\",}\]#]{6,200}['\"]?[ \t]*(?=$|[,}\]#&])",
    ),
)


def find_secrets(source: Source) -> list[Problem]:
    """One problem per credential in the text, at its place."""
    folded = source.text.lower()
    return [
        Problem(source.place_at(match.start()), "", f"this looks like {kind}", _HINT)
        for kind, letters, pattern in _KINDS
        if any(word in folded for word in letters)
        for match in islice(re.finditer(pattern, source.text, re.MULTILINE), _ENOUGH)
    ]
