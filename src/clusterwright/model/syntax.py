"""Syntax: the YAML parser's messages in words for people who do not know its grammar.

One table, foreign → ours; a message without an entry is passed on as the parser words it.
"""

from __future__ import annotations

from typing import Any, Final

_QUOTE: Final = "put the value in quotes"
_ALIGN: Final = "align the line with its neighbours"
_ESCAPE: Final = "use single quotes, or write two backslashes for one"

# (part of the parser's context, part of its problem) → (message, hint); the first match wins.
_TABLE: Final[tuple[tuple[tuple[str, str], tuple[str, str]], ...]] = (
    (("", "'\\t'"), ("a tab stands where YAML wants spaces", "indent with spaces")),
    (("", "mapping values are not allowed"), ("a ':' that cannot stand here", f"indent it right, or {_QUOTE}")),
    (("simple key", "expected ':'"), ("this line has no ':' after its key", "write `key: value`")),
    (("quoted scalar", "end of stream"), ("a quoted text has no closing quote", "close the quote")),
    (("quoted scalar", "document separator"), ("a quoted text has no closing quote", "close the quote")),
    (("double-quoted", "escape character"), ("an unknown escape in a double-quoted text", _ESCAPE)),
    (("double-quoted", "escape sequence"), ("a malformed escape in a double-quoted text", _ESCAPE)),
    (("block mapping", "expected <block end>"), ("the indentation fits no line above", _ALIGN)),
    (("block collection", "expected <block end>"), ("the indentation fits no line above", _ALIGN)),
    (("flow mapping", "expected ','"), ("a ',' or '}' is missing", "close the { on its line")),
    (("flow sequence", "expected ','"), ("a ',' or ']' is missing", "close the [ on its line")),
    (("", "cannot start any token"), ("a character that cannot start a value", _QUOTE)),
    (("", "undefined tag handle"), ("a value starts with '!', which marks a tag", _QUOTE)),
    (("scanning an anchor", ""), ("a value starts with '&', which marks an anchor", _QUOTE)),
    (("scanning an alias", ""), ("a value starts with '*', which marks an alias", _QUOTE)),
    (("", "expected <document start>"), ("this does not belong to the text above", "check its indentation")),
    (("", "block sequence entries"), ("a '- ' that cannot stand here", "start the list on a line of its own")),
    (("", "expected the node content"), ("a value is missing, or a bracket is not closed", "check [ ] and { } here")),
    (("block scalar", ""), ("a '|' or '>' that starts no block of text", _QUOTE)),
)


#: Contexts whose start says more than the place where the parser gave up.
_FROM_THE_START: Final = ("simple key", "quoted scalar", "flow mapping", "flow sequence")


def place_of(error: Any) -> Any:
    """The parser's mark that helps most, or None when the error has none."""
    context = str(error.context or "")
    if error.context_mark is not None and any(part in context for part in _FROM_THE_START):
        escape = "escape" in str(error.problem or "")
        return error.problem_mark if escape else error.context_mark
    return error.problem_mark or error.context_mark


def plain_words(error: Any) -> tuple[str, str]:
    """(message, hint) of a parser error."""
    context, problem = str(error.context or ""), str(error.problem or "")
    for (in_context, in_problem), words in _TABLE:
        if in_context in context and in_problem in problem:
            return words
    return " ".join(part for part in (problem or "this is not valid YAML", context) if part), ""
