"""Secrets: found wherever they stand, never repeated in a message, and nothing else mistaken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.secrets import find_secrets
from clusterwright.model.sources import Source

EXAMPLES = Path(__file__).parents[3] / "examples"
HEAD = "apiVersion: clusterwright/v1alpha1\ncluster: c\n"
TAIL = "Q7dK2mP9xW4bN8vR5tY1uZ6cE3fG0hJaLsDpOiUq"

# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "a private key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "an AWS access key": "AKIA" + "IOSFODNN7EXAMPLE",
    "a GitHub token": "ghp_" + TAIL[:36],
    "a GitLab token": "glpat-" + TAIL[:20],
    "a Hugging Face token": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "a Slack token": "xoxb-" + TAIL[:24],
    "a Vault token": "hvs." + TAIL[:28],
    "a Google API key": "AIza" + TAIL[:35],
    "an OpenAI or Anthropic API key": "sk-" + "proj-" + TAIL,
    "an NVIDIA API key": "nvapi-" + TAIL + TAIL,
    "a JSON web token": "eyJ" + TAIL[:20] + ".eyJ" + TAIL[:30] + "." + TAIL[:30],
    "a password in a URL": "postgres://me:" + "s3cr3tword@db.example.com/x",
    "a password": "password=" + "s3cr3tword",
}


@pytest.mark.parametrize("kind", list(SECRETS))
@pytest.mark.parametrize("form", ["access: {{egress: '{}'}}\n", "# {}\n", "fabric:\n  dns: |\n    {}\n"])
def test_a_secret_is_refused_at_its_place_without_being_shown(kind: str, form: str) -> None:
    secret = SECRETS[kind]
    text = HEAD + form.format(secret)
    with pytest.raises(InvalidInput) as caught:
        parse_architecture(Source("f.yaml", text))
    problem = caught.value.problems[0]
    assert problem.message == f"this looks like {kind}"
    assert "references only" in problem.hint
    assert problem.place.line == 1 + text[: text.index(secret)].count("\n")
    assert not any(part in str(caught.value) for part in (TAIL[:16], "s3cr3tword", "FODNN7", "mnopqrst"))


def test_a_secret_in_an_override_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_architecture(Source("f", HEAD), overrides=("access.secrets=" + SECRETS["a GitHub token"],))
    assert [p.place.file for p in caught.value.problems] == ["--set"]


def test_a_secret_of_the_wrong_type_is_not_shown_by_another_message() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_architecture(Source("f", HEAD + f"economics: {{term: {SECRETS['a GitHub token']}}}\n"))
    assert TAIL[:16] not in str(caught.value)
    assert [p.path for p in caught.value.problems] == ["economics.term"]


@pytest.mark.parametrize(
    "text",
    [
        "registry.example.com/vllm@sha256:3f1c6b0a9d5e4c7788d2b1a0c9e8f7061524334251607f8e9dacbb1a2c3d4e5f",
        "6f6073b423013f6a7d4d9f39144961bfbfbc386b",
        "vault at https://vault.example.com, injected at start",
        "https://vault.example.com:8200/v1/secret/data/token",
        "password: in the vault",
        "password: ${DB_PASSWORD}",
        "postgres://me:${DB_PASSWORD}@db/x",
        "postgres://me:<password>@db/x",
        "password=$DB_PASSWORD",
        "token: rotated every day",
        "user@example.com:22",
        "http://[fe80::1]:8080/me@home",
        "meta-llama/Llama-3.3-70B-Instruct, hf_transfer enabled",
        "api_key: vault:secret/llm#key",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJbWlw3Z8Qq0",
        "sk-learn 1.5, task-queue-of-the-whole-company-and-more",
        "ASIA-PACIFIC-SOUTHEAST-REGIONS",
        "-----BEGIN CERTIFICATE-----",
        "passwords are kept in the vault",
    ],
)
def test_what_is_no_secret_passes(text: str) -> None:
    assert find_secrets(Source("f", text)) == []


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("**/*.yaml")), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_no_example_holds_a_secret(file: Path) -> None:
    assert find_secrets(Source(file.name, file.read_text(encoding="utf-8"))) == []
