"""The cases, in the order of the rules. Each is told the proxy and two backends, and raises Wrong with what it saw."""
import collections

Case = collections.namedtuple("Case", "rule words run")
ALL = []


def case(rule, words):
    """Adds a case: the rule it is of, and what is right."""
    def add(run):
        ALL.append(Case(rule, words, run))
        return run
    return add


def load():
    """All cases."""
    from cases import bodies, framing, heads, ends, protocols  # noqa: F401
    ALL.sort(key=lambda case: case.rule)
    return ALL
